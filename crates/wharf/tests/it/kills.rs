//! Kills the gateway at random moments under load: every acknowledged call is in the journal after the restart.
//!
//! Several clients call over REST and MCP at the same time. The gateway gets SIGKILL and restarts on the same
//! database, and the test looks up every call that got a response. `WHARF_KILLS` is the number of kills;
//! `cargo xtask kills` sets it.

mod callers;
pub(crate) mod gateway;

use crate::todo::postgres::Postgres;
use callers::{Acknowledged, Door};
use gateway::Gateway;
use std::{collections::BTreeMap, time::Duration};
use tempfile::TempDir;

/// Default number of kills.
const FEW: usize = 12;

/// Number of SQLite kills per PostgreSQL kill, because both exercise the same code of ours.
const SHARE: usize = 4;

/// Timeout for the first responses.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum time between the first response and the kill, in milliseconds.
const LIFE: u64 = 400;

#[tokio::test]
async fn sqlite() {
    let folder = TempDir::new().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("wharf.db").display());
    kill_often("SQLite", &database, times()).await;
}

#[tokio::test]
async fn postgres() {
    let server = Postgres::start();
    kill_often("PostgreSQL", &server.address(), times().div_ceil(SHARE)).await;
}

#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says how often")]
fn times() -> usize {
    std::env::var("WHARF_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(FEW)
}

#[expect(clippy::print_stdout, reason = "whoever kills a thousand times wants to hear of it")]
async fn kill_often(engine: &str, database: &str, times: usize) {
    let home = TempDir::new().expect("a folder");
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut known, mut all) = (Acknowledged::default(), BTreeMap::<Door, usize>::new());
    for kill in 0..times {
        let gateway = Gateway::start(home.path(), database).await;
        check(&gateway, &known, engine, kill, seed).await;
        known = live_and_die(gateway, kill, Duration::from_millis(random.u64(..LIFE))).await;
        known.values().for_each(|door| *all.entry(*door).or_default() += 1);
    }
    let gateway = Gateway::start(home.path(), database).await;
    check(&gateway, &known, engine, times, seed).await;
    let sum: usize = all.values().sum();
    assert!(all.len() == Door::ALL.len(), "not every door was used: {all:?}");
    println!(
        "{engine}: {times} kills, {sum} calls acknowledged {all:?}, none without its record (seed {seed})"
    );
}

/// Runs all callers and kills the gateway some time after the first response, or after the first at every
/// interface. Returns the calls that were acknowledged.
async fn live_and_die(gateway: Gateway, kill: usize, life: Duration) -> Acknowledged {
    let (callers, mut answered) = callers::begin(&gateway, kill);
    let doors = if kill.is_multiple_of(2) { Door::ALL.len() } else { 1 };
    let answers = async { answered.wait_for(|it| it.len() >= doors).await.is_ok() };
    if !tokio::time::timeout(PATIENCE, answers).await.unwrap_or(false) {
        gateway.kill().await;
        let (_, reasons) = callers.finish().await;
        panic!("kill {kill}: not every door answers: {reasons:#?}");
    }
    tokio::time::sleep(life).await;
    gateway.kill().await;
    callers.finish().await.0
}

/// Checks that each of these calls is in the journal, with the right interface.
async fn check(gateway: &Gateway, expected: &Acknowledged, engine: &str, kill: usize, seed: u64) {
    let mut missing = expected.clone();
    let mut pages = gateway.journal();
    while !missing.is_empty() {
        let Some(page) = pages.next().await else { break };
        for call in &page {
            let title = call["parameters"]["title"].as_str().unwrap_or_default();
            let is_right = |door: &Door| call["status"] == "success" && call["door"] == door.name();
            if missing.get(title).is_some_and(is_right) {
                missing.remove(title);
            }
        }
    }
    let of = expected.len();
    assert!(
        missing.is_empty(),
        "{engine}, kill {kill}, seed {seed}: of {of} calls, no record of {missing:?}"
    );
}
