//! A server that listens on a port while a test lasts.

use super::place::{caches, path_with};
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

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(90);

/// Ended, with everything that it started, when it is dropped.
pub(crate) struct Background {
    child: Child,
    folder: TempDir,
}

impl Background {
    /// Starts it in a process group of its own, and comes back when something listens on the port.
    pub(crate) async fn listening_on(port: u16, program: &str, args: &[&str]) -> Background {
        let folder = TempDir::new().expect("a folder");
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = Command::new(program)
            .args(args)
            .current_dir(folder.path())
            .env("PATH", path_with([]))
            .envs(caches())
            .env("PORT", port.to_string())
            // One that remembers things remembers them here, not for every other test.
            .env("MEMORY_FILE_PATH", folder.path().join("memory.jsonl"))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("`{program}` does not start: {error}"));
        let mut server = Background { child, folder };
        let patient_until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let ended = server.child.try_wait().expect("a status");
            let hopeless = ended.is_some() || Instant::now() > patient_until;
            assert!(!hopeless, "`{program} {}` does not listen:\n{}", args.join(" "), server.log());
            // Every server announces itself in its own words, and some in none.
            sleep(Duration::from_millis(50)).await;
        }
        server
    }

    fn log(&self) -> String {
        let log: PathBuf = self.folder.path().join("log");
        fs::read_to_string(log).unwrap_or_default()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let group = format!("kill -s KILL -- -{}", self.child.id());
        _ = Command::new("sh").args(["-c", &group]).status();
        // In case there is no such shell: what is waited for has been told to end.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
