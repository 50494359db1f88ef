//! Tests lists: pages, filters and unknown parameters.

use crate::serve::server::Server;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// Path of each list, the key of its items, and their number.
const LISTS: &[(&str, &str, usize)] = &[
    ("tools", "tool_id", 15),
    ("connections", "server_name", 3),
    ("breakers", "service_name", 3),
    ("sources", "id", 3),
];

fn server() -> Server {
    let folder = TempDir::new().expect("a folder");
    let entry = |name: &str| {
        format!("  - {{name: {name}, description: 'The {name}', type: mcp, server: 'builtin:todo'}}\n")
    };
    let file = format!("tools:\n{}{}{}", entry("one"), entry("two"), entry("three"));
    fs::write(folder.path().join("agent.yaml"), file).expect("the file can be written");
    let server = Server::start_in(folder, &[]);
    // The first call waits until all sources are listed.
    let (status, answer) = server.ask("POST", "/api/v1/tools/nothing/call", Some(&serde_json::json!({})));
    assert_eq!(status, 404, "{answer}");
    server
}

fn read_all_pages(server: &Server, list: &str, key: &str, limit: usize) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = server.ask("GET", &format!("/api/v1/{list}?limit={limit}{cursor}"), None);
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().expect("a list");
        assert!(items.len() <= limit && !items.is_empty(), "{page}");
        seen.extend(items.iter().map(|it| it[key].as_str().unwrap_or_default().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return seen,
        }
    }
}

#[test]
fn lists_are_read_page_by_page() {
    let server = server();
    for (list, key, expected) in LISTS {
        let (_, whole) = server.ask("GET", &format!("/api/v1/{list}"), None);
        let items = whole["items"].as_array().expect("a list");
        let all: Vec<String> =
            items.iter().map(|it| it[*key].as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!((all.len(), &whole["next_cursor"]), (*expected, &Value::Null), "{list}");
        for limit in [1, 2, *expected] {
            assert_eq!(read_all_pages(&server, list, key, limit), all, "{list} by {limit}");
        }
    }
}

#[test]
fn lists_are_filtered() {
    let server = server();
    for (query, expected) in [
        ("tools?source=two", 5),
        ("tools?source=nobody", 0),
        ("tools?q=DELETE", 3),
        ("tools?q=delete&source=one", 1),
        ("tools?enabled=true", 15),
        ("tools?enabled=false", 0),
        ("tools?q=%25", 0),
        ("connections?source=two", 1),
        ("breakers?source=two", 1),
        ("sources?q=T", 2),
        ("prompts?source=one", 1),
        ("calls?tool=nothing", 1),
        ("calls?tool_name=nothing", 1),
        ("calls?tool=noth_ng", 0),
        ("calls?source=%27%20OR%201=1--", 0),
    ] {
        let (status, page) = server.ask("GET", &format!("/api/v1/{query}"), None);
        assert_eq!(
            (status, page["items"].as_array().map(Vec::len)),
            (200, Some(expected)),
            "{query}: {page}"
        );
    }
    let (status, source) = server.ask("GET", "/api/v1/sources/two", None);
    assert_eq!(
        (status, &source["description"], &source["tools"]),
        (200, &"The two".into(), &5.into()),
        "{source}"
    );
    assert_eq!(server.ask("GET", "/api/v1/sources/four", None).0, 404);
}

#[test]
fn unknown_or_invalid_parameters_are_rejected() {
    let server = Server::start(&[]);
    let lists = ["tools", "connections", "breakers", "sources", "prompts", "calls"];
    for list in lists {
        for query in [
            "limit=0",
            "limit=-1",
            "limit=1000000000",
            "limit=9e99",
            "limit=%2B1",
            "limit=",
            "cursor=x",
            "sort=id;drop",
            "limit=1&limit=2",
        ] {
            let (status, answer) = server.ask("GET", &format!("/api/v1/{list}?{query}"), None);
            assert_eq!(status, 400, "{list}?{query}: {answer}");
            assert!(answer["hint"].as_str().is_some_and(|it| it.contains("cursor")), "{answer}");
        }
    }
}

#[test]
fn connection_counts_its_sessions_and_names_the_protocol() {
    let server = server();
    let connection = || server.ask("GET", "/api/v1/connections?source=one", None).1["items"][0].clone();
    let before = connection();
    assert_eq!((&before["sessions"], &before["era"]), (&json!(1), &json!("modern")), "{before}");
    assert_eq!(before["protocol_version"], "2026-07-28");
    assert_eq!(server.ask("POST", "/api/v1/connections/one/restart", Some(&json!({}))).0, 200);
    let call = json!({ "arguments": {} });
    assert_eq!(server.ask("POST", "/api/v1/tools/one:list_todos/call", Some(&call)).0, 200);
    let after = connection();
    assert_eq!(after["sessions"], 2, "{after}");
    assert!(after["started_at"].as_str() > before["started_at"].as_str(), "{before} {after}");
}
