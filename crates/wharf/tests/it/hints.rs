//! Causes every known failure for real, and checks the hint that the program prints for it.
//!
//! The cases are data: the row of the table of known causes, part of the error message, and an entry of an agent
//! file. Cases with the same environment share one agent file and one run. Nothing leaves the loopback interface:
//! package and image registries are test servers, but npm, uv and podman are real.

mod calls;
mod containers;
pub(crate) mod fake_servers;
pub(crate) mod npm;
mod processes;
mod remote;
mod servers;
mod uv;

use crate::servers::workspace::{RunOutput, Workspace};
use serde_json::Value;
use std::{collections::BTreeSet, fs};
use wharf_runtime::known_causes;

/// One way to cause a known failure.
struct Case {
    /// Row of the table of known causes.
    row: &'static str,
    /// Part of the error message, as the user reads it.
    cause: &'static str,
    /// Rest of the entry in the agent file. Words in braces are placeholders.
    entry: &'static str,
}

/// Rows that no single server can cause, and the tests that cover them. A circuit breaker opens only where sources
/// are long-lived, and a name changes its address only in the network.
const TESTED_ELSEWHERE: &[(&str, &str)] = &[
    ("breaker-open", "serve::a_server_that_keeps_failing_rests"),
    ("sign-in", "login::a_workload_signs_in_without_a_user_and_stores_nothing"),
    ("out-of-reach", "the runtime's registered::a_name_that_leads_inside_is_not_dialled"),
];

#[test]
fn every_known_cause_has_a_test() {
    let all = [
        calls::CASES,
        containers::CASES,
        npm::CASES,
        processes::CASES,
        remote::CASES,
        servers::CASES,
        uv::CASES,
        npm::UNREACHABLE,
        uv::CACHED,
        uv::NEWER,
        uv::UNREACHABLE,
        containers::NO_DAEMON,
        containers::NO_INIT,
        processes::EMPTY_PATH,
        processes::NO_SCRATCH,
    ];
    let tested: BTreeSet<&str> = all.iter().flat_map(|cases| cases.iter().map(|it| it.row)).collect();
    let tested_elsewhere: BTreeSet<&str> = TESTED_ELSEWHERE.iter().map(|(row, _)| *row).collect();
    let known: BTreeSet<&str> = known_causes().iter().map(|it| it.name).collect();
    let covered: BTreeSet<&str> = tested.union(&tested_elsewhere).copied().collect();
    assert_eq!(known, covered, "each row of the table needs a case, and each case a row");
}

/// Builds an agent file with an entry for each case, named after the row and a number.
fn agent_file(cases: &[Case], filled: &[(&str, String)]) -> String {
    let entry = |(number, case): (usize, &Case)| {
        let entry = filled
            .iter()
            .fold(case.entry.to_owned(), |entry, (word, value)| entry.replace(&format!("{{{word}}}"), value));
        format!("  - {{name: {}, description: d, type: mcp, server: x, {entry}}}\n", name(number, case))
    };
    ["tools:\n".to_owned()].into_iter().chain(cases.iter().enumerate().map(entry)).collect()
}

fn name(number: usize, case: &Case) -> String {
    format!("case-{number}-{}", case.row)
}

/// Sets up a folder in which these programs may run.
fn workspace(cases: &[Case], filled: &[(&str, String)], commands: &[&str]) -> Workspace {
    let workspace = Workspace::with(&agent_file(cases, filled));
    workspace.make_folder("state");
    let settings = format!("[grants]\ncommands = {commands:?}\n");
    fs::write(workspace.path("state/wharf.toml"), settings).expect("the file can be written");
    workspace
}

/// Runs `wharf doctor` once and compares its report for each server.
async fn check(workspace: &Workspace, cases: &[Case]) -> Value {
    let said = workspace.wharf("doctor --json").await;
    said.check(69, "");
    let report = said.json();
    let sources = report["sources"].as_array().expect("a list");
    assert_eq!(sources.len(), cases.len(), "{report:#}");
    let errors = sources.iter().map(|it| &it["error"]);
    let wrong: Vec<String> = cases
        .iter()
        .enumerate()
        .zip(errors)
        .filter_map(|((number, case), it)| difference(number, case, it))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    report
}

/// Describes the difference between the report and the case, if any.
fn difference(number: usize, case: &Case, error: &Value) -> Option<String> {
    let known = known_causes().iter().find(|it| it.name == case.row).expect("a row of the table");
    let hint = known.hint.replace("{name}", &name(number, case));
    let message = error["message"].as_str().unwrap_or_default();
    let stderr = error["stderr"].as_str().unwrap_or_default();
    let has_cause = message.contains(case.cause) || stderr.contains(case.cause);
    (!matches_template(&hint, error["hint"].as_str().unwrap_or_default()) || !has_cause)
        .then(|| format!("{}: {hint:?} for {:?} was expected, not {error:#}", case.row, case.cause))
}

/// Checks that a text is the hint with something in place of each word in braces.
fn matches_template(hint: &str, text: &str) -> bool {
    const BRACES: [&str; 6] = ["{line}", "{word}", "{variables}", "{remedy}", "{args}", "{folder}"];
    let hint = BRACES.iter().fold(hint.to_owned(), |hint, it| hint.replace(it, "\0"));
    let mut rest = text;
    for (at, part) in hint.split('\0').enumerate() {
        let found = if at == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        // Requires replaced text, and not the braces themselves.
        let Some(found) = found.filter(|it| at == 0 || *it > 0 || part.is_empty()) else { return false };
        rest = &rest[found + part.len()..];
    }
    !text.contains("{word}") && !text.contains("{line}") && (hint.contains('\0') || rest.is_empty())
}

/// Checks the response to one call against a case.
fn check_call(said: &RunOutput, case: &Case) {
    let error = &said.json()["error"];
    let wrong = difference(0, case, error);
    assert!(wrong.is_none(), "{wrong:?}");
}
