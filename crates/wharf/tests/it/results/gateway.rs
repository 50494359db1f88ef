//! Handles at the gateway: over REST and MCP, on both engines, for the principal that owns the result.

use super::{LINE, TOKEN, prepare};
use crate::{chat::agent_file, serve::server::Server, todo::postgres::Postgres};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Tokens of two callers.
const ANN: &str = "token-of-ann-the-caller";
const BOB: &str = "token-of-bob-the-caller";
const TOKENS: &str = "[tokens.ann]\nrole = \"caller\"\nvalue = \"${ANN}\"\n\n[tokens.bob]\nrole = \"caller\"\nvalue = \"${BOB}\"\n";

fn serve(results: &str, quotas: &str, args: &[&str]) -> Server {
    let folder = TempDir::new().expect("a folder");
    let tools = prepare(folder.path(), &format!("{TOKENS}{quotas}"));
    fs::write(folder.path().join("agent.yaml"), format!("results: {results}\n{tools}")).expect("a file");
    start(folder, args)
}

fn start(folder: TempDir, args: &[&str]) -> Server {
    let settings = folder.path().join("wharf.toml").display().to_string();
    let args = [&["--settings", settings.as_str()], args].concat();
    let variables = [
        ("ANN", ANN),
        ("BOB", BOB),
        ("TOKEN", TOKEN),
        ("MODEL_KEY", "key-of-the-model"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ];
    Server::start_with(folder, &args, &variables)
}

/// A model that is told to read a result of somebody else, by every way.
#[test]
fn a_model_cannot_use_a_result_of_another_principal() {
    let target = Arc::new(Mutex::new(String::new()));
    let script = target.clone();
    let model = ScriptedModel::with(move |number, _| {
        let id = script.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let [by_id, pattern, query] = [
            json!({ "id": id }),
            json!({ "id": id, "pattern": "line" }),
            json!({ "id": id, "query": ".items[0].text" }),
        ]
        .map(|it| it.to_string());
        let passed = json!({ "text": format!("wharf://results/{id}#/items/0/text") }).to_string();
        match number {
            0 => Reply::calls(
                Wire::Chat,
                &[
                    ("c1", "wharf__read_result", &by_id),
                    ("c2", "wharf__grep_result", &pattern),
                    ("c3", "wharf__query_result", &query),
                    ("c4", "keeper__keep", &passed),
                ],
            ),
            _ => Reply::text(Wire::Chat, "Done."),
        }
    });
    let folder = TempDir::new().expect("a folder");
    let tools = prepare(folder.path(), TOKENS);
    let more = "approval: {default: allow, after_untrusted: allow}\nresults: {inline_limit: 1024, for: [rest, agent]}\n";
    let file = agent_file(&model, &format!("{more}{tools}"));
    fs::write(folder.path().join("agent.yaml"), file).expect("a file");
    let server = start(folder, &[]);
    let (_, report) = call(&server, ANN, "maker:rows", json!({ "bytes": 10_000 }));
    let id = report["result_handle"]["id"].as_str().unwrap_or_else(|| panic!("{report}"));
    id.clone_into(&mut target.lock().unwrap_or_else(PoisonError::into_inner));
    let message = json!({ "message": "Read the result", "stream": false });
    let (status, done) = ask(&server, BOB, "POST", "/api/v1/chat", Some(&message));
    assert_eq!((status, &done["success"]), (200, &json!(true)), "{done}");
    let messages = model.requests()[1].body["messages"].clone();
    let results: Vec<&Value> =
        messages.as_array().expect("messages").iter().filter(|it| it["role"] == "tool").collect();
    assert_eq!(results.len(), 4, "{messages}");
    for result in results {
        let words = result["content"].as_str().expect("words");
        assert!(!words.contains("grüße") && words.contains("result"), "{words}");
    }
    let kept = fs::read_to_string(server.folder.path().join("out")).unwrap_or_default();
    assert!(!kept.contains("grüße"), "{kept}");
}

fn on_both_engines(check: impl Fn(&[&str])) {
    check(&[]);
    let postgres = Postgres::start();
    check(&["--database", &postgres.address()]);
}

fn ask(server: &Server, token: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let token = format!("Authorization: Bearer {token}");
    server.ask_with(method, path, &[&token, "Content-Type: application/json"], body)
}

fn call(server: &Server, token: &str, tool: &str, arguments: Value) -> (u16, Value) {
    let body = json!({ "arguments": arguments });
    ask(server, token, "POST", &format!("/api/v1/tools/{tool}/call"), Some(&body))
}

/// Sends an MCP request of 2026-07-28.
fn mcp(server: &Server, token: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let name = params["name"].as_str().or(params["uri"].as_str()).map(|it| format!("Mcp-Name: {it}"));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut headers = vec![
        format!("Authorization: Bearer {token}"),
        "Content-Type: application/json".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
        "MCP-Protocol-Version: 2026-07-28".to_owned(),
        format!("Mcp-Method: {method}"),
    ];
    headers.extend(name);
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    server.ask_with("POST", "/mcp", &headers, Some(&body)).1
}

#[test]
fn only_its_principal_finds_a_result() {
    on_both_engines(|args| {
        let server = serve("{inline_limit: 1024, for: [mcp, rest]}", "", args);
        let (status, report) = call(&server, ANN, "maker:rows", json!({ "bytes": 10_000 }));
        assert_eq!(status, 200, "{report}");
        let handle = &report["result_handle"];
        let id = handle["id"].as_str().unwrap_or_else(|| panic!("{report}"));
        assert_eq!((id.len(), &handle["uri"]), (34, &json!(format!("wharf://results/{id}"))), "{report}");
        assert_eq!(report["structured_content"], Value::Null);
        let path = format!("/api/v1/results/{id}");
        let (status, document) = ask(&server, ANN, "GET", &path, None);
        assert_eq!((status, document["items"].as_array().map(Vec::len)), (200, Some(79)));
        let query = json!({ "query": "[.items[] | select(.id > 70) | .id] | add" });
        let (status, answer) = ask(&server, ANN, "POST", &format!("{path}/query"), Some(&query));
        assert_eq!((status, &answer["output"]), (200, &json!("596\n")), "{answer}");
        let (_, listed) = ask(&server, ANN, "GET", "/api/v1/results", None);
        assert_eq!(
            (listed["items"].as_array().map(Vec::len), &listed["items"][0]["id"]),
            (Some(1), &json!(id))
        );
        let ranged = ["Range: bytes=0-8", &format!("Authorization: Bearer {ANN}")];
        let raw = server.raw("GET", &path, &ranged, None);
        assert!(raw.starts_with("HTTP/1.1 206 ") && raw.ends_with("{\"items\":"), "{raw}");

        // For another principal it does not exist, by any way.
        for (method, path, body) in [
            ("GET", path.clone(), None),
            ("DELETE", path.clone(), None),
            ("POST", format!("{path}/query"), Some(&query)),
        ] {
            let (status, problem) = ask(&server, BOB, method, &path, body);
            assert_eq!(
                (status, &problem["type"]),
                (404, &json!("MCPResultNotFoundError")),
                "{method}: {problem}"
            );
        }
        let (_, listed) = ask(&server, BOB, "GET", "/api/v1/results", None);
        assert_eq!(listed["items"], json!([]));
        for (tool, arguments) in [
            ("wharf__read_result", json!({ "id": id })),
            ("keeper:keep", json!({ "text": format!("wharf://results/{id}#/items/0/text") })),
        ] {
            let (status, problem) = call(&server, BOB, tool, arguments.clone());
            assert_eq!(
                (status, &problem["type"]),
                (404, &json!("MCPResultNotFoundError")),
                "{tool}: {problem}"
            );
            let (status, report) = call(&server, ANN, tool, arguments);
            assert_eq!((status, &report["success"]), (200, &json!(true)), "{tool}: {report}");
        }
        let unknown = mcp(&server, BOB, "resources/read", json!({ "uri": handle["uri"] }));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let known = mcp(
            &server,
            ANN,
            "resources/read",
            json!({ "uri": format!("wharf://results/{id}#/items/0/text") }),
        );
        assert_eq!(known["result"]["contents"][0]["text"], json!(json!(LINE).to_string()), "{known}");
        assert_eq!(ask(&server, ANN, "DELETE", &path, None).0, 204);
        assert_eq!(ask(&server, ANN, "GET", &path, None).0, 404);
    });
}

#[test]
fn mcp_clients_with_handles_see_no_output_schema_and_the_reading_tools() {
    let server = serve("{inline_limit: 1024, for: [mcp]}", "", &[]);
    let list = mcp(&server, ANN, "tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    let names: Vec<&str> = tools.iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(
        names.ends_with(&["wharf__read_result", "wharf__grep_result", "wharf__query_result"]),
        "{names:?}"
    );
    assert!(!tools.iter().any(|it| it.get("outputSchema").is_some()), "{list}");
    let templates = mcp(&server, ANN, "resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"], "wharf://results/{id}",
        "{templates}"
    );
    let stored =
        mcp(&server, ANN, "tools/call", json!({ "name": "maker__text", "arguments": { "bytes": 9_000 } }));
    let about = &stored["result"]["_meta"]["wharf/result"];
    let (id, link) = (&about["id"], &stored["result"]["content"][1]);
    assert_eq!((&link["type"], &link["size"]), (&json!("resource_link"), &about["bytes"]), "{stored}");
    let found = mcp(
        &server,
        ANN,
        "tools/call",
        json!({ "name": "wharf__grep_result", "arguments": { "id": id, "pattern": "quotes", "max": 1 } }),
    );
    assert!(
        found["result"]["content"][0]["text"].as_str().is_some_and(|it| it.starts_with("1: line")),
        "{found}"
    );
    let (_, calls) = server.ask("GET", "/api/v1/calls?source=wharf", None);
    assert_eq!(calls["items"][0]["tool_name"], "grep_result", "{calls}");

    let plain = serve("{for: []}", "", &[]);
    let list = mcp(&plain, ANN, "tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    assert!(tools.iter().any(|it| it.get("outputSchema").is_some()), "{list}");
    assert!(!list.to_string().contains("wharf__"), "{list}");
    let (status, problem) = call(&plain, ANN, "wharf__read_result", json!({ "id": "r-1" }));
    assert_eq!((status, &problem["type"]), (404, &json!("MCPToolNotFoundError")), "{problem}");
}

#[test]
fn queries_that_need_too_much_are_ended() {
    let server = serve("{inline_limit: 1024, for: [rest]}", "", &[]);
    let (_, report) = call(&server, ANN, "maker:rows", json!({ "bytes": 10_000 }));
    let path = format!("/api/v1/results/{}/query", report["result_handle"]["id"].as_str().expect("an id"));
    let query = |query: &str| ask(&server, ANN, "POST", &path, Some(&json!({ "query": query })));
    for expensive in [
        "[range(1e9)] | length",
        "last(range(1e15))",
        "def f: f; f",
        "reduce range(60) as $n (\"x\"; . + .) | length",
    ] {
        let (status, problem) = query(expensive);
        assert_eq!(status, 422, "{expensive}: {problem}");
        assert!(
            problem.to_string().contains("the query exceeded its time or memory limit"),
            "{expensive}: {problem}"
        );
    }
    let (status, answer) = query("env | has(\"PATH\", \"HOME\", \"WHARF_TOKEN\")");
    assert_eq!((status, &answer["output"]), (200, &json!("false\nfalse\nfalse\n")), "{answer}");
    let (status, problem) = query(".items[");
    assert_eq!(status, 422, "{problem}");
    assert!(problem.to_string().contains("not valid jq"), "{problem}");
}

#[test]
fn quotas_evict_the_oldest_and_a_result_that_does_not_fit_is_truncated() {
    on_both_engines(|args| {
        let server =
            serve("{inline_limit: 1024, for: [rest]}", "[results]\ncount = 2\nper_principal = 50000\n", args);
        let store = |bytes: u64| call(&server, ANN, "maker:text", json!({ "bytes": bytes })).1;
        let ids: Vec<Value> =
            [2_000, 3_000, 4_000].into_iter().map(|it| store(it)["result_handle"]["id"].clone()).collect();
        let (_, listed) = ask(&server, ANN, "GET", "/api/v1/results", None);
        let left: Vec<&Value> =
            listed["items"].as_array().expect("items").iter().map(|it| &it["id"]).collect();
        assert_eq!(left, [&ids[2], &ids[1]], "{listed}");
        let large = store(60_000);
        assert_eq!((&large["success"], large.get("result_handle")), (&json!(true), None), "{large}");
        let text = large["content"][0]["text"].as_str().expect("a text");
        assert!(text.len() <= 1024 && text.contains("left out"), "{text}");
        // The log is written by another thread.
        let until = Instant::now() + Duration::from_secs(60);
        while !server.log().contains("a result is truncated, because storing it failed") {
            assert!(Instant::now() < until, "{}", server.log());
            std::thread::yield_now();
        }
    });
}

#[test]
fn results_page_shows_what_a_client_gets() {
    let page = include_str!("../../../../../docs/results.md");
    let block = |kind: &str, at: usize| {
        page.split(&format!("```{kind}\n")).nth(at).and_then(|it| it.split("\n```").next())
    };
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), block("yaml", 1).expect("an agent file")).expect("a file");
    let server = Server::start_in(folder, &[]);
    for n in 0..40 {
        let todo = json!({ "arguments": { "title": format!("Write chapter {n}") } });
        assert_eq!(server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&todo)).0, 200);
    }
    let documented: Value = serde_json::from_str(block("json", 1).expect("an example")).expect("JSON");
    let seen =
        mcp(&server, &server.token, "tools/call", json!({ "name": "todo__list_todos", "arguments": {} }));
    let seen = &seen["result"];
    let keys = |it: &Value| it.as_object().map(|it| it.keys().cloned().collect::<Vec<_>>());
    for pointer in ["/content/0", "/content/1", "/_meta/wharf~1result"] {
        assert_eq!(
            seen.pointer(pointer).and_then(keys),
            documented.pointer(pointer).and_then(keys),
            "{seen}"
        );
    }
    let text = seen["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{seen}"));
    assert!(text.contains("{todos: [40 × {id: int, title: str"), "{text}");
    let id = seen["_meta"]["wharf/result"]["id"].as_str().expect("an id");
    let query = json!({ "query": ".todos | length" });
    let (status, answer) = server.ask("POST", &format!("/api/v1/results/{id}/query"), Some(&query));
    assert_eq!((status, &answer["output"]), (200, &json!("40\n")), "{answer}");
    let mut call: Value = serde_json::from_str(block("json", 2).expect("an example")).expect("JSON");
    call["arguments"]["title"] =
        json!(call["arguments"]["title"].as_str().expect("a handle").replace("r-3", id));
    let created = mcp(&server, &server.token, "tools/call", call);
    assert!(created.to_string().contains("Write chapter "), "{created}");
}
