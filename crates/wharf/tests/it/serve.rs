//! Tests the gateway in its default state: started without any file, it serves the built-in Todo server.

#![expect(clippy::disallowed_methods, reason = "the program under test is found and started like any other")]

mod precedence;
pub(crate) mod server;
mod single_gateway;
mod startup_output;
#[cfg(target_os = "linux")]
mod threads;
mod unavailable_servers;

use serde_json::{Value, json};
use server::{Server, wharf};
use std::{fs, os::unix::fs::PermissionsExt};
use tempfile::TempDir;
use wharf_mcp::{
    Raw, Request, Session,
    http::{HttpClient, HttpEndpoint},
    session::{ClientInfo, EraHint, Options},
    ws,
};

fn options() -> Options {
    let client = ClientInfo { name: "a newcomer".into(), version: "1".into() };
    Options { era: EraHint::Auto, ..Options::new(client) }
}

/// Sends a request as an MCP client at `/mcp` and returns the result.
async fn request_over_mcp(server: &Server, request: Request) -> Value {
    let url = format!("http://{}/mcp", server.address).parse().expect("a URL");
    let http = HttpClient::new(std::time::Duration::from_secs(10)).expect("a client");
    let mut endpoint = HttpEndpoint::new(url, http);
    let token = format!("Bearer {}", server.token).parse().expect("a header");
    endpoint.headers.insert("authorization", token);
    let connected = Session::connect(&endpoint, &options()).await.expect("a session");
    let answer = connected.session.request(request).await.expect("an answer");
    drop(connected.session);
    connected.task.join().await;
    answer.decode().expect("JSON")
}

#[tokio::test]
async fn default_gateway_serves_todos() {
    let server = Server::start(&[]);
    assert_eq!(server.ask_with("GET", "/health", &[], None), (200, json!({ "status": "ok" })));
    assert_eq!(server.ask_with("GET", "/ready", &[], None), (200, json!({ "status": "ready" })));

    let body = json!({ "arguments": { "title": "Buy milk" }, "request_id": "first" });
    let (status, created) = server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&body));
    assert_eq!((status, &created["success"], &created["request_id"]), (200, &json!(true), &json!("first")));
    assert_eq!(created["structured_content"]["title"], "Buy milk");

    let (status, call) = server.ask("GET", "/api/v1/calls/first", None);
    assert_eq!((status, &call["status"], &call["via"]), (200, &json!("success"), &json!("rest")));
    assert_eq!((&call["tool_name"], &call["source"]), (&json!("create_todo"), &json!("todo")));
    assert_eq!(
        (&call["parameters"]["title"], &call["result"]["title"]),
        (&json!("Buy milk"), &json!("Buy milk"))
    );

    let counted = server.text("/metrics");
    let line = "wharf_call_duration_seconds_count{source=\"todo\",tool=\"create_todo\",status=\"success\"} 1";
    assert!(counted.contains(line) && counted.contains("wharf_source_up{source=\"todo\"} 1"), "{counted}");

    let listed = request_over_mcp(&server, Request::call_tool("todo__list_todos", None)).await;
    assert_eq!(listed["structuredContent"]["todos"][0]["title"], "Buy milk");
    let tools = request_over_mcp(&server, Request::new("tools/list")).await;
    let names: Vec<&Value> =
        tools["tools"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert_eq!(server.terminate(), Some(0));
}

