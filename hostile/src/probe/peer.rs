//! Sets up the peer of a trial: the hostile server, or a substitute for it.

use super::Mark;
use crate::{
    matrix::{Peer, Row},
    options::Transport,
};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time,
};

/// File name of the server's action log.
const ACTION_LOG: &str = "ledger";

/// Target of a client: the program or address of the peer.
#[derive(Debug)]
pub struct TrialSetup {
    /// Program to start, over stdio.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Address, on the other transports.
    pub url: String,
    /// Marker for finding the server's processes.
    pub mark: Mark,
    /// Temporary folder of the trial.
    pub folder: TempDir,
    _peer: Option<PeerGuard>,
}

/// Keeps the peer at an address alive until it is dropped.
#[derive(Debug)]
pub enum PeerGuard {
    /// A server process, killed on drop.
    Server(Child),
    /// A listener with a full accept queue, and the connections that fill it.
    Full(OwnedFd, Vec<TcpStream>),
}

impl TrialSetup {
    /// Sets up the peer that the row asks for.
    pub async fn of(row: &Row, hostile: &Path) -> io::Result<TrialSetup> {
        let folder = TempDir::new()?;
        let mark = Mark::new(&folder.path().file_name().unwrap_or_default().to_string_lossy());
        let args = arguments(row, folder.path());
        let mut setup =
            TrialSetup { program: hostile.to_owned(), args, url: String::new(), mark, folder, _peer: None };
        if row.transport == Transport::Stdio {
            if row.peer == Peer::Missing {
                setup.program = setup.folder.path().join("no-such-program");
            }
            return Ok(setup);
        }
        let address = match row.peer {
            Peer::Hostile | Peer::Tls => {
                let (server, address) = start(hostile, &setup.args).await?;
                setup._peer = Some(PeerGuard::Server(server));
                address
            }
            Peer::Missing | Peer::Unknown => vacant()?,
            Peer::Full => {
                let (far, address) = full().await?;
                setup._peer = Some(far);
                address
            }
        };
        setup.url = url(row, address);
        Ok(setup)
    }

    /// Returns how often the server executed the call with this nonce, according to its action log.
    pub fn executions(&self, nonce: &str) -> usize {
        let action_log = fs::read_to_string(self.folder.path().join(ACTION_LOG)).unwrap_or_default();
        let done = format!("exec {nonce} ");
        action_log.lines().filter(|line| line.starts_with(&done)).count()
    }
}

fn arguments(row: &Row, folder: &Path) -> Vec<String> {
    let mut args: Vec<String> =
        ["--transport", row.transport.as_str(), "--era", row.era.as_str()].map(str::to_owned).into();
    if row.peer == Peer::Hostile {
        args.extend(["--mode".to_owned(), row.modes.to_owned()]);
    }
    args.extend(["--ledger".to_owned(), folder.join(ACTION_LOG).display().to_string()]);
    if row.is_once() {
        args.extend(["--once".to_owned(), folder.join("once").display().to_string()]);
    }
    args.extend(row.options.iter().map(|&it| it.to_owned()));
    args
}

/// Starts a server and reads its address from the first line on its stderr.
pub(crate) async fn start(hostile: &Path, args: &[String]) -> io::Result<(Child, SocketAddr)> {
    let mut command = Command::new(hostile);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn()?;
    let stderr = server.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stderr).read_line(&mut line).await?;
    let address = line.split_whitespace().nth(1).and_then(|it| it.parse().ok());
    let address = address.ok_or_else(|| io::Error::other(format!("the server said: {line}")))?;
    Ok((server, address))
}

/// Returns an address without a listener.
fn vacant() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Creates a listener with a full accept queue, so that further connections are neither accepted nor refused.
async fn full() -> io::Result<(PeerGuard, SocketAddr)> {
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0)))?;
    listen(&listener, 0)?;
    let address = SocketAddr::try_from(getsockname(&listener)?)?;
    let mut fillers = Vec::new();
    while let Ok(filler) = time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        fillers.push(filler?);
    }
    Ok((PeerGuard::Full(listener, fillers), address))
}

fn url(row: &Row, address: SocketAddr) -> String {
    let scheme = match (row.transport, row.peer) {
        (Transport::Ws, Peer::Tls) => "wss",
        (Transport::Ws, _) => "ws",
        (_, Peer::Tls | Peer::Unknown) => "https",
        _ => "http",
    };
    match row.peer {
        Peer::Unknown => format!("{scheme}://no-such-host.invalid/mcp"),
        _ => format!("{scheme}://{address}/mcp"),
    }
}
