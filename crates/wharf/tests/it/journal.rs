//! Tests the journal under failures: full disk, blocked database, disconnecting callers. No call waits for the
//! journal, no record is lost silently, and its size is bounded.

#![expect(clippy::disallowed_methods, reason = "the program under test is found and started like any other")]

mod abandoned;
mod failures;
mod retention;

use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Timeout for each condition on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition is true.
#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "not in time: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn ready(server: &Server) -> (u16, Value) {
    server.ask_with("GET", "/ready", &[], None)
}

/// Makes a read-only call with arguments of about this many bytes.
fn search(server: &Server, bytes: usize) -> (u16, Value) {
    let body = json!({ "arguments": { "query": "x".repeat(bytes) } });
    server.ask("POST", "/api/v1/tools/todo:search_todos/call", Some(&body))
}

/// Returns the ids of the calls in the journal, newest first.
fn recorded(server: &Server) -> Vec<String> {
    let (status, page) = server.ask("GET", "/api/v1/calls?limit=500", None);
    assert_eq!(status, 200, "{page}");
    let items = page["items"].as_array().expect("a list");
    items.iter().map(|it| it["request_id"].as_str().expect("a name").to_owned()).collect()
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.text("/metrics");
    let value = text.lines().find_map(|it| it.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {text}"))
}
