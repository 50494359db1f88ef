//! Runs the official conformance suite against our client, our server and our gateway. Exactly the scenarios in
//! `expected-failures.txt` may fail.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::gateway::{Gateway, Hops};
use crate::official_suite::{self, EARLIER, LATEST};
use crate::server::Server;

const CLIENT: &str = env!("CARGO_BIN_EXE_conformance-client");
const EXPECTED: &str = include_str!("../../expected-failures.txt");

/// Serializes the runs: each starts dozens of processes, and some scenarios measure time.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One run of a suite.
pub(crate) struct Run {
    /// Name in the list of expected failures.
    pub(crate) name: &'static str,
    /// Folder of the suite version.
    pub(crate) suite: &'static str,
    side: Side,
    /// Arguments that select the scenarios.
    selection: Arguments,
    /// Expected number of scenarios.
    pub(crate) scenarios: usize,
}

enum Side {
    Client,
    /// A server with these arguments.
    Server(Arguments),
    /// Gateways in front of a server with these arguments.
    Gateway(Hops, Arguments),
}

const NEW: [&str; 2] = ["--requirements", "2026-07-28"];
const CURRENT: [&str; 2] = ["--requirements", "2025-11-25"];
const JUNE: [&str; 4] = ["--suite", "all", "--spec-version", "2025-06-18"];
const MARCH: [&str; 4] = ["--suite", "all", "--spec-version", "2025-03-26"];
const ALL: [&str; 2] = ["--suite", "all"];

pub(crate) const RUNS: &[Run] = &[
    client("client-2025-11-25", LATEST, &CURRENT, 25),
    client("client-2026-07-28", LATEST, &NEW, 39),
    client("client-2025-06-18", LATEST, &JUNE, 5),
    client("client-2025-03-26", LATEST, &MARCH, 2),
    client("client-0.1.16", EARLIER, &ALL, 26),
    server("server-2025-11-25", LATEST, &CURRENT, 33, &[]),
    server("server-2025-11-25", LATEST, &CURRENT, 33, &["--era", "legacy"]),
    server("server-2026-07-28", LATEST, &NEW, 50, &[]),
    server("server-2026-07-28", LATEST, &NEW, 50, &["--era", "modern"]),
    server("server-2025-06-18", LATEST, &JUNE, 27, &[]),
    server("server-2025-03-26", LATEST, &MARCH, 1, &[]),
    server("server-0.1.16", EARLIER, &ALL, 32, &[]),
    gateway("gateway-2025-11-25", &CURRENT, 33, Hops::One, &[]),
    gateway("gateway-2026-07-28", &NEW, 50, Hops::One, &[]),
    gateway("gateway-2025-11-25", &CURRENT, 33, Hops::Two, &[]),
    gateway("gateway-2026-07-28", &NEW, 50, Hops::Two, &[]),
    gateway("gateway-2025-11-25", &CURRENT, 33, Hops::One, &["--era", "legacy"]),
    gateway("gateway-legacy-2026-07-28", &NEW, 50, Hops::One, &["--era", "legacy"]),
    gateway("gateway-2025-11-25", &CURRENT, 33, Hops::One, &["--era", "modern"]),
];

type Arguments = &'static [&'static str];

const fn client(name: &'static str, suite: &'static str, selection: Arguments, scenarios: usize) -> Run {
    Run { name, suite, side: Side::Client, selection, scenarios }
}

const fn server(
    name: &'static str,
    suite: &'static str,
    selection: Arguments,
    scenarios: usize,
    arguments: Arguments,
) -> Run {
    Run { name, suite, side: Side::Server(arguments), selection, scenarios }
}

const fn gateway(
    name: &'static str,
    selection: Arguments,
    scenarios: usize,
    hops: Hops,
    arguments: Arguments,
) -> Run {
    Run { name, suite: LATEST, side: Side::Gateway(hops, arguments), selection, scenarios }
}

