//! Soak test: many calls over each transport, while the server is killed and connections are reset at random.
//!
//! Every call has one outcome, in time. No response reaches another caller. No call is executed twice, and a call
//! reported as not sent was not executed. The server's action log is the evidence. `cargo xtask soak` makes 100,000
//! calls over each transport; the tests make a few thousand, always with the same seed.

mod log_summary;
mod server_keeper;

use crate::runtime::rig::{Entry, Rig, describe_outcome};
use hostile::options::Transport;
use log_summary::{CallerOutcome, LogSummary};
use serde_json::json;
use server_keeper::ServerKeeper;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use wharf_mcp::Raw;
use wharf_runtime::{BreakerPolicy, Call, Handle, RuntimeOptions};

/// Number of concurrent calls.
const CONCURRENCY: u64 = 16;

/// Timeout of a call, and the tolerance for it.
const TIMEOUT: Duration = Duration::from_secs(10);
const TOLERANCE: Duration = Duration::from_secs(1);

/// One call in this many ends in a kill or a reset.
const CALLS_PER_FAULT: u64 = 30;

const SEED: u64 = 20_260_728;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stdio_calls_survive_random_kills() {
    soak(Transport::Stdio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_calls_survive_random_resets() {
    soak(Transport::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sse_calls_survive_random_resets() {
    soak(Transport::Sse).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websocket_calls_survive_random_resets() {
    soak(Transport::Ws).await;
}

async fn soak(transport: Transport) {
    let calls = calls();
    let begun = Instant::now();
    let (rig, server_keeper) = start_source(transport, calls).await;
    assert_eq!(rig.handle.settled().await.tools.len(), 1, "the server is there");
    let seen = run(&rig.handle, calls).await;
    let sessions = rig.handle.sources()[0].status.sessions;
    rig.runtime.shutdown(Duration::from_secs(1)).await;
    let (restarts, action_log, _folder) = match server_keeper {
        Some(server_keeper) => server_keeper.stop().await,
        None => (sessions - 1, rig.folder.path().join("ledger"), rig.folder),
    };
    let log_summary = LogSummary::read(&action_log);
    let ends = log_summary.ends + if transport == Transport::Stdio { 0 } else { restarts };
    print_line(&log_summary.line(transport, &seen, ends, restarts, begun.elapsed()));
    let wrong = log_summary.compare(&seen, TIMEOUT + TOLERANCE);
    assert!(
        wrong.is_empty(),
        "{} violations, of which the first: {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(10)]
    );
    assert_eq!(seen.len() as u64, calls);
    // With few calls, chance may cause fewer; of 100,000 calls, at least 2,000 must hit one.
    let least = if calls < 100_000 { calls / 100 } else { calls / 50 };
    assert!(ends >= least, "{ends} kills and resets are too few");
}

#[expect(clippy::print_stdout, reason = "the table is the result of the soak test")]
fn print_line(line: &str) {
    println!("{line}");
}

/// Starts the source, and a supervisor for its server where `wharf` does not start it.
async fn start_source(transport: Transport, calls: u64) -> (Rig, Option<ServerKeeper>) {
    let breaker = BreakerPolicy { failure_threshold: u32::MAX, ..BreakerPolicy::default() };
    let tuning = RuntimeOptions { breaker, ..RuntimeOptions::default() };
    let chance = format!("--prob {} --seed {SEED}", 1.0 / CALLS_PER_FAULT as f64);
    if transport == Transport::Stdio {
        let line = format!("--mode die_random --ledger $FOLDER/ledger {chance}");
        return (Rig::start(&[Entry::Stdio("it", &line, "")], tuning), None);
    }
    // In addition to the resets, kills the server a hundred times in 100,000 calls.
    let line = format!("--transport {} --mode rst_random {chance}", transport.as_str());
    let server_keeper = ServerKeeper::start(&line, (calls / 100).max(200)).await;
    let (transport_name, scheme) = match transport {
        Transport::Ws => ("websocket", "ws"),
        other => (other.as_str(), "http"),
    };
    let url = format!("{scheme}://{}/mcp", server_keeper.address());
    (Rig::start(&[Entry::Remote("it", transport_name, &url)], tuning), Some(server_keeper))
}

/// Makes all calls with limited concurrency, each with a unique nonce.
async fn run(handle: &Handle, calls: u64) -> Vec<CallerOutcome> {
    let next = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (handle, next) = (handle.clone(), next.clone());
        callers.spawn(async move {
            let mut seen = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    return seen;
                }
                seen.push(call_once(&handle, format!("n{number}")).await);
            }
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

async fn call_once(handle: &Handle, nonce: String) -> CallerOutcome {
    let arguments: Raw = json!({ "nonce": nonce }).into();
    let begun = Instant::now();
    let record = handle.call(Call::new("it__echo").arguments(arguments).within(TIMEOUT)).await;
    CallerOutcome { outcome: describe_outcome(&record), took: begun.elapsed(), nonce }
}

/// Returns the number of calls per transport.
#[expect(clippy::disallowed_methods, reason = "the environment sets the number of calls")]
fn calls() -> u64 {
    std::env::var("HOSTILE_SOAK").ok().and_then(|it| it.parse().ok()).unwrap_or(2_000)
}
