//! Tests `wharf call` while a gateway with the same state folder runs.

use super::{CliWorkspace, json, scripted_server::workspace_with_server, stderr, stdout};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Output, Stdio},
};

/// A running gateway, stopped on drop.
struct RunningServe(Child);

impl RunningServe {
    fn start(workspace: &CliWorkspace) -> RunningServe {
        let mut child = workspace
            .command(env!("CARGO_BIN_EXE_wharf").as_ref())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("wharf runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert!(lines.any(|it| it.is_ok_and(|it| it.starts_with("MCP "))), "it says when it is ready");
        RunningServe(child)
    }
}

impl Drop for RunningServe {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Counts the starts of the server.
fn starts(workspace: &CliWorkspace) -> usize {
    let log = fs::read_to_string(workspace.path("log")).unwrap_or_default();
    log.matches("\"initialize\"").count()
}

/// Returns the JSON output without the fields that differ between calls.
fn comparable(output: &Output) -> Value {
    let mut report = json(output);
    for key in ["request_id", "duration_ms"] {
        report["metadata"][key] = Value::Null;
    }
    report
}

#[test]
fn a_call_uses_the_running_gateway_and_prints_the_same() {
    let workspace = workspace_with_server();
    let agent_file = fs::read_to_string(workspace.path("agent.yaml")).expect("the file");
    let todo = "  - {name: todo, description: Things to do, type: mcp, server: builtin:todo}\n";
    workspace.write("agent.yaml", agent_file + todo);
    let _gateway = RunningServe::start(&workspace);
    for (words, code, started) in [
        (&["call", "own__json"][..], 0, 1),
        (&["call", "own:json"], 0, 1),
        (&["call", "own__json", "x=1"], 2, 1),
        (&["call", "own__echo", "level=nope"], 2, 1),
        (&["call", "own__echo", "limit=1"], 2, 1),
        (&["call", "own__never", "--timeout", "1"], 124, 1),
        (&["call", "todo__update_todo", "id=77", "status=completed"], 1, 0),
        (&["call", "todo__create_todo", "title:=1"], 2, 0),
        (&["call", "own:nope"], 66, 1),
    ] {
        let before = starts(&workspace);
        let (through, document) = (workspace.wharf(words), workspace.wharf(&[words, &["--json"]].concat()));
        // A tool that the gateway does not know is looked up at the server directly.
        let expected = if code == 66 { before + 2 } else { before.max(started) };
        assert_eq!(starts(&workspace), expected, "{words:?} started a server");
        let direct = workspace.wharf(&[words, &["--direct"]].concat());
        assert_eq!(through.status.code(), Some(code), "{words:?}: {}", stderr(&through));
        assert_eq!(direct.status.code(), Some(code), "{words:?}: {}", stderr(&direct));
        assert_eq!((stdout(&through), stderr(&through)), (stdout(&direct), stderr(&direct)), "{words:?}");
        let direct = workspace.wharf(&[words, &["--direct", "--json"]].concat());
        assert_eq!(document.status.code(), Some(code), "{words:?}");
        assert_eq!(comparable(&document), comparable(&direct), "{words:?}");
    }
}

#[test]
fn a_gateway_of_another_agent_file_or_with_other_settings_is_not_used() {
    let workspace = workspace_with_server();
    fs::copy(workspace.path("agent.yaml"), workspace.path("other.yaml")).expect("a copy");
    let gateway = RunningServe::start(&workspace);
    assert_eq!(workspace.wharf(&["call", "own__json"]).status.code(), Some(0));
    let before = starts(&workspace);
    for (number, words) in [
        &["call", "own__json", "-f", "other.yaml"][..],
        &["call", "own__json", "--settings", "state/wharf.toml"],
        &["call", "own__json", "--direct"],
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(workspace.wharf(words).status.code(), Some(0), "{words:?}");
        assert_eq!(starts(&workspace), before + number + 1, "{words:?}");
    }
    // A killed gateway is not used.
    drop(gateway);
    assert_eq!(workspace.wharf(&["call", "own__json"]).status.code(), Some(0));
}
