//! Tests calls in flight: they are listed with their progress, can be cancelled, and are found by the ids that their
//! caller chose, over REST and over MCP.

use super::{
    disabled_tools::mcp,
    events::Listener,
    slow_upstream::{begin, call, gateway_before, wait_for_calls},
    upstream::Upstream,
};
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{fs, io::Read};
use tempfile::TempDir;

const SLOW: &str = "/api/v1/tools/far:slow/call";

/// Longer than any test.
const FOREVER: u64 = 60_000;

fn running(server: &Server, query: &str) -> Vec<Value> {
    let (status, list) = server.ask("GET", &format!("/api/v1/running{query}"), None);
    assert_eq!(status, 200, "{list}");
    list["items"].as_array().expect("a list").clone()
}

#[test]
fn running_call_is_listed_and_can_be_cancelled() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "");
    assert_eq!(running(&server, ""), Vec::<Value>::new());
    let mut body = call(FOREVER);
    body["request_id"] = json!("to be cancelled");
    let mut caller = begin(&server, SLOW, "", &body);
    wait_for_calls(&upstream, 1);
    let calls = running(&server, "?source=far");
    assert_eq!(calls.len(), 1, "{calls:?}");
    let shown = &calls[0];
    assert_eq!(
        (&shown["request_id"], &shown["tool_id"], &shown["source"], &shown["via"], &shown["principal"]),
        (&json!("to be cancelled"), &json!("far:slow"), &json!("far"), &json!("rest"), &json!("operator"))
    );
    assert_eq!(running(&server, "?source=other"), Vec::<Value>::new());

    let path = "/api/v1/running/to%20be%20cancelled";
    assert_eq!(server.ask("DELETE", path, None).0, 204);
    let mut answer = String::new();
    caller.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("an operator cancelled the call"), "{answer}");
    assert_eq!(running(&server, ""), Vec::<Value>::new());
    assert_eq!(server.ask("DELETE", path, None).0, 404);

    // The journal has it once, as a call of its interface.
    let (_, recorded) = server.ask("GET", "/api/v1/calls/to%20be%20cancelled", None);
    assert_eq!(
        (&recorded["via"], &recorded["error_type"]),
        (&json!("rest"), &json!("MCPCancelledError")),
        "{recorded}"
    );
    assert_eq!((&recorded["phase"], &recorded["sent"]), (&json!("call"), &json!("unknown")), "{recorded}");
    let metrics = server.text("/metrics");
    let counted = "wharf_call_duration_seconds_count{source=\"far\",tool=\"slow\",status=\"failure\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
}

/// A client of MCP chooses the ids of its call in `_meta`, and the server does not see them.
#[test]
fn mcp_call_has_the_ids_that_its_client_chose() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "");
    let params = |id: &str| {
        json!({ "name": "far__slow", "arguments": {},
            "_meta": { "io.wharf/request_id": id, "io.wharf/thread_id": "thread 1" } })
    };
    let answer = mcp(&server, "tools/call", params("chosen"));
    assert!(answer["result"]["content"].is_array(), "{answer}");
    let (status, recorded) = server.ask("GET", "/api/v1/calls/chosen", None);
    assert_eq!((status, &recorded["via"], &recorded["thread_id"]), (200, &json!("mcp"), &json!("thread 1")));
    assert!(!upstream.heard.params().contains("io.wharf"), "{}", upstream.heard.params());
    for (id, expected) in [("chosen", "already in use"), ("", "1 to 256 printable characters")] {
        let refused = mcp(&server, "tools/call", params(id));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|it| it.contains(expected)), "{refused}");
    }
    // REST and MCP share the ids.
    let body = json!({ "arguments": {}, "request_id": "chosen" });
    assert_eq!(server.ask("POST", SLOW, Some(&body)).0, 409);
}

