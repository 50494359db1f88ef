//! Runs each trial in a separate process, several at a time.

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

/// Number of concurrent trials; most of them only wait.
const MAX_CONCURRENT_TRIALS: usize = 4;

/// Timeout of one trial.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(90);

/// A well-behaved server, stopped on drop.
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

/// Tries these rows with this program. If a trial gives no readable report, the report contains only a message.
pub(crate) async fn try_all(program: &'static str, rows: Vec<&'static Row>) -> Vec<(&'static Row, Report)> {
    let neighbour = Arc::new(Neighbour::start().await);
    let turns = Arc::new(Semaphore::new(MAX_CONCURRENT_TRIALS));
    let mut trials = JoinSet::new();
    for (index, row) in rows.into_iter().enumerate() {
        let (neighbour, turns) = (neighbour.clone(), turns.clone());
        trials.spawn(async move {
            let _turn = turns.acquire().await.expect("turns are never closed");
            (index, row, try_one(program, row, &neighbour.url).await)
        });
    }
    let mut tried = trials.join_all().await;
    tried.sort_by_key(|(index, ..)| *index);
    tried.into_iter().map(|(_, row, report)| (row, report)).collect()
}

async fn try_one(program: &str, row: &Row, neighbour: &str) -> Report {
    let mut command = Command::new(program);
    command.arg(row.id()).args(["--hostile", HOSTILE, "--neighbour", neighbour]);
    // The other client passes the server's stderr through, which may be endless.
    let stderr = if program == THEIRS { Stdio::null() } else { Stdio::piped() };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
    let failed = |message: String| Report { row: row.id(), message, ..Report::default() };
    match time::timeout(TRIAL_TIMEOUT, finish(command)).await {
        Err(_) => failed(format!("no end within {TRIAL_TIMEOUT:?}")),
        Ok(Err(error)) => failed(error.to_string()),
        Ok(Ok(output)) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

async fn finish(mut command: Command) -> io::Result<Output> {
    command.spawn()?.wait_with_output().await
}
