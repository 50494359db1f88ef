//! Kills the gateway at random moments under load: every acknowledged call is in the journal after the restart.
//!
//! Several clients call over REST and MCP at the same time. The gateway gets SIGKILL and restarts on the same
//! database, and the test looks up every call that got a response. `WHARF_KILLS` is the number of kills;
//! `cargo xtask kills` sets it.

mod callers;
pub(crate) mod gateway;

use crate::todo::postgres::Postgres;
use callers::{Acknowledged, Interface};
use gateway::Gateway;
use std::{collections::BTreeMap, time::Duration};
use tempfile::TempDir;

/// Default number of kills.
const DEFAULT_KILLS: usize = 12;

/// Number of SQLite kills per PostgreSQL kill, because both exercise the same code of ours.
const SQLITE_KILLS_PER_POSTGRES_KILL: usize = 4;

/// Timeout for the first responses.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time between the first response and the kill, in milliseconds.
const MAX_LIFE_MILLIS: u64 = 400;

#[tokio::test]
async fn sqlite_journal_survives_kills() {
    let folder = TempDir::new().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("wharf.db").display());
    kill_often("SQLite", &database, times()).await;
}

#[tokio::test]
async fn postgres_journal_survives_kills() {
    let server = Postgres::start();
    kill_often("PostgreSQL", &server.address(), times().div_ceil(SQLITE_KILLS_PER_POSTGRES_KILL)).await;
}

#[expect(clippy::disallowed_methods, reason = "the environment sets the number of kills")]
fn times() -> usize {
    std::env::var("WHARF_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(DEFAULT_KILLS)
}

#[expect(clippy::print_stdout, reason = "a long run prints its result")]
async fn kill_often(engine: &str, database: &str, times: usize) {
    let home = TempDir::new().expect("a folder");
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut known, mut all) = (Acknowledged::default(), BTreeMap::<Interface, usize>::new());
    for kill in 0..times {
        let gateway = Gateway::start(home.path(), database).await;
        check(&gateway, &known, engine, kill, seed).await;
        known = run_until_killed(gateway, kill, Duration::from_millis(random.u64(..MAX_LIFE_MILLIS))).await;
        known.values().for_each(|interface| *all.entry(*interface).or_default() += 1);
    }
    let gateway = Gateway::start(home.path(), database).await;
    check(&gateway, &known, engine, times, seed).await;
    let sum: usize = all.values().sum();
    assert!(all.len() == Interface::ALL.len(), "not every interface was used: {all:?}");
    println!(
        "{engine}: {times} kills, {sum} calls acknowledged {all:?}, none without its record (seed {seed})"
    );
}

/// Runs all callers and kills the gateway some time after the first response, or after the first at every
/// interface. Returns the calls that were acknowledged.
async fn run_until_killed(gateway: Gateway, kill: usize, life: Duration) -> Acknowledged {
    let (callers, mut answered) = callers::start_callers(&gateway, kill);
    let interfaces = if kill.is_multiple_of(2) { Interface::ALL.len() } else { 1 };
    let answers = async { answered.wait_for(|it| it.len() >= interfaces).await.is_ok() };
    if !tokio::time::timeout(STEP_TIMEOUT, answers).await.unwrap_or(false) {
        gateway.kill().await;
        let (_, reasons) = callers.finish().await;
        panic!("kill {kill}: not every interface answers: {reasons:#?}");
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
            let is_right =
                |interface: &Interface| call["status"] == "success" && call["via"] == interface.name();
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
