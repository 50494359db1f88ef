//! Tests the editions of a tool's definition: a change is stored, streamed and dated.

use super::{events::Listener, slow_upstream::gateway_before, upstream::Upstream};
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SLOW: &str = "/api/v1/tools/far:slow";

fn editions(server: &Server) -> Vec<Value> {
    let (status, list) = server.ask("GET", &format!("{SLOW}/definitions"), None);
    assert_eq!(status, 200, "{list}");
    list["items"].as_array().expect("a list").clone()
}

/// Waits until this many editions are stored.
fn wait_for_editions(server: &Server, count: usize) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let found = editions(server);
        if found.len() == count {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn changed_definition_is_stored_streamed_and_dated() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "");
    let first = wait_for_editions(&server, 1);
    assert_eq!(first[0]["definition"]["name"], "slow", "{first:?}");
    let (_, tool) = server.ask("GET", SLOW, None);
    assert_eq!((&tool["first_seen"], &tool["changed_at"]), (&first[0]["first_seen"], &Value::Null), "{tool}");
    let call = json!({ "arguments": {}, "request_id": "before" });
    assert_eq!(server.ask("POST", &format!("{SLOW}/call"), Some(&call)).0, 200);

    let mut events = Listener::open(&server, "?kind=tool_changed");
    upstream.describe_slow("now it is described");
    let changed = events.data("tool_changed");
    let second = wait_for_editions(&server, 2);
    let expected = json!({
        "tool_id": "far:slow",
        "from": first[0]["definition_hash"],
        "to": second[0]["definition_hash"],
    });
    assert_eq!((&changed["source"], &changed["data"]), (&json!("far"), &expected));
    assert_eq!(second[0]["definition"]["description"], "now it is described");
    assert_eq!(second[1]["last_seen"], second[0]["first_seen"]);
    let (_, tool) = server.ask("GET", SLOW, None);
    assert_eq!(
        (&tool["first_seen"], &tool["changed_at"]),
        (&first[0]["first_seen"], &second[0]["first_seen"]),
        "{tool}"
    );
    // A call has the edition of its time.
    let call = json!({ "arguments": {}, "request_id": "after" });
    assert_eq!(server.ask("POST", &format!("{SLOW}/call"), Some(&call)).0, 200);
    for (id, edition) in [("before", &second[1]), ("after", &second[0])] {
        let (_, call) = server.ask("GET", &format!("/api/v1/calls/{id}"), None);
        assert_eq!(call["definition_hash"], edition["definition_hash"], "{call}");
    }
    assert_eq!(server.ask("GET", "/api/v1/tools/far:none/definitions", None).0, 404);
}
