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

/// Interval at which the ledger is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Approximate bytes of ledger per call.
const CALL: u64 = 45;

pub(super) struct Warden {
    address: SocketAddr,
    folder: TempDir,
    dismissed: watch::Sender<bool>,
    watch: JoinSet<u64>,
}

impl Warden {
    /// Starts the server and kills it after every `calls` calls.
    pub(super) async fn start(line: &str, calls: u64) -> Warden {
        let folder = TempDir::new().expect("a folder");
        // The port is free now. If another process takes it in between, the test fails visibly.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
        let line = format!("{line} --listen {address} --ledger {}", ledger(folder.path()).display());
        let (dismissed, over) = watch::channel(false);
        let mut watch = JoinSet::new();
        let server = started(&line).await;
        watch.spawn(keep(line, server, ledger(folder.path()), calls * CALL, over));
        Warden { address, folder, dismissed, watch }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server. Returns the number of restarts, and the ledger with the folder that keeps it alive.
    pub(super) async fn dismiss(mut self) -> (u64, PathBuf, TempDir) {
        self.dismissed.send_replace(true);
        let restarts = self.watch.join_next().await.expect("a warden").expect("it does not panic");
        (restarts, ledger(self.folder.path()), self.folder)
    }
}

fn ledger(folder: &Path) -> PathBuf {
    folder.join("ledger")
}

async fn keep(
    line: String,
    mut server: Child,
    ledger: PathBuf,
    every: u64,
    mut over: watch::Receiver<bool>,
) -> u64 {
    let (mut restarts, mut next) = (0, every);
    loop {
        tokio::select! {
            _ = over.wait_for(|it| *it) => break,
            () = time::sleep(LOOK) => {}
        }
        let written = fs::metadata(&ledger).map_or(0, |it| it.len());
        if written >= next {
            server.kill().await.expect("it can be killed");
            server = started(&line).await;
            (restarts, next) = (restarts + 1, written + every);
        }
    }
    server.kill().await.expect("it can be killed");
    restarts
}

/// Starts a server and waits until it listens.
async fn started(line: &str) -> Child {
    let mut command = Command::new(HOSTILE);
    command.args(line.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.kill_on_drop(true).spawn().expect("the server starts");
    let mut said = String::new();
    let stderr = server.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut said).await.expect("a line");
    assert!(said.contains("127.0.0.1"), "the server said: {said}");
    server
}
