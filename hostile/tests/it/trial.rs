//! Runs one trial in a process of its own, and many of them beside each other.

use hostile::{matrix::Row, probe::Report};
use std::{
    io,
    process::{Output, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::Semaphore,
    task::JoinSet,
    time,
};

pub(crate) const HOSTILE: &str = env!("CARGO_BIN_EXE_hostile");
pub(crate) const OURS: &str = env!("CARGO_BIN_EXE_ours");
pub(crate) const THEIRS: &str = env!("CARGO_BIN_EXE_theirs");

/// How many trials run at the same time: most of them wait for something.
const AT_ONCE: usize = 4;

/// No trial may take longer.
const PATIENCE: Duration = Duration::from_secs(90);

/// A good server, for as long as it is kept.
pub(crate) struct Neighbour {
    pub(crate) url: String,
    _server: Child,
}

impl Neighbour {
    pub(crate) async fn start() -> Neighbour {
        let mut command = Command::new(HOSTILE);
        command.args(["--transport", "http"]).stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut server = command.spawn().expect("the server starts");
        let mut line = String::new();
        let stderr = server.stderr.take().expect("a pipe");
        BufReader::new(stderr).read_line(&mut line).await.expect("a line");
        let address = line.split_whitespace().nth(1).expect("an address").to_owned();
        Neighbour { url: format!("http://{address}/mcp"), _server: server }
    }
}

/// Tries all these rows with this program. What cannot be read of a trial is its report's message.
pub(crate) async fn try_all(program: &'static str, rows: Vec<&'static Row>) -> Vec<(&'static Row, Report)> {
    let neighbour = Arc::new(Neighbour::start().await);
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut trials = JoinSet::new();
    for (place, row) in rows.into_iter().enumerate() {
        let (neighbour, turns) = (neighbour.clone(), turns.clone());
        trials.spawn(async move {
            let _turn = turns.acquire().await.expect("turns are never closed");
            (place, row, try_one(program, row, &neighbour.url).await)
        });
    }
    let mut tried = trials.join_all().await;
    tried.sort_by_key(|(place, ..)| *place);
    tried.into_iter().map(|(_, row, report)| (row, report)).collect()
}

async fn try_one(program: &str, row: &Row, neighbour: &str) -> Report {
    let mut command = Command::new(program);
    command.arg(row.id()).args(["--hostile", HOSTILE, "--neighbour", neighbour]);
    // What their client leaves of its server's stderr is ours, and may be endless.
    let stderr = if program == THEIRS { Stdio::null() } else { Stdio::piped() };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
    let failed = |message: String| Report { row: row.id(), message, ..Report::default() };
    match time::timeout(PATIENCE, finish(command)).await {
        Err(_) => failed(format!("no end within {PATIENCE:?}")),
        Ok(Err(error)) => failed(error.to_string()),
        Ok(Ok(output)) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

async fn finish(mut command: Command) -> io::Result<Output> {
    command.spawn()?.wait_with_output().await
}
