//! Tests that with `[lock] registered = "first-use"` the first listing of a registered server is its lock.

use super::{disabled_tools::mcp, upstream::Upstream};
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{fs, thread::sleep, time::Duration};
use tempfile::TempDir;

const CHANGED: &str = "Waits, and sends what it finds to another server.";

fn serve(settings: &str) -> Server {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("settings.toml");
    fs::write(&path, settings).expect("settings");
    Server::start_with(folder, &["--settings", &path.display().to_string()], &[])
}

fn register(server: &Server, upstream: &Upstream) {
    let source = json!({ "name": "far", "mcp_server_url": format!("http://{}", upstream.address) });
    let (status, source) = server.ask("POST", "/api/v1/sources", Some(&source));
    assert_eq!(status, 201, "{source}");
}

/// Returns the state of a tool, or null if the source has no lock.
fn lock_item(server: &Server, id: &str) -> Value {
    let (status, list) = server.ask("GET", "/api/v1/lock?source=far", None);
    assert_eq!(status, 200, "{list}");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().find(|it| it["tool_id"] == id).unwrap_or_default()
}

fn wait_for_state(server: &Server, id: &str, state: &str) -> Value {
    let mut item = Value::Null;
    for _ in 0..400 {
        item = lock_item(server, id);
        if item["state"] == state {
            return item;
        }
        sleep(Duration::from_millis(25));
    }
    panic!("`{id}` does not become {state}: {item}");
}

/// Returns the tools of the registered server that clients see.
fn listed(server: &Server) -> Vec<String> {
    let list = mcp(server, "tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().expect("tools");
    let names = tools.iter().filter_map(|it| it["name"].as_str());
    names.filter(|it| it.starts_with("far__")).map(str::to_owned).collect()
}

fn call_slow(server: &Server) -> (u16, Value) {
    server.ask("POST", "/api/v1/tools/far:slow/call", Some(&json!({ "arguments": { "millis": 0 } })))
}

#[test]
fn changed_tool_of_a_registered_server_is_blocked_until_accepted() {
    let upstream = Upstream::start();
    let server = serve("[lock]\nregistered = \"first-use\"\n");
    upstream.hide_chatty(true);
    register(&server, &upstream);
    let first = wait_for_state(&server, "far:slow", "accepted");
    assert_eq!(first["accepted_by"], "first-use", "{first}");
    assert_eq!(call_slow(&server).0, 200);

    upstream.describe_slow(CHANGED);
    let changed = wait_for_state(&server, "far:slow", "changed");
    assert_eq!(changed["locked_hash"], first["hash"], "{changed}");
    let (status, refused) = call_slow(&server);
    assert_eq!((status, &refused["type"]), (403, &json!("MCPToolChangedError")), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("differs from the accepted definition"), "{text}");
    assert!(text.contains("wharf lock --accept far:slow --server URL"), "{text}");
    upstream.hide_chatty(false);
    wait_for_state(&server, "far:chatty", "new");
    assert!(listed(&server).is_empty(), "{:?}", listed(&server));

    let reviewed = json!({ "tool_id": "far:slow", "hash": changed["hash"] });
    let (status, accepted) = server.ask("POST", "/api/v1/lock/accepted", Some(&reviewed));
    assert_eq!((status, &accepted["state"]), (201, &json!("accepted")), "{accepted}");
    assert_eq!(call_slow(&server).0, 200);
    assert_eq!(listed(&server), ["far__slow"]);

    let mut server = server;
    server.child.kill().expect("it ran");
    let folder = server.into_folder();
    let settings = folder.path().join("settings.toml").display().to_string();
    let server = Server::start_with(folder, &["--settings", &settings], &[]);
    wait_for_state(&server, "far:chatty", "new");
    assert_eq!(listed(&server), ["far__slow"], "the accepted definitions survive a restart");

    assert_eq!(server.ask("DELETE", "/api/v1/sources/far", None).0, 204);
    register(&server, &upstream);
    wait_for_state(&server, "far:chatty", "accepted");
    assert_eq!(listed(&server).len(), 2, "a server that is registered again is used for the first time");
}

#[test]
fn registered_servers_have_no_lock_by_default() {
    let upstream = Upstream::start();
    let server = serve("");
    register(&server, &upstream);
    upstream.describe_slow(CHANGED);
    let shows_change = |it: &Value| it["description"] == CHANGED;
    let is_shown = (0..400).any(|_| {
        sleep(Duration::from_millis(25));
        shows_change(&server.ask("GET", "/api/v1/tools/far:slow", None).1)
    });
    assert!(is_shown);
    assert_eq!(lock_item(&server, "far:slow"), Value::Null);
    assert_eq!(call_slow(&server).0, 200);
}

#[test]
fn tool_that_vanished_and_disabled_server_are_explained() {
    let upstream = Upstream::start();
    let server = serve("");
    register(&server, &upstream);
    let why = |id: &str| server.ask("GET", &format!("/api/v1/tools/{id}/why"), None);
    assert_eq!(why("far:chatty").1["verdict"], "callable");
    assert_eq!(why("far:nothing").0, 404);
    upstream.hide_chatty(true);
    let vanished = (0..400).find_map(|_| {
        sleep(Duration::from_millis(25));
        // The time is known once the database has the new list.
        let is_dated = |it: &Value| it["message"].as_str().is_some_and(|it| it.contains("since"));
        let explained = why("far:chatty").1;
        let is_vanished = explained["stopped_by"]["code"] == "vanished" && is_dated(&explained["stopped_by"]);
        is_vanished.then_some(explained)
    });
    let vanished = vanished.unwrap_or_else(|| panic!("{}", why("far:chatty").1));
    assert_eq!(vanished["stopped_by"]["layer"], "listing", "{vanished}");
    let message = vanished["stopped_by"]["message"].as_str().expect("a message");
    assert!(message.starts_with("the server has not listed the tool since 20"), "{message}");
    let off = json!({ "enabled": false });
    assert_eq!(server.ask("PATCH", "/api/v1/sources/far", Some(&off)).0, 200);
    let disabled = why("far:slow").1;
    assert_eq!(
        (&disabled["stopped_by"]["layer"], &disabled["stopped_by"]["code"]),
        (&json!("registration"), &json!("disabled")),
        "{disabled}"
    );
}
