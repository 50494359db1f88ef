//! Tests third-party clients: the official Inspector and the official Python client list and call all five tools.

use super::{engines::Engine, server::Listening};
use crate::servers::workspace::{path_with, tool};
use serde_json::Value;
use std::{path::Path, process::Command};

const INSPECTOR: &str =
    "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// Tool, arguments and part of the expected response, in order.
const CALLS: [(&str, &str, &str); 5] = [
    ("create_todo", r#"{"title":"Milk","priority":2,"tags":["shop"],"due_date":"2026-01-31"}"#, r#""id":1"#),
    ("list_todos", r#"{"tags":["shop"],"priority":2}"#, r#""count":1"#),
    ("update_todo", r#"{"todo_id":1,"status":"completed"}"#, r#""status":"completed""#),
    ("search_todos", r#"{"query":"MILK"}"#, r#""count":1"#),
    ("delete_todo", r#"{"todo_id":1}"#, r#""deleted":true"#),
];

#[test]
fn inspector_lists_and_calls_over_stdio() {
    let engine = Engine::sqlite();
    let database = engine.address();
    inspect(&[env!("CARGO_BIN_EXE_wharf"), "todo", "--database", &database]);
}

#[test]
fn inspector_lists_and_calls_over_http() {
    let engine = Engine::sqlite();
    let listening = Listening::start(&engine.address(), "http");
    inspect(&["--transport", "http", "--server-url", &listening.url]);
}

fn inspect(target: &[&str]) {
    let listed = inspector(target, &["--method", "tools/list"]);
    let names: Vec<&str> =
        listed["tools"].as_array().expect("tools").iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, CALLS.map(|(name, ..)| name));
    for (name, arguments, expected) in CALLS {
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        let pairs: Vec<String> = arguments
            .as_object()
            .expect("an object")
            .iter()
            .map(|(key, value)| match value.as_str() {
                Some(text) => format!("{key}={text}"),
                None => format!("{key}={value}"),
            })
            .collect();
        let mut words = vec!["--method", "tools/call", "--tool-name", name];
        pairs.iter().for_each(|pair| words.extend(["--tool-arg", pair]));
        let result = inspector(target, &words);
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(expected), "{name}: {result}");
        assert!(result["structuredContent"].is_object(), "{name}: {result}");
    }
}

fn inspector(target: &[&str], words: &[&str]) -> Value {
    let mut command = Command::new("node");
    command.arg(tool(INSPECTOR)).arg("--cli").args(target).args(words).env("PATH", path_with([]));
    let output = command.output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}: {said}"))
}

#[test]
fn python_client_lists_and_calls_over_stdio() {
    let engine = Engine::sqlite();
    python(&["stdio", env!("CARGO_BIN_EXE_wharf"), "todo", "--database", &engine.address()]);
}

#[test]
fn python_client_lists_and_calls_over_http() {
    let engine = Engine::sqlite();
    let listening = Listening::start(&engine.address(), "http");
    python(&["http", &listening.url]);
}

#[test]
fn python_client_lists_and_calls_over_sse() {
    let engine = Engine::sqlite();
    let listening = Listening::start(&engine.address(), "sse");
    python(&["sse", &listening.url]);
}

/// Runs the Python client, which validates structured results against the output schemas itself.
fn python(target: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/todo/client.py");
    let output = Command::new(tool("python/bin/python")).arg(script).args(target).output();
    let output = output.expect("python runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("create_todo list_todos update_todo search_todos delete_todo"), "{said}");
    for (name, _, expected) in CALLS {
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(name) && line.contains(expected), "{name}: {line}{said}");
    }
}