#[test]
fn client_passes_the_official_suite() {
    RUNS.iter().filter(|run| matches!(run.side, Side::Client)).for_each(check);
}

#[test]
fn server_passes_the_official_suite() {
    RUNS.iter().filter(|run| matches!(run.side, Side::Server(_))).for_each(check);
}

#[test]
fn gateway_passes_the_official_suite_in_front_of_either_era() {
    RUNS.iter().filter(|run| matches!(run.side, Side::Gateway(..))).for_each(check);
}

#[test]
fn every_expected_failure_belongs_to_a_run_and_has_a_reason() {
    for ((name, scenario), reason) in expected_failures() {
        let known = RUNS.iter().any(|run| run.name == name);
        assert!(known && reason.len() > 10, "{name} {scenario}: {reason}");
    }
}

#[track_caller]
fn check(run: &Run) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder for the results");
    let output = run.run_suite(folder.path(), run.selection);
    let verdicts = official_suite::verdicts(&output);
    assert_eq!(verdicts.len(), run.scenarios, "{}: the suite ran something else\n{output}", run.name);
    let expected = expected_failures();
    let expected: BTreeSet<&str> =
        expected.keys().filter(|(name, _)| *name == run.name).map(|(_, scenario)| *scenario).collect();
    let failed = verdicts.iter().filter(|(_, passed)| !**passed).map(|(name, _)| name.as_str());
    // Retries a failed scenario alone: thirty concurrent clients on two processors cause late timers.
    let failed: BTreeSet<&str> =
        failed.filter(|name| expected.contains(name) || !run.passes_alone(folder.path(), name)).collect();
    let total = official_suite::total(&output);
    println!("{}: {} scenarios, {} fail as expected. {total}", run.name, verdicts.len(), failed.len());
    let unexpected: Vec<_> = failed.difference(&expected).collect();
    assert!(unexpected.is_empty(), "{}: failed: {unexpected:?}\n{output}", run.name);
    let passed: Vec<_> = expected.difference(&failed).collect();
    assert!(passed.is_empty(), "{}: no longer fails, so take it off the list: {passed:?}", run.name);
}

impl Run {
    /// Runs the suite and returns its output.
    fn run_suite(&self, folder: &Path, selection: &[&str]) -> String {
        let mut command = official_suite::command(self.suite, folder);
        let _running: Box<dyn Any> = match &self.side {
            Side::Client => {
                command.args(["client", "--command", CLIENT, "--timeout", "30000"]);
                Box::new(())
            }
            Side::Server(arguments) => {
                let server = Server::start(arguments);
                command.args(["server", "--url", &server.url]);
                Box::new(server)
            }
            Side::Gateway(hops, arguments) => {
                let gateway = Gateway::start(arguments, *hops);
                command.args(["server", "--url", &gateway.url]);
                Box::new(gateway)
            }
        };
        official_suite::output(command.args(selection).args(["--output-dir", "results"]))
    }

    fn passes_alone(&self, folder: &Path, scenario: &str) -> bool {
        println!("{}: `{scenario}` failed among others; running it alone", self.name);
        // The earlier suite supports one protocol version only, so its runs name none.
        let version = self.selection.iter().find(|word| word.starts_with("20"));
        // An extension belongs to no version, so only `--force` runs it alone.
        let version = version.map(|version| ["--force", "--spec-version", version]);
        let version = version.as_ref().map_or(&[][..], |words| words);
        official_suite::has_passed(&self.run_suite(folder, &[&["--scenario", scenario], version].concat()))
    }
}

/// Parses the expected failures: the reason, by run and scenario.
pub(crate) fn expected_failures() -> BTreeMap<(&'static str, &'static str), &'static str> {
    let lines = EXPECTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &'static str| {
        let (what, reason) = line.split_once(": ")?;
        Some((what.split_once(' ')?, reason))
    };
    lines.map(|line| read(line).unwrap_or_else(|| panic!("`{line}` is not an expected failure"))).collect()
}