/// A listener of events sees a call begin and end.
#[test]
fn call_is_streamed_from_its_beginning() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "");
    assert_eq!(server.ask("POST", SLOW, Some(&call(0))).0, 200);
    let mut events = Listener::open(&server, "?kind=begun,call,progress");
    let hello = events.data("hello");
    assert!(hello["data"]["started_at"].is_string() && hello["data"]["number"].is_u64(), "{hello}");
    let body = json!({ "arguments": {}, "request_id": "watched" });
    assert_eq!(server.ask("POST", SLOW, Some(&body)).0, 200);
    let begun = events.data("begun");
    let expected =
        json!({ "request_id": "watched", "tool_id": "far:slow", "via": "rest", "principal": "operator" });
    assert_eq!((&begun["source"], &begun["data"]), (&json!("far"), &expected));
    let ended = events.data("call");
    let data = &ended["data"];
    assert_eq!(
        (&data["tool_id"], &data["via"], &data["sent"]),
        (&json!("far:slow"), &json!("rest"), &json!("yes"))
    );
    assert!(
        data["error_type"].is_null() && data["result_bytes"].as_u64().is_some_and(|it| it > 10),
        "{ended}"
    );
}

/// A paced listener gets batches: at most 200 events each, failures kept, and the number of what was skipped.
#[test]
fn paced_listener_gets_batches_and_stays_connected() {
    let server = Server::start(&[]);
    let mut events = Listener::open(&server, "?kind=call&pace=2000");
    events.data("hello");
    let bad = "/api/v1/tools/todo:get_todo/call";
    let mut sent = 0;
    for number in 0..300 {
        let body = json!({ "arguments": { "title": "x" }, "request_id": format!("paced-{number}") });
        let path = if number % 50 == 7 { bad } else { super::CREATE };
        server.ask("POST", path, Some(&body));
        sent += 1;
    }
    let (mut received, mut failed, mut skipped) = (0, 0, 0);
    while received + skipped < sent {
        let batch = events.data("batch");
        let data = &batch["data"];
        let calls = data["events"].as_array().expect("events");
        assert!(calls.len() <= 200, "{}", calls.len());
        received += calls.len() as u64;
        failed += calls.iter().filter(|it| it["data"]["status"] == "failure").count();
        skipped += data["skipped"]["call"].as_u64().unwrap_or_default();
    }
    assert_eq!((received + skipped, failed), (300, 6));
    for wrong in ["pace=49", "pace=5001", "pace=x"] {
        assert_eq!(server.ask("GET", &format!("/api/v1/events?{wrong}"), None).0, 400, "{wrong}");
    }
}

/// The stream names added and removed sources, and new clients.
#[test]
fn changes_of_sources_and_clients_are_streamed() {
    let folder = TempDir::new().expect("a folder");
    let settings = folder.path().join("wharf.toml");
    fs::write(&settings, "[grants]\ninsecure_hosts = [\"127.0.0.1\"]\nprivate_hosts = [\"127.0.0.1\"]\n")
        .expect("settings");
    let server = Server::start_in(folder, &["--settings", &settings.display().to_string()]);
    assert_eq!(server.ask("GET", "/api/v1/tools", None).0, 200);
    let mut events = Listener::open(&server, "?kind=source,client");
    events.data("hello");
    let upstream = Upstream::start();
    let body = json!({ "name": "far", "mcp_server_url": format!("http://{}/mcp", upstream.address) });
    let (status, source) = server.ask("POST", "/api/v1/sources", Some(&body));
    assert_eq!(status, 201, "{source}");
    let added = events.data("source");
    assert_eq!((&added["source"], &added["data"]["change"]), (&json!("far"), &json!("added")), "{added}");
    assert_eq!(added["data"]["id"], source["id"]);
    let path = format!("/api/v1/sources/{}", source["id"].as_str().expect("an id"));
    assert_eq!(server.ask("DELETE", &path, None).0, 204);
    assert_eq!(events.data("source")["data"]["change"], "removed");
    mcp(&server, "tools/list", json!({}));
    let client = events.data("client");
    assert_eq!(client["data"]["change"], "connected", "{client}");
}
