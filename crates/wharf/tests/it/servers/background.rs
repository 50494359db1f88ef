//! A server that listens on a port for the duration of a test.

use super::workspace::{caches, path_with};
use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

/// Timeout until the server listens.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// A server process; it and all its children are killed on drop.
pub(crate) struct BackgroundServer {
    child: Child,
    folder: TempDir,
}

impl BackgroundServer {
    /// Starts the server in its own process group and waits until it listens on the port.
    pub(crate) async fn listening_on(port: u16, program: &str, args: &[&str]) -> BackgroundServer {
        let folder = TempDir::new().expect("a folder");
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = Command::new(program)
            .args(args)
            .current_dir(folder.path())
            .env("PATH", path_with([]))
            .envs(caches())
            .env("PORT", port.to_string())
            // Keeps the memory of a server in this folder, so that tests do not share it.
            .env("MEMORY_FILE_PATH", folder.path().join("memory.jsonl"))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("`{program}` does not start: {error}"));
        let mut server = BackgroundServer { child, folder };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let ended = server.child.try_wait().expect("a status");
            let has_failed = ended.is_some() || Instant::now() > deadline;
            assert!(!has_failed, "`{program} {}` does not listen:\n{}", args.join(" "), server.log());
            // Polls the port, because servers print different messages at startup, or none.
            sleep(Duration::from_millis(50)).await;
        }
        server
    }

    fn log(&self) -> String {
        let log: PathBuf = self.folder.path().join("log");
        fs::read_to_string(log).unwrap_or_default()
    }
}

impl Drop for BackgroundServer {
    fn drop(&mut self) {
        let group = format!("kill -s KILL -- -{}", self.child.id());
        _ = Command::new("sh").args(["-c", &group]).status();
        // In case there is no shell: `wait` must not block.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns a port without a listener.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
