//! Tests that a gateway blocks a tool that differs from the lock, until an administrator accepts exactly that definition.

use super::disabled_tools::mcp;
use crate::serve::server::{Server, wharf};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    thread,
};
use tempfile::TempDir;
use wharf_config::{LockFile, LockedItem};

const AGENT: &str = "tools:\n  - {name: todo, description: d, type: mcp, server: 'builtin:todo'}\n";

/// Locks the Todo server, as if `delete_todo` had another description and `list_todos` did not exist.
fn locked_folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), AGENT).expect("a file");
    let locked = wharf(&folder).arg("lock").output().expect("wharf runs");
    assert!(locked.status.success(), "{locked:?}");
    let path = folder.path().join("wharf.lock");
    let mut lock = LockFile::parse(&fs::read(&path).expect("the lock")).expect("a lock");
    let tools = &mut lock.servers.get_mut("todo").expect("the server").tools;
    tools.remove("list_todos");
    let mut before = tools["delete_todo"].definition.clone();
    before["description"] = json!("Deletes nothing.");
    tools.insert("delete_todo".to_owned(), LockedItem::of(before));
    fs::write(path, lock.to_text()).expect("the lock");
    folder
}

fn item(server: &Server, id: &str) -> Value {
    let (status, list) = server.ask("GET", "/api/v1/lock?source=todo", None);
    assert_eq!(status, 200, "{list}");
    let items = list["items"].as_array().expect("items");
    items.iter().find(|it| it["tool_id"] == id).unwrap_or_else(|| panic!("{list}")).clone()
}

fn listed(server: &Server) -> usize {
    mcp(server, "tools/list", json!({}))["result"]["tools"].as_array().expect("tools").len()
}

