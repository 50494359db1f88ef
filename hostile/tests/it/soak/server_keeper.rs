//! Keeps a server running at one address, and kills it at intervals.

use crate::trial::HOSTILE;
use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
    task::JoinSet,
    time,
};

/// Interval at which the action log is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Approximate bytes of log per call.
const BYTES_PER_CALL: u64 = 45;

pub(super) struct ServerKeeper {
    address: SocketAddr,
    folder: TempDir,
    stopped: watch::Sender<bool>,
    watch: JoinSet<u64>,
}

impl ServerKeeper {
    /// Starts the server and kills it after every `calls` calls.
    pub(super) async fn start(line: &str, calls: u64) -> ServerKeeper {
        let folder = TempDir::new().expect("a folder");
        // The port is free now. If another process takes it in between, the test fails visibly.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
        let line = format!("{line} --listen {address} --ledger {}", action_log(folder.path()).display());
        let (stopped, stop_signal) = watch::channel(false);
        let mut watch = JoinSet::new();
        let server = start_server(&line).await;
        watch.spawn(run(line, server, action_log(folder.path()), calls * BYTES_PER_CALL, stop_signal));
        ServerKeeper { address, folder, stopped, watch }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server. Returns the number of restarts, and the action log with the folder that keeps it alive.
    pub(super) async fn stop(mut self) -> (u64, PathBuf, TempDir) {
        self.stopped.send_replace(true);
        let restarts = self.watch.join_next().await.expect("a warden").expect("it does not panic");
        (restarts, action_log(self.folder.path()), self.folder)
    }
}

fn action_log(folder: &Path) -> PathBuf {
    folder.join("ledger")
}

async fn run(
    line: String,
    mut server: Child,
    action_log: PathBuf,
    every: u64,
    mut stop_signal: watch::Receiver<bool>,
) -> u64 {
    let (mut restarts, mut next) = (0, every);
    loop {
        tokio::select! {
            _ = stop_signal.wait_for(|it| *it) => break,
            () = time::sleep(CHECK_INTERVAL) => {}
        }
        let written = fs::metadata(&action_log).map_or(0, |it| it.len());
        if written >= next {
            server.kill().await.expect("it can be killed");
            server = start_server(&line).await;
            (restarts, next) = (restarts + 1, written + every);
        }
    }
    server.kill().await.expect("it can be killed");
    restarts
}

/// Starts a server and waits until it listens.
async fn start_server(line: &str) -> Child {
    let mut command = Command::new(HOSTILE);
    command.args(line.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.kill_on_drop(true).spawn().expect("the server starts");
    let mut said = String::new();
    let stderr = server.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut said).await.expect("a line");
    assert!(said.contains("127.0.0.1"), "the server said: {said}");
    server
}
