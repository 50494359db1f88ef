//! The journal in bad times: the disk is full, the database is stuck, callers leave. No call waits for it, nothing is lost
//! silently, and it does not grow for ever.

#![expect(clippy::disallowed_methods, reason = "the program under test is found and started like any other")]

mod abandoned;
mod retention;
mod trouble;

use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How long something may take on a starved machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until something is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "not in time: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn ready(server: &Server) -> (u16, Value) {
    server.ask_with("GET", "/ready", &[], None)
}

/// A call that only reads, with arguments of about so many bytes.
fn search(server: &Server, bytes: usize) -> (u16, Value) {
    let body = json!({ "arguments": { "query": "x".repeat(bytes) } });
    server.ask("POST", "/api/v1/tools/todo:search_todos/call", Some(&body))
}

/// What the calls in the journal are known by, the newest first.
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
