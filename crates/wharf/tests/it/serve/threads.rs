//! Tests on how many threads the gateway serves calls.

use super::server::Server;
use std::fs;
use tempfile::TempDir;

#[test]
fn calls_are_served_on_as_many_threads_as_configured() {
    for threads in [1, 3] {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("wharf.toml");
        fs::write(&file, format!("[server]\nthreads = {threads}\n")).expect("settings");
        let server = Server::start_in(folder, &["--settings", &file.display().to_string()]);
        let (status, _) = server.ask("GET", "/api/v1/tools", None);
        // The main thread serves connections, too.
        assert_eq!((status, connection_threads(server.child.id()) + 1), (200, threads));
    }
}

/// Counts the threads that only serve connections.
fn connection_threads(pid: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let names = threads.map(|it| fs::read_to_string(it.expect("a thread").path().join("comm")));
    names.filter(|it| it.as_ref().is_ok_and(|it| it.starts_with("connections-"))).count()
}
