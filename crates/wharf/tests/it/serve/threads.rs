//! Tests on how many threads the gateway serves calls.

use super::server::Server;
use std::fs;
use tempfile::TempDir;

/// Far more than the threads that tokio starts for blocking work, which have the same name.
const MANY: usize = 40;

#[test]
fn calls_are_served_on_as_many_threads_as_configured() {
    for (threads, has_many) in [(MANY, true), (1, false)] {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("wharf.toml");
        fs::write(&file, format!("[server]\nthreads = {threads}\n")).expect("settings");
        let server = Server::start_in(folder, &["--settings", &file.display().to_string()]);
        let (status, _) = server.ask("GET", "/api/v1/tools", None);
        let found = tokio_threads(server.child.id());
        assert_eq!((status, found >= MANY), (200, has_many), "{found} threads");
    }
}

/// Counts the threads that the async runtime has started.
fn tokio_threads(pid: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let names = threads.map(|it| fs::read_to_string(it.expect("a thread").path().join("comm")));
    names.filter(|it| it.as_ref().is_ok_and(|it| it.starts_with("tokio-"))).count()
}