#[test]
fn changed_tool_is_blocked_until_its_hash_is_accepted() {
    let server = Server::start_in(locked_folder(), &[]);
    assert_eq!(listed(&server), 3);
    let call = json!({ "arguments": { "todo_id": 1 } });
    let (status, refused) = server.ask("POST", "/api/v1/tools/todo:delete_todo/call", Some(&call));
    assert_eq!((status, &refused["type"]), (403, &json!("MCPToolChangedError")), "{refused}");
    let refused =
        mcp(&server, "tools/call", json!({ "name": "todo__delete_todo", "arguments": { "todo_id": 1 } }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let (_, tool) = server.ask("GET", "/api/v1/tools/todo:delete_todo", None);
    assert_eq!(tool["blocked"][0]["kind"], "text_changed", "{tool}");

    let changed = item(&server, "todo:delete_todo");
    assert_eq!(
        (&changed["state"], &item(&server, "todo:list_todos")["state"]),
        (&json!("changed"), &json!("new"))
    );
    assert_eq!(item(&server, "todo:create_todo")["state"], "same");
    let (_, only) = server.ask("GET", "/api/v1/lock?state=changed", None);
    assert_eq!(only["items"].as_array().map(Vec::len), Some(1), "{only}");

    let stale = json!({ "tool_id": "todo:delete_todo", "hash": changed["locked_hash"] });
    assert_eq!(server.ask("POST", "/api/v1/lock/accepted", Some(&stale)).0, 409);
    let unknown = json!({ "tool_id": "todo:nothing", "hash": changed["hash"] });
    assert_eq!(server.ask("POST", "/api/v1/lock/accepted", Some(&unknown)).0, 404);
    let reviewed = json!({ "tool_id": "todo:delete_todo", "hash": changed["hash"], "reason": "reviewed" });
    let (status, accepted) = server.ask("POST", "/api/v1/lock/accepted", Some(&reviewed));
    assert_eq!((status, &accepted["state"]), (201, &json!("accepted")), "{accepted}");
    assert_eq!(accepted["accepted_by"], "operator", "{accepted}");
    assert_eq!(listed(&server), 4);
    assert!(item(&server, "todo:delete_todo")["accepted_at"].is_string());
    let (_, file) = server.ask("GET", "/api/v1/lock/file", None);
    assert_eq!(file["servers"]["todo"]["tools"]["delete_todo"]["hash"], changed["hash"]);

    let mut server = server;
    server.child.kill().expect("it ran");
    let server = Server::start_in(server.into_folder(), &[]);
    assert_eq!(listed(&server), 4, "an accepted definition survives a restart");
    assert_eq!(server.ask("DELETE", "/api/v1/lock/accepted/todo:delete_todo", None).0, 200);
    assert_eq!(listed(&server), 3);

    let address = format!("http://{}", server.address);
    let command = |args: &[&str]| {
        let output = wharf(&server.folder).args(args).output().expect("wharf runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = command(&["lock", "--accept", "todo:list_todos", "--server", &address]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(listed(&server), 4);
    assert_eq!(command(&["lock", "--accept", "todo:nothing", "--server", &address]).0, Some(66));
    let (code, said) = command(&["lock", "--from-server", &address]);
    assert_eq!(code, Some(0), "{said}");
    let written = fs::read(server.folder.path().join("wharf.lock")).expect("the lock");
    let lock = LockFile::parse(&written).expect("a lock");
    let tools = &lock.servers["todo"].tools;
    assert!(tools.contains_key("list_todos") && json!(tools["delete_todo"].hash) == changed["locked_hash"]);
}

#[test]
fn tool_that_an_override_disables_is_not_gone() {
    let folder = locked_folder();
    let agent = AGENT.replace("'builtin:todo'", "'builtin:todo', overrides: {'update_*': {enabled: false}}");
    fs::write(folder.path().join("agent.yaml"), agent).expect("a file");
    let server = Server::start_in(folder, &[]);
    assert_eq!(listed(&server), 2);
    let (_, list) = server.ask("GET", "/api/v1/lock", None);
    let tools = list["items"].as_array().expect("items").iter().filter(|it| it["kind"] == "tool");
    let states: Vec<(&Value, &Value)> = tools.map(|it| (&it["tool_id"], &it["state"])).collect();
    let expected = [
        (&json!("todo:create_todo"), &json!("same")),
        (&json!("todo:delete_todo"), &json!("changed")),
        (&json!("todo:list_todos"), &json!("new")),
        (&json!("todo:search_todos"), &json!("same")),
    ];
    assert_eq!(states, expected);
}

#[test]
fn lock_stops_a_tool_before_an_operator_does() {
    let server = Server::start_in(locked_folder(), &[]);
    let off = json!({ "enabled": false, "reason": "too risky" });
    assert_eq!(server.ask("PATCH", "/api/v1/tools/todo:delete_todo", Some(&off)).0, 200);
    let (_, why) = server.ask("GET", "/api/v1/tools/todo:delete_todo/why", None);
    assert_eq!(
        (&why["stopped_by"]["layer"], &why["stopped_by"]["code"]),
        (&json!("lock"), &json!("changed")),
        "{why}"
    );
    let layers = why["layers"].as_array().expect("layers").iter();
    let failed: Vec<&Value> = layers.filter(|it| it["ok"] == false).map(|it| &it["layer"]).collect();
    assert_eq!(failed, [&json!("lock"), &json!("switch")], "{why}");
}

#[test]
fn refused_acceptance_is_not_a_change() {
    let folder = locked_folder();
    let settings = folder.path().join("wharf.toml").display().to_string();
    fs::write(&settings, "[tokens.reader]\nrole = \"viewer\"\nvalue = \"${READER}\"\n").expect("a file");
    let server =
        Server::start_with(folder, &["--settings", &settings], &[("READER", "reader-reader-reader")]);
    let address = format!("http://{}", server.address);
    let accept = |ids: &[&str]| {
        let mut command = wharf(&server.folder);
        command.env("WHARF_TOKEN", "reader-reader-reader").args(["lock", "--server", &address, "--accept"]);
        let output = command.args(ids).output().expect("wharf runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = accept(&["todo:list_todos"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("role"), "{said}");
    let (code, said) = accept(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`--accept` with `--server` needs the tools to accept"), "{said}");
}

/// Answers one request after the other as a gateway would, each on a connection of its own. Returns its address.
fn answer_in_turn(answers: Vec<(&'static str, Value)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut request = [0; 8192];
            assert!(stream.read(&mut request).expect("a request") > 0);
            let body = body.to_string();
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).expect("an answer");
        }
    });
    address
}

#[test]
fn tool_that_changed_again_ends_with_exit_code_1() {
    let folder = TempDir::new().expect("a folder");
    let item = json!({ "kind": "tool", "source": "a", "name": "b", "tool_id": "a:b", "state": "changed", "hash": "sha256-1" });
    let items = json!({ "items": [item] });
    for (status, expected) in [("409 Conflict", 1), ("503 Service Unavailable", 75)] {
        let address =
            answer_in_turn(vec![("200 OK", items.clone()), (status, json!({ "detail": "not accepted" }))]);
        let mut command = wharf(&folder);
        let output = command.args(["lock", "--server", &address, "--accept", "a:b"]).output();
        let output = output.expect("wharf runs");
        assert_eq!(output.status.code(), Some(expected), "{status}: {output:?}");
    }
}
