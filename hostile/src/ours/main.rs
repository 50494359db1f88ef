//! `ours ROW --hostile FILE --neighbour URL`: tries one row of the matrix with our own client and prints a report
//! as one line of JSON.
//!
//! It also serves as the supervisor process of stdio servers, as `wharf` does for its own.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the report on stdout is the output of this program"
)]

mod trial_runtime;

use hostile::{
    matrix::{self, Next, Row},
    probe::{Report, TrialSetup, grown_kib, peak_kib},
};
use std::{path::PathBuf, process::ExitCode, time::Duration};
use tokio::time::Instant;
use trial_runtime::{Outcome, TrialRuntime};

/// Pause between two calls of the neighbour.
const NEIGHBOUR_PAUSE: Duration = Duration::from_millis(20);

/// Maximum number of further calls until the circuit breaker must be open; more than its threshold.
const MAX_CALLS_UNTIL_OPEN: usize = 8;

#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().unwrap_or_default();
    if first == wharf_mcp::stdio::SUPERVISE {
        return wharf_mcp::stdio::supervise(arguments);
    }
    let arguments: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let [_, hostile, _, neighbour] = &arguments[..] else {
        eprintln!("usage: ours ROW --hostile FILE --neighbour URL");
        return ExitCode::from(2);
    };
    let tried =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map(|runtime| {
            let report = runtime.block_on(try_row(&first.to_string_lossy(), hostile.into(), neighbour));
            runtime.shutdown_timeout(Duration::from_millis(200));
            report
        });
    match tried.map_err(|error| error.to_string()).and_then(|report| report) {
        Ok(report) => {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn try_row(id: &str, hostile: PathBuf, neighbour: &str) -> Result<Report, String> {
    let row = matrix::find(id).ok_or_else(|| format!("there is no row `{id}`"))?;
    let setup = TrialSetup::of(row, &hostile).await.map_err(|error| error.to_string())?;
    let trial_runtime = TrialRuntime::new(row, &setup, neighbour)?;
    for _ in 0..3 {
        trial_runtime.call_neighbour("warm-up").await?;
    }
    let before = peak_kib();
    let started = Instant::now();
    trial_runtime.start_source();
    let (outcome, neighbour) = trial_runtime.call_both(NEIGHBOUR_PAUSE).await;
    let ms = started.elapsed().as_millis() as u64;
    let next = call_again(&trial_runtime, row).await;
    trial_runtime.close().await;
    let leftovers = setup.mark.leftovers().await;
    Ok(Report {
        row: row.id(),
        class: outcome.class.as_str().to_owned(),
        message: outcome.message,
        hint: outcome.hint,
        phase: outcome.phase,
        sent: outcome.sent,
        ms,
        grown_kib: grown_kib(before),
        neighbour: neighbour.0,
        neighbour_ms: neighbour.1,
        next: next.class.as_str().to_owned(),
        next_message: next.message,
        leftovers,
        executions: setup.executions("first"),
        said: outcome.said.chars().take(2_000).collect(),
    })
}

/// Makes the next call, and further ones if the row expects the outcome to change.
async fn call_again(trial_runtime: &TrialRuntime, row: &Row) -> Outcome {
    let mut next = trial_runtime.call("second").await;
    let tries = match row.next {
        Next::Settles => 1,
        Next::BreakerOpens => MAX_CALLS_UNTIL_OPEN,
        Next::Works | Next::Same => 0,
    };
    for _ in 0..tries {
        if next.class == row.class {
            next = trial_runtime.call("another").await;
        }
    }
    next
}
