//! Tests the built-in Todo server, the first server a new user sees.

use serde_json::Value;
use std::process::{Command, Output};
use tempfile::TempDir;

fn wharf(folder: &TempDir, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
    command.args(words).current_dir(folder.path()).env_clear().env("HOME", folder.path());
    command.output().expect("wharf runs")
}

#[test]
fn builtin_todo_server_works_after_init() {
    let folder = TempDir::new().expect("a folder");
    for (words, code, expected) in [
        (&["init"][..], 0, ""),
        (&["tools"], 0, "todo__create_todo"),
        (&["call", "create_todo", "title=Milk", "tags:=[\"shop\"]"], 0, "\"title\":\"Milk\""),
        (&["call", "todo__list_todos"], 0, "\"count\":1"),
        (&["call", "todo:search_todos", "query=MILK"], 0, "\"count\":1"),
        (&["call", "search_todos", "keyword=milk"], 0, "\"count\":1"),
        (&["call", "create_todo", "title="], 2, "title"),
        (&["call", "delete_todo", "id:=7"], 1, "there is no todo with `todo_id` 7"),
        (&["call", "delete_todo", "todo_id:=7"], 1, "there is no todo with `todo_id` 7"),
        (&["prompt", "plan_my_day"], 0, "#1 Milk (shop)"),
        (&["resources"], 0, "todo://1"),
        (&["read", "todo://1"], 0, "\"id\":1"),
        (&["doctor"], 0, "todo"),
    ] {
        let output = wharf(&folder, words);
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    let listed = wharf(&folder, &["tools", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed["sources"][0]["state"], "connected");
    assert!(folder.path().join(".local/share/wharf/wharf.db").is_file());
}

#[test]
fn todo_start_errors_are_reported() {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("file"), "x".repeat(200)).expect("a file");
    for (words, code, expected) in [
        (&["todo", "--database", "mysql://x"][..], 2, "error: a database address is `sqlite:PATH` or"),
        (
            &["todo", "--database", "sqlite:file"],
            69,
            "error: the database cannot be opened: file is not a database",
        ),
        (
            &["todo", "--database", "postgres://me:hunter2@127.0.0.1:1/x"],
            69,
            "error: the database cannot be opened: ",
        ),
        (&["todo", "--transport", "http", "--listen", "nowhere"], 69, "error: cannot listen on `nowhere`"),
        (&["todo", "--transport", "carrier-pigeon"], 2, "possible values: stdio, http, sse, websocket"),
    ] {
        let output = wharf(&folder, words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(expected) && !said.contains("hunter2"), "{words:?}: {said}");
    }
}
