//! For every known cause of a failure, the cause itself, made to happen, and the hint that the program gives for it.
//!
//! The cases are data: which row of the table is meant, words of the cause, and an entry of an agent file. Those that
//! need the same surroundings are one agent file, asked about once. Nothing reaches further than loopback: registries of
//! packages and of images are servers of the test, but npm, uv and podman are the real ones.

mod calls;
mod containers;
pub(crate) mod far;
pub(crate) mod npm;
mod processes;
mod remote;
mod servers;
mod uv;

use crate::servers::place::{Place, Said};
use serde_json::Value;
use std::{collections::BTreeSet, fs};
use wharf_runtime::known_causes;

/// One way to make a known cause happen.
struct Case {
    /// The row of the table.
    row: &'static str,
    /// Words of the cause, as the user reads it.
    cause: &'static str,
    /// What stands behind the name in the agent file. Words in braces are filled in.
    entry: &'static str,
}

/// Rows whose cause is no single server's doing, and who makes it happen: a source rests only where sources live on, and a
/// name changes where it leads only in the network.
const ELSEWHERE: &[(&str, &str)] = &[
    ("breaker-open", "serve::a_server_that_keeps_failing_rests"),
    ("out-of-reach", "the runtime's registered::a_name_that_leads_inside_is_not_dialled"),
];

#[test]
fn every_row_of_the_table_happens() {
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
        processes::NOWHERE,
        processes::NO_SCRATCH,
    ];
    let happen: BTreeSet<&str> = all.iter().flat_map(|cases| cases.iter().map(|it| it.row)).collect();
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().map(|(row, _)| *row).collect();
    let known: BTreeSet<&str> = known_causes().iter().map(|it| it.name).collect();
    let covered: BTreeSet<&str> = happen.union(&elsewhere).copied().collect();
    assert_eq!(known, covered, "each row of the table needs a case, and each case a row");
}

/// An agent file with an entry for each case, whose name is that of the row and a number.
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

/// A place where these programs may be run.
fn place(cases: &[Case], filled: &[(&str, String)], commands: &[&str]) -> Place {
    let place = Place::with(&agent_file(cases, filled));
    place.make_folder("state");
    let settings = format!("[grants]\ncommands = {commands:?}\n");
    fs::write(place.path("state/wharf.toml"), settings).expect("the file can be written");
    place
}

/// Asks about all servers at once, and compares what is said of each.
async fn check(place: &Place, cases: &[Case]) -> Value {
    let said = place.wharf("doctor --json").await;
    said.check(69, "");
    let report = said.json();
    let sources = report["sources"].as_array().expect("a list");
    assert_eq!(sources.len(), cases.len(), "{report:#}");
    let errors = sources.iter().map(|it| &it["error"]);
    let wrong: Vec<String> = cases
        .iter()
        .enumerate()
        .zip(errors)
        .filter_map(|((number, case), it)| differs(number, case, it))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    report
}

/// What is wrong with what was said about a case.
fn differs(number: usize, case: &Case, error: &Value) -> Option<String> {
    let known = known_causes().iter().find(|it| it.name == case.row).expect("a row of the table");
    let hint = known.hint.replace("{name}", &name(number, case));
    let message = error["message"].as_str().unwrap_or_default();
    let stderr = error["stderr"].as_str().unwrap_or_default();
    let told = message.contains(case.cause) || stderr.contains(case.cause);
    (!is_filled(&hint, error["hint"].as_str().unwrap_or_default()) || !told)
        .then(|| format!("{}: {hint:?} for {:?} was expected, not {error:#}", case.row, case.cause))
}

/// Whether a text is the hint, with something in the place of each word in braces.
fn is_filled(hint: &str, text: &str) -> bool {
    const BRACES: [&str; 6] = ["{line}", "{word}", "{variables}", "{remedy}", "{args}", "{folder}"];
    let hint = BRACES.iter().fold(hint.to_owned(), |hint, it| hint.replace(it, "\0"));
    let mut rest = text;
    for (at, part) in hint.split('\0').enumerate() {
        let found = if at == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        // Something is there, and not the braces themselves.
        let Some(found) = found.filter(|it| at == 0 || *it > 0 || part.is_empty()) else { return false };
        rest = &rest[found + part.len()..];
    }
    !text.contains("{word}") && !text.contains("{line}") && (hint.contains('\0') || rest.is_empty())
}

/// The same for the answer to one call.
fn check_call(said: &Said, case: &Case) {
    let error = &said.json()["error"];
    let wrong = differs(0, case, error);
    assert!(wrong.is_none(), "{wrong:?}");
}