/// Method, path, headers, body, expected status.
type Case<'a> = (&'a str, &'a str, &'a [&'a str], Option<Value>, u16);

/// Checks the responses to unauthorized and invalid requests.
#[tokio::test]
async fn invalid_requests_get_their_status() {
    let server = Server::start(&[]);
    let token = format!("Authorization: Bearer {}", server.token);
    let lower = format!("Authorization: bearer {}", server.token);
    let json_body = "Content-Type: application/json";
    let call = "/api/v1/tools/todo:create_todo/call";
    let with_token: &[&str] = &[&token, json_body];
    let cases: &[Case<'_>] = &[
        ("GET", "/api/v1/tools", &[], None, 401),
        ("GET", "/api/v1/tools?token=x", &[], None, 401),
        ("GET", "/api/v1/tools", &["Authorization: Bearer wrong"], None, 401),
        ("GET", "/api/v1/tools", &["Authorization: Bearer "], None, 401),
        ("GET", "/api/v1/tools", &[&lower], None, 401),
        ("GET", "/api/v1/tools", &[&token, &token], None, 400),
        ("POST", "/mcp", &[json_body], Some(json!({})), 401),
        ("GET", "/ws", &[], None, 401),
        ("GET", "/metrics", &[], None, 401),
        ("GET", "/sse", &[], None, 401),
        ("GET", "/api/v1/tools", &[&token, "Host: evil.com"], None, 403),
        ("GET", "/api/v1/tools", &[&token, "Host: localhost.evil.com"], None, 403),
        ("GET", "/api/v1/tools", &[&token, "Host: localhost", "Host: localhost"], None, 400),
        ("GET", "/api/v1/tools", &[&token, "Origin: http://evil.com"], None, 403),
        ("GET", "/api/v1/tools", &[&token, "Origin: null"], None, 403),
        ("GET", "/health", &["Origin: http://evil.com"], None, 403),
        ("GET", "/api/v1/tools/nope", with_token, None, 404),
        ("GET", "/api/v1/nothing", with_token, None, 404),
        ("GET", "/api/v1/calls/nope", with_token, None, 404),
        ("GET", "/api/v1/calls?limit=-1", with_token, None, 400),
        ("GET", "/api/v1/calls?limit=1000000000", with_token, None, 400),
        ("GET", "/api/v1/calls?cursor=%27%20OR%201=1--", with_token, None, 400),
        ("GET", "/api/v1/calls?source=%27%20OR%201=1--", with_token, None, 200),
        ("GET", "/api/v1/calls?status=%27%20OR%201=1--", with_token, None, 400),
        ("GET", "/api/v1/../../etc/passwd", with_token, None, 404),
        ("DELETE", "/api/v1/tools", with_token, None, 405),
        ("GET", call, with_token, None, 405),
        ("GET", "/ws", with_token, None, 426),
        ("POST", "/api/v1/tools/nope/call", with_token, Some(json!({})), 404),
        ("POST", call, &[&token, "Content-Type: text/plain"], Some(json!({})), 415),
        ("POST", call, &[&token], Some(json!({})), 415),
        ("POST", call, &[&token, json_body, "Content-Encoding: gzip"], Some(json!({})), 415),
        ("POST", call, with_token, Some(json!([])), 400),
        ("POST", call, with_token, Some(json!({ "arguments": [] })), 400),
        ("POST", call, with_token, Some(json!({ "arguments": {} })), 422),
        ("POST", call, with_token, Some(json!({ "arguments": { "title": 7 } })), 422),
        ("POST", call, with_token, Some(json!({ "arguments": { "title": "x" }, "timeout": -1 })), 400),
        ("POST", call, with_token, Some(json!({ "arguments": { "title": "x" }, "timeout": 1e300 })), 400),
        ("POST", call, with_token, Some(json!({ "arguments": { "title": "x".repeat(5 << 20) } })), 413),
        ("POST", "/api/v1/connections/nope/restart", with_token, Some(json!({})), 404),
        ("POST", "/api/v1/breakers/todo/reset", with_token, Some(json!({})), 200),
    ];
    for (method, path, headers, body, expected) in cases {
        let (status, answer) = server.ask_with(method, path, headers, body.as_ref());
        assert_eq!(status, *expected, "{method} {path} {headers:?}: {answer}");
        if status >= 400 && !path.starts_with("/mcp") {
            assert!(answer["detail"].is_string(), "{method} {path}: {answer}");
        }
    }
    let delete = json!({ "arguments": { "todo_id": 99 } });
    let (status, refused) = server.ask("POST", "/api/v1/tools/todo:delete_todo/call", Some(&delete));
    assert_eq!((status, &refused["success"], &refused["is_error"]), (200, &json!(false), &json!(true)));
}

#[tokio::test]
async fn websocket_serves_mcp() {
    let server = Server::start(&["--no-auth"]);
    let url = format!("ws://{}/ws", server.address).parse().expect("a URL");
    let connected = Session::connect(&ws::WsEndpoint::new(url), &options()).await.expect("a session");
    let arguments = Raw::from(json!({ "title": "Over a socket" }));
    let made = connected.session.request(Request::call_tool("todo:create_todo", Some(&arguments))).await;
    let made: Value = made.expect("an answer").decode().expect("JSON");
    assert_eq!(made["structuredContent"]["title"], "Over a socket");
    drop(connected.session);
    connected.task.join().await;
    assert_eq!(server.terminate(), Some(0));
}

/// Every call is one log record, whose message and level show success or failure.
#[test]
fn a_failed_call_is_not_logged_as_completed() {
    let server = Server::start(&["--log-format", "json"]);
    let call = |tool: &str, arguments: Value| {
        let body = json!({ "arguments": arguments, "request_id": tool });
        server.ask("POST", &format!("/api/v1/tools/todo:{tool}/call"), Some(&body)).0
    };
    assert_eq!(call("list_todos", json!({})), 200);
    assert_eq!(call("delete_todo", json!({ "todo_id": 99 })), 200);
    assert_eq!(call("create_todo", json!({ "title": 7 })), 422);
    let logged = || -> Vec<Value> {
        let log = server.log();
        let records = log.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
        records.filter(|it| it["target"] == "wharf::call").collect()
    };
    // The log is written asynchronously.
    for _ in 0..600 {
        if logged().len() >= 3 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let logged = logged();
    for (tool, level, message, status) in [
        ("list_todos", "INFO", "MCP tool call completed", "success"),
        ("delete_todo", "WARN", "MCP tool call failed", "failure"),
        ("create_todo", "WARN", "MCP tool call failed", "failure"),
    ] {
        let of_call: Vec<&Value> = logged.iter().filter(|it| it.to_string().contains(tool)).collect();
        assert_eq!(of_call.len(), 1, "{logged:#?}");
        let record = of_call[0];
        let fields = if record["fields"].is_object() { &record["fields"] } else { record };
        assert_eq!((&record["level"], &fields["message"]), (&json!(level), &json!(message)), "{record:#}");
        assert_eq!((&fields["status"], &fields["request_id"]), (&json!(status), &json!(tool)), "{record:#}");
        assert!(fields["duration"].is_number() && fields["tool_name"].is_string(), "{record:#}");
    }
}

#[test]
fn exposed_token_file_is_rejected() {
    let server = Server::start(&[]);
    let token = server.folder.path().join("home/token");
    let mode = || fs::metadata(&token).expect("the token").permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("a mode");
    let mut server = server;
    server.child.kill().expect("it runs");
    let folder = server.into_folder();
    let again = wharf(&folder).args(["serve", "--listen", "127.0.0.1:0"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(2), "{said}");
    assert!(said.contains("can be read by others"), "{said}");
}

#[test]
fn no_auth_is_rejected_beyond_loopback() {
    let folder = TempDir::new().expect("a folder");
    let refused =
        wharf(&folder).args(["serve", "--listen", "0.0.0.0:0", "--no-auth"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`--no-auth` would give access to everyone"));
}

#[test]
fn breaker_opens_after_repeated_failures() {
    let folder = TempDir::new().expect("a folder");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    let agent_file = format!(
        "tools:\n  - {{name: dead, description: d, type: mcp, server: x, transport: http, url: 'http://127.0.0.1:{port}/mcp'}}\n"
    );
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("the file can be written");
    let server = Server::start_in(folder, &[]);
    let call = || server.ask("POST", "/api/v1/tools/dead:any/call", Some(&json!({})));
    let mut answers: Vec<(u16, Value)> = (0..8).map(|_| call()).collect();
    let (status, refused) = answers.pop().expect("an answer");
    assert_eq!(answers[0].0, 502, "{answers:#?}");
    assert_eq!((status, &refused["type"]), (503, &json!("MCPConnectionError")), "{refused:#}");
    let known =
        wharf_runtime::known_causes().iter().find(|it| it.name == "breaker-open").expect("a known cause");
    assert_eq!(refused["hint"], known.hint.replace("{name}", "dead"));
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(
        detail.starts_with("the circuit breaker for `dead` is open after repeated failures")
            && detail.contains("refused"),
        "{detail}"
    );
    let (_, breakers) = server.ask("GET", "/api/v1/breakers", None);
    assert_eq!(
        (&breakers["items"][0]["state"], &breakers["items"][0]["failure_count"]),
        (&json!("OPEN"), &json!(5))
    );
    assert_eq!(server.ask("POST", "/api/v1/breakers/dead/reset", Some(&json!({}))).0, 200);
    assert_eq!(call().0, 502);
}

/// A changed agent file takes effect; a broken one does not.
#[test]
fn changed_agent_file_is_applied() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("agent.yaml");
    let entry =
        |name: &str| format!("  - {{name: {name}, description: d, type: mcp, server: 'builtin:todo'}}\n");
    fs::write(&file, format!("tools:\n{}", entry("one"))).expect("the file can be written");
    let server = Server::start_in(folder, &[]);
    let sources = || {
        let (_, page) = server.ask("GET", "/api/v1/connections", None);
        let items = page["items"].as_array().cloned().unwrap_or_default();
        let names = items.iter().map(|it| it["server_name"].as_str().unwrap_or_default().to_owned());
        names.collect::<Vec<String>>()
    };
    let becomes = |expected: &[&str]| {
        for _ in 0..300 {
            if sources() == expected {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{:?} instead of {expected:?}", sources());
    };
    becomes(&["one"]);
    fs::write(&file, format!("tools:\n{}{}", entry("one"), entry("another")))
        .expect("the file can be written");
    becomes(&["one", "another"]);
    fs::write(&file, "tools: [{name: broken}]\n").expect("the file can be written");
    // Waits long enough for the change to be noticed.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert_eq!(sources(), ["one", "another"]);
    fs::write(&file, format!("tools:\n{}", entry("another"))).expect("the file can be written");
    becomes(&["another"]);
}

/// Reads pages of three, newest first; each call appears once.
#[tokio::test]
async fn calls_are_listed_page_by_page() {
    let server = Server::start(&[]);
    for number in 0..8 {
        let body = json!({ "arguments": { "title": "x" }, "request_id": format!("call-{number}") });
        assert_eq!(server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&body)).0, 200);
    }
    let (mut seen, mut query) = (Vec::new(), "limit=3".to_owned());
    loop {
        let (status, page) = server.ask("GET", &format!("/api/v1/calls?{query}"), None);
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().expect("a list");
        assert!(items.len() <= 3);
        seen.extend(items.iter().map(|it| it["request_id"].as_str().unwrap_or_default().to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("limit=3&cursor={cursor}"),
            None => break,
        }
    }
    let expected: Vec<String> = (0..8).rev().map(|it| format!("call-{it}")).collect();
    assert_eq!(seen, expected);
}
