//! Tests `wharf why` and its route: the latest calls, other principals, the cached list, and a running gateway.

mod layers;
mod stopped_tools;

use crate::{
    replays::echo_workspace,
    serve::server::{Server, wharf},
};
use serde_json::json;
use std::{fs, process::Command};
use tempfile::TempDir;

/// Starts a gateway with the Todo server and these faults, and with the tokens `reader` (viewer) and `ci` (caller).
fn gateway(faults: &str) -> Server {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("faults.yaml"), faults).expect("a file");
    let settings = folder.path().join("wharf.toml").display().to_string();
    let tokens = "[tokens.reader]\nrole = \"viewer\"\nvalue = \"${READER}\"\n\
                  [tokens.ci]\nrole = \"caller\"\nvalue = \"${CI}\"\n";
    fs::write(&settings, tokens).expect("a file");
    let variables = [("READER", "reader-reader-reader"), ("CI", "caller-caller-caller")];
    let server =
        Server::start_with(folder, &["--faults", "faults.yaml", "--settings", &settings], &variables);
    // Lists of tools wait until the servers have started.
    assert_eq!(server.ask("GET", "/api/v1/tools", None).0, 200);
    server
}

fn call(server: &Server) {
    server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({ "arguments": {} })));
}

const WHY: &str = "/api/v1/tools/todo:list_todos/why";

#[test]
fn tool_that_fails_more_often_than_not_is_failing() {
    let server = gateway("faults: [{tool: '*', kind: tool_error, text: busy, nth: [1, 2, 3, 4, 5, 6]}]\n");
    let fresh = server.ask("GET", WHY, None).1;
    assert_eq!((&fresh["verdict"], &fresh["recent"]["calls"]), (&json!("callable"), &json!(0)), "{fresh}");
    (0..11).for_each(|_| call(&server));
    let mixed = server.ask("GET", WHY, None).1;
    assert_eq!(mixed["verdict"], "callable", "five of the last ten failed: {mixed}");
    assert_eq!((&mixed["recent"]["calls"], &mixed["recent"]["failed"]), (&json!(11), &json!(6)), "{mixed}");
    assert_eq!(mixed["recent"]["last_failures"][0]["type"], "ToolError", "{mixed}");
    assert!(mixed["recent"]["p50_ms"].as_f64().is_some_and(|it| it > 0.0), "{mixed}");

    let server = gateway("faults: [{tool: '*', kind: tool_error, text: busy, nth: [1, 2, 3, 4, 5, 6]}]\n");
    (0..10).for_each(|_| call(&server));
    let failing = server.ask("GET", WHY, None).1;
    assert_eq!((&failing["verdict"], &failing["stopped_by"]), (&json!("failing"), &json!(null)), "{failing}");
    let output = wharf(&server.folder)
        .args(["why", "todo:list_todos", "--server", &format!("http://{}", server.address)])
        .output()
        .expect("wharf runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("todo:list_todos can be called, but fails\n"), "{text}");
    assert!(text.contains("latest 10 calls: 6 failed, p50 ") && text.contains("ToolError: "), "{text}");
}

#[test]
fn changes_of_the_breaker_are_in_the_explanation() {
    let server = gateway("faults: [{tool: '*', kind: disconnect}]\n");
    (0..6).for_each(|_| call(&server));
    let open = server.ask("GET", WHY, None).1;
    assert_eq!(open["stopped_by"]["layer"], "breaker", "{open}");
    let changes = open["recent"]["breaker"].as_array().expect("changes");
    assert_eq!(changes.iter().map(|it| &it["state"]).collect::<Vec<_>>(), ["OPEN"], "{open}");
}

#[test]
fn role_of_a_principal_decides_and_others_need_an_operator() {
    let server = gateway("faults: [{model: true, kind: drop}]\n");
    let ask = |query: &str, token: &str| {
        let token = format!("Authorization: Bearer {token}");
        server.ask_with("GET", &format!("{WHY}{query}"), &[&token], None)
    };
    let (status, reader) = ask("?principal=reader", &server.token);
    assert_eq!((status, &reader["stopped_by"]["layer"]), (200, &json!("role")), "{reader}");
    let (_, own) = ask("?principal=reader", "reader-reader-reader");
    assert_eq!(own["stopped_by"]["code"], "role", "{own}");
    let (_, caller) = ask("?principal=ci", &server.token);
    assert_eq!(caller["verdict"], "callable", "{caller}");
    assert_eq!(ask("?principal=reader", "caller-caller-caller").0, 403);
    assert_eq!(ask("?principal=nobody", &server.token).0, 404);
    assert_eq!(ask("", "reader-reader-reader").1["verdict"], "callable");

    let run = |words: &[&str]| -> (Option<i32>, String) {
        let mut command: Command = wharf(&server.folder);
        command.args(["why", "todo:list_todos", "--settings", "wharf.toml"]).args(words);
        let output =
            command.envs([("READER", "reader-reader-reader"), ("CI", "caller-caller-caller")]).output();
        let output = output.expect("wharf runs");
        let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        (output.status.code(), text.concat())
    };
    let (code, text) = run(&["--principal", "reader"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("FAIL  role          the token `reader` has the role `viewer`"), "{text}");
    assert_eq!(run(&["--principal", "ci"]).0, Some(0));
    assert_eq!(run(&["--principal", "nobody"]).0, Some(66));
}

#[tokio::test]
async fn cached_explanation_starts_no_server() {
    let workspace = echo_workspace("");
    workspace.wharf("why own:echo --cached").await.check(69, "there is no cached tool list");
    workspace.wharf("tools").await.check(0, "echo");
    fs::remove_file(workspace.path("server.py")).expect("the server");
    workspace.wharf("why own:echo").await.check(1, "stopped by discovery/failed");
    let cached = workspace.wharf("why own__echo --cached").await;
    cached.check(0, "own:echo can be called");
    cached.check(0, "listing       the server listed the tool at 20");
    workspace.wharf("why own:other --cached").await.check(66, "the server did not list such a tool");
    workspace.wharf("why nobody:echo --cached").await.check(66, "no server has this name or prefix");
}
