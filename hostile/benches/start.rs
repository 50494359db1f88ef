//! Measures how long twenty servers that each need 250 ms to start take to become usable, compared with one server.
//!
//! They start concurrently, so the ratio matters; up to 1.4 is good. `cargo xtask bench` runs it.

#![expect(clippy::print_stdout, reason = "the table on stdout is the output of this program")]

use hostile::probe::Mark;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use wharf_config::{Env, Grants, Plan, load};
use wharf_runtime::{Runtime, RuntimeOptions, UpstreamContext};

const HOSTILE: &str = env!("CARGO_BIN_EXE_hostile");
const OURS: &str = env!("CARGO_BIN_EXE_ours");

/// Number of rounds per server count.
const ROUNDS: usize = 7;

#[expect(clippy::disallowed_methods, reason = "the arguments tell a benchmark from a test")]
fn main() {
    // Under `cargo test` the result would only show how busy the machine is.
    if !std::env::args().any(|it| it == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let one = runtime.block_on(rounds(1));
    println!("servers   fastest    median   ratio of medians to one server");
    for count in [1, 5, 20] {
        let times = if count == 1 { one.clone() } else { runtime.block_on(rounds(count)) };
        let ratio = median(&times).as_secs_f64() / median(&one).as_secs_f64();
        println!("{count:7} {:>9.1?} {:>9.1?}   {ratio:.2}", times[0], median(&times));
    }
}

/// Returns the time of each round, fastest first.
async fn rounds(count: usize) -> Vec<Duration> {
    let folder = TempDir::new().expect("a folder");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(usable(count, &folder).await);
    }
    times.sort_unstable();
    times
}

fn median(times: &[Duration]) -> Duration {
    times[times.len() / 2]
}

/// Measures the time from the start until the tools of every server are listed.
async fn usable(count: usize, folder: &TempDir) -> Duration {
    let ground = UpstreamContext::plain(folder.path()).expect("an HTTP client");
    let ground = UpstreamContext { supervisor: Some(PathBuf::from(OURS)), ..ground };
    let plan = plan(count);
    let begun = Instant::now();
    let runtime = Runtime::start(&plan, &ground, RuntimeOptions::default());
    let catalog = runtime.handle().settled().await;
    let took = begun.elapsed();
    assert_eq!(catalog.tools.len(), count, "every server is usable");
    runtime.shutdown(Duration::ZERO).await;
    took
}

fn plan(count: usize) -> Plan {
    let entry = |number: usize| {
        format!(
            "  - {{name: s{number}, description: d, type: mcp, server: x, command: {HOSTILE:?}, env: {{{}: bench}}, \
             args: [--mode, slow_start, --delay, \"250\"]}}\n",
            Mark::NAME,
        )
    };
    let text = format!("tools:\n{}", (0..count).map(entry).collect::<String>());
    let env = Env {
        grants: Grants { commands: vec![PathBuf::from(HOSTILE)], ..Grants::default() },
        variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        ..Env::bare()
    };
    let (plan, diagnostics) = load(&text, &env);
    plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)))
}
