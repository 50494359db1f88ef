//! Runs the official suite against servers on the SDKs of the protocol: directly, and through the gateway over every
//! transport. Each scenario that passes directly has to pass through. `docs/conformance.md` holds the table.

mod page;

use crate::gateway::Gateway;
use crate::official_suite::{self, LATEST};
use crate::server::Server;
use crate::suite::ONE_AT_A_TIME;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;
use std::{fs, thread};
use tempfile::TempDir;

/// A server on an SDK.
pub(crate) struct Sdk {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    start: fn(&Path) -> Command,
    /// Begin of the names of the scenarios that fail directly, and why.
    pub(crate) lacks: Option<(&'static str, &'static str)>,
}

const TASKS: Option<(&str, &str)> = Some(("tasks-", "has no tasks of 2026-07-28"));

pub(crate) const SDKS: [Sdk; 3] = [
    Sdk { name: "Rust", package: "rmcp 3.8", start: rust, lacks: None },
    Sdk {
        name: "TypeScript",
        package: "@modelcontextprotocol/server 2.4.0",
        start: typescript,
        lacks: TASKS,
    },
    Sdk { name: "Python", package: "mcp 2.3.0", start: python, lacks: TASKS },
];

/// Versions of the protocol, and how many scenarios the suite has for each.
pub(crate) const VERSIONS: [(&str, usize); 2] = [("2025-11-25", 33), ("2026-07-28", 50)];

/// The way from the suite to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Route {
    Direct,
    /// One gateway, over HTTP on both sides.
    Http,
    /// Two gateways; the one before the server talks to the other over stdio, SSE or WebSocket.
    Stdio,
    Sse,
    WebSocket,
}

pub(crate) const ROUTES: [Route; 5] =
    [Route::Direct, Route::Http, Route::Stdio, Route::Sse, Route::WebSocket];

/// Scenarios that passed and failed, by SDK, version and route.
pub(crate) type Results = BTreeMap<(&'static str, &'static str, Route), BTreeMap<String, bool>>;

#[test]
fn what_passes_directly_passes_through_the_gateway() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let results: Results = thread::scope(|scope| {
        let running: Vec<_> = SDKS.iter().map(|sdk| scope.spawn(|| run(sdk))).collect();
        running.into_iter().flat_map(|it| it.join().expect("the runs of one SDK")).collect()
    });
    let mut lost = Vec::new();
    for sdk in &SDKS {
        for (version, scenarios) in VERSIONS {
            let of = |route| &results[&(sdk.name, version, route)];
            assert_eq!(of(Route::Direct).len(), scenarios, "{} {version}: {results:?}", sdk.name);
            let unexpected: Vec<_> = failed(of(Route::Direct)).filter(|name| !sdk.lacks(name)).collect();
            assert!(unexpected.is_empty(), "{} {version} fails directly: {unexpected:?}", sdk.name);
            for route in ROUTES {
                let failed: BTreeSet<&str> =
                    failed(of(route)).filter(|name| of(Route::Direct)[*name]).collect();
                lost.extend(failed.iter().map(|name| format!("{} {version} {route:?}: {name}", sdk.name)));
            }
        }
    }
    assert!(lost.is_empty(), "pass directly and not through the gateway: {lost:#?}");
    page::check(&results);
}

fn failed(verdicts: &BTreeMap<String, bool>) -> impl Iterator<Item = &str> {
    verdicts.iter().filter(|(_, passed)| !**passed).map(|(name, _)| name.as_str())
}

impl Sdk {
    fn lacks(&self, scenario: &str) -> bool {
        self.lacks.is_some_and(|(begin, _)| scenario.starts_with(begin))
    }
}

/// Runs the suite on every route to one server.
fn run(sdk: &Sdk) -> Results {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::spawn(&mut (sdk.start)(folder.path()));
    let entry = format!(r#"transport: http, url: "{}""#, server.url);
    let near = Gateway::in_front_of(&entry);
    let base = near.url.strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp")).expect("a URL");
    let stdio = Gateway::in_front_of_stdio(&entry);
    let sse = Gateway::in_front_of(&format!(r#"transport: sse, url: "http://{base}/sse""#));
    let websocket = Gateway::in_front_of(&format!(r#"transport: websocket, url: "ws://{base}/ws""#));
    let urls = [&server.url, &near.url, &stdio.url, &sse.url, &websocket.url];
    thread::scope(|scope| {
        let runs = VERSIONS.map(|(version, _)| {
            scope.spawn(move || {
                let one = |(route, url): (Route, &String)| {
                    ((sdk.name, version, route), verdicts(sdk, url, version, route))
                };
                ROUTES.into_iter().zip(urls).map(one).collect::<Results>()
            })
        });
        runs.into_iter().flat_map(|it| it.join().expect("the runs of one version")).collect()
    })
}

/// Runs the suite, and again each scenario that failed, alone: several at a time cause late timers.
fn verdicts(sdk: &Sdk, url: &str, version: &str, route: Route) -> BTreeMap<String, bool> {
    let folder: TempDir = tempfile::tempdir().expect("a folder for the results");
    let run = |selection: &[&str]| {
        let mut command = official_suite::command(LATEST, folder.path());
        command.args(["server", "--url", url]).args(selection).args(["--output-dir", "results"]);
        official_suite::output(&mut command)
    };
    let output = run(&["--requirements", version]);
    println!("{} {version} {route:?}: {}", sdk.name, official_suite::total(&output));
    let verdicts = official_suite::verdicts(&output).into_iter();
    verdicts
        .map(|(name, passed)| {
            let is_lacking = sdk.lacks(&name);
            let again = ["--force", "--spec-version", version, "--scenario", &name];
            let passed = passed || (!is_lacking && official_suite::has_passed(&run(&again)));
            (name, passed)
        })
        .collect()
}

fn rust(_: &Path) -> Command {
    Command::new(env!("CARGO_BIN_EXE_conformance-sdk-server"))
}

/// Copies the script beside a link to the packages that it imports.
fn typescript(folder: &Path) -> Command {
    let packages = official_suite::tool("typescript-2-server").join("node_modules");
    symlink(packages, folder.join("node_modules")).expect("a link");
    let script = folder.join("server.mjs");
    fs::copy(source("sdks/server.mjs"), &script).expect("a copy");
    let mut command = Command::new(official_suite::node());
    command.arg(script).arg(source("fixtures"));
    command
}

fn python(_: &Path) -> Command {
    let mut command = Command::new(official_suite::tool("python-2").join("bin/python"));
    command.arg("-B").arg(source("sdks/server.py"));
    command
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
