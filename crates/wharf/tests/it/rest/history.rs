//! Tests what the gateway remembers of the past: the journal's filters, statistics, log lines and clients.

use super::{CREATE, disabled_tools::mcp};
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;

fn items(server: &Server, path: &str) -> Vec<Value> {
    let (status, list) = server.ask("GET", path, None);
    assert_eq!(status, 200, "{path}: {list}");
    list["items"].as_array().expect("a list").clone()
}

fn ids(server: &Server, query: &str) -> Vec<String> {
    let calls = items(server, &format!("/api/v1/calls?{query}"));
    calls.iter().map(|it| it["request_id"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn journal_is_filtered_and_searched() {
    let server = Server::start(&[]);
    let call = |path: &str, id: &str, title: &str| {
        let body = json!({ "arguments": { "title": title }, "request_id": id });
        server.ask("POST", path, Some(&body)).0
    };
    assert_eq!(call(CREATE, "one", "Milk and Bread"), 200);
    assert_eq!(call("/api/v1/tools/todo:create_todos/call", "none", "x"), 404);
    assert_eq!(call(CREATE, "two", "Café"), 200);
    let answer = mcp(
        &server,
        "tools/call",
        json!({ "name": "todo__create_todo", "arguments": { "title": "by mcp" },
        "_meta": { "io.wharf/request_id": "three" } }),
    );
    assert!(answer["result"].is_object(), "{answer}");
    let invalid = json!({ "arguments": { "title": 7 }, "request_id": "four" });
    assert_eq!(server.ask("POST", CREATE, Some(&invalid)).0, 422);

    let middle = items(&server, "/api/v1/calls?q=Caf%C3%89")[0]["execution_start"]
        .as_str()
        .expect("a time")
        .to_owned();
    for (query, expected) in [
        ("q=milk", &["one"][..]),
        ("q=CAF%C3%89", &["two"]),
        ("q=todos", &["none"]),
        ("q=nothing+like+it", &[]),
        ("via=mcp", &["three"]),
        ("via=rest&status=success", &["two", "one"]),
        ("principal=operator&status=failure", &["four", "none"]),
        ("principal=nobody", &[]),
        ("error_type=InvalidArguments", &[]),
        ("min_ms=86400000", &[]),
        ("min_ms=0&limit=2", &["four", "three"]),
        (&format!("since={middle}"), &["four", "three", "two"]),
        (&format!("until={middle}"), &["none", "one"]),
        ("since=2999-01-01T00:00:00Z", &[]),
    ] {
        assert_eq!(ids(&server, query), expected, "{query}");
    }
    for wrong in ["since=yesterday", "until=1", "min_ms=-1", "min_ms=x"] {
        assert_eq!(server.ask("GET", &format!("/api/v1/calls?{wrong}"), None).0, 400, "{wrong}");
    }
    let (_, failed) = server.ask("GET", "/api/v1/calls/four", None);
    let error_type = failed["error_type"].as_str().expect("a type");
    assert_eq!(ids(&server, &format!("error_type={error_type}")), ["four"]);
    assert_eq!(
        (&failed["phase"], &failed["sent"], &failed["wire_name"]),
        (&json!("check"), &json!("no"), &json!("create_todo"))
    );
    assert!(failed["hint"].is_string() && failed["trace_id"].is_null(), "{failed}");
    let (_, succeeded) = server.ask("GET", "/api/v1/calls/one", None);
    assert_eq!(
        (&succeeded["phase"], &succeeded["sent"], &succeeded["hint"]),
        (&Value::Null, &json!("yes"), &Value::Null)
    );
    assert!(succeeded["stages_ms"]["call"].as_f64().is_some_and(|it| it > 0.0), "{succeeded}");
    let (_, unknown) = server.ask("GET", "/api/v1/calls/none", None);
    assert_eq!((&unknown["wire_name"], &unknown["sent"]), (&Value::Null, &json!("no")), "{unknown}");
}

#[test]
fn statistics_count_calls_and_failures() {
    let server = Server::start(&[]);
    for number in 0..10 {
        let title = if number == 3 { json!(3) } else { json!("x") };
        server.ask("POST", CREATE, Some(&json!({ "arguments": { "title": title } })));
    }
    let (status, stats) = server.ask("GET", "/api/v1/stats?window=60&step=5&by=tool", None);
    assert_eq!((status, &stats["step"]), (200, &json!(5)), "{stats}");
    assert_eq!(stats["in_flight"].as_array().map(Vec::len), Some(12), "{stats}");
    let series = &stats["series"][0];
    assert_eq!(series["key"], "todo:create_todo", "{stats}");
    let sum = |key: &str| series[key].as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!((sum("calls"), sum("failures"), sum("timeouts")), (10, 1, 0), "{stats}");
    assert!(series["p95_ms"].as_array().is_some_and(|it| it.iter().any(Value::is_f64)), "{stats}");
    let (_, day) = server.ask("GET", "/api/v1/stats?window=86400&step=60&by=source", None);
    assert_eq!(
        (&day["series"][0]["key"], day["in_flight"].as_array().map(Vec::len)),
        (&json!("todo"), Some(1_440))
    );
    let (_, other) = server.ask("GET", "/api/v1/stats?source=other", None);
    assert_eq!(other["series"], json!([]), "{other}");
    for wrong in ["step=7", "window=90000", "window=7200", "by=everything", "step=0"] {
        assert_eq!(server.ask("GET", &format!("/api/v1/stats?{wrong}"), None).0, 400, "{wrong}");
    }
}

/// The gateway keeps the lines that a server writes to stderr, without secrets, beside its own.
#[test]
fn log_lines_are_kept_without_secrets() {
    let folder = TempDir::new().expect("a folder");
    let script = "import os, sys\nprint('the key is', os.environ['KEY'], file=sys.stderr)\nprint('second line', file=sys.stderr)\nsys.exit(3)\n";
    fs::write(folder.path().join("noisy.py"), script).expect("a script");
    let script = folder.path().join("noisy.py").display().to_string();
    let python = ["/usr/local/bin/python3", "/usr/bin/python3"].into_iter().find(|it| Path::new(it).exists());
    let python = python.expect("Python");
    let agent = format!(
        "tools:\n  - {{name: noisy, description: d, type: mcp, server: x, command: {python}, args: ['{script}'], env: {{KEY: '${{NOISY_KEY}}'}}}}\n"
    );
    fs::write(folder.path().join("agent.yaml"), agent).expect("an agent file");
    let settings = folder.path().join("wharf.toml");
    fs::write(&settings, format!("[grants]\ncommands = [\"{python}\"]\n")).expect("settings");
    let secret = "a-secret-that-nobody-sees";
    let settings = settings.display().to_string();
    let server = Server::start_with(folder, &["--settings", &settings], &[("NOISY_KEY", secret)]);
    let begun = Instant::now();
    let lines = loop {
        let lines = items(&server, "/api/v1/logs?source=noisy&kind=stderr");
        if lines.len() >= 2 {
            break lines;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no lines: {}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((&lines[0]["text"], &lines[0]["level"]), (&json!("second line"), &json!("info")), "{lines:?}");
    assert!(lines[1]["text"].as_str().is_some_and(|it| it.starts_with("the key is ")), "{lines:?}");
    let found = items(&server, "/api/v1/logs?source=noisy&kind=stderr&q=SECOND");
    assert!(!found.is_empty() && found.iter().all(|it| it["text"] == "second line"), "{found:?}");
    assert!(items(&server, "/api/v1/logs?source=noisy&level=error&kind=stderr").is_empty());
    let own = items(&server, "/api/v1/logs?kind=wharf");
    assert!(own.iter().all(|it| it["source"].is_null()), "{own:?}");
    assert!(!server.text("/api/v1/logs?limit=500").contains(secret));
    let page = server.ask("GET", "/api/v1/logs?limit=1", None).1;
    let next = page["next_cursor"].as_str().expect("older lines");
    let older = items(&server, &format!("/api/v1/logs?limit=1&cursor={next}"));
    assert_ne!(older.first(), page["items"].get(0), "{page}");
    for wrong in ["level=loud", "kind=call", "since=x", "cursor=x"] {
        assert_eq!(server.ask("GET", &format!("/api/v1/logs?{wrong}"), None).0, 400, "{wrong}");
    }
}

#[test]
fn clients_are_listed_with_their_calls() {
    let server = Server::start(&[]);
    assert!(items(&server, "/api/v1/clients").is_empty());
    for _ in 0..3 {
        mcp(&server, "tools/call", json!({ "name": "todo__create_todo", "arguments": { "title": "x" } }));
    }
    let clients = items(&server, "/api/v1/clients");
    assert_eq!(clients.len(), 1, "{clients:?}");
    let client = &clients[0];
    assert_eq!(
        (&client["transport"], &client["principal"]),
        (&json!("http"), &json!("operator")),
        "{client}"
    );
    assert_eq!(client["calls_per_minute"], 3, "{client}");
}
