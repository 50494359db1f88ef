//! Tests the reference server "everything" over each of its transports: command line, exit code and output.

use super::{
    background::{BackgroundServer, free_port},
    workspace::Workspace,
};
use serde_json::{Value, json};

const PACKAGE: &str = "@modelcontextprotocol/server-everything";

/// Command line, exit code, expected text.
const CASES: &[(&str, i32, &str)] = &[
    ("call echo message=hello", 0, "Echo: hello\n"),
    ("call everything__get-sum a:=2 b:=3", 0, "The sum of 2 and 3 is 5.\n"),
    ("call get-tiny-image", 0, "\n[image image/png, "),
    ("call get-sum a=two b:=3", 2, "expected a number"),
    ("call get-sum a:=2 b:=3 --timeout 0", 2, "--timeout must be"),
    ("call no-such-tool", 66, "there is no tool 'no-such-tool'"),
    ("prompts", 0, "everything (4)\n  simple-prompt "),
    ("prompt args-prompt city=Berlin", 0, "user:\nWhat's weather in Berlin?\n"),
    ("prompt no-such-prompt", 66, "there is no prompt 'no-such-prompt'"),
    ("resources", 0, "  demo://resource/dynamic/text/{resourceId} "),
    ("read demo://resource/dynamic/text/7", 0, "Resource 7: "),
    ("read demo://resource/dynamic/blob/7", 0, "[resource text/plain, "),
    ("read demo://nowhere", 66, "demo://nowhere"),
];

#[tokio::test]
async fn everything_works_over_stdio() {
    let entry = format!("{{name: everything, description: d, type: mcp, server: '{PACKAGE}', command: npx}}");
    check(entry, "stdio").await;
}

#[tokio::test]
async fn everything_works_over_sse() {
    let port = free_port();
    let _server = BackgroundServer::listening_on(port, "npx", &["-y", PACKAGE, "sse"]).await;
    check(remote("sse", format!("http://127.0.0.1:{port}/sse")), "sse").await;
}

#[tokio::test]
async fn everything_works_over_streamable_http() {
    let port = free_port();
    let _server = BackgroundServer::listening_on(port, "npx", &["-y", PACKAGE, "streamableHttp"]).await;
    check(remote("http", format!("http://127.0.0.1:{port}/mcp")), "http").await;
}

#[tokio::test]
async fn slow_call_times_out() {
    let port = free_port();
    let _server = BackgroundServer::listening_on(port, "npx", &["-y", PACKAGE, "streamableHttp"]).await;
    let workspace = Workspace::with(&agent_file(remote("http", format!("http://127.0.0.1:{port}/mcp"))));
    let typed = "call trigger-long-running-operation duration:=60 steps:=60 --timeout 1";
    workspace.wharf(typed).await.check(124, "MCPTimeoutError");
}

fn remote(transport: &str, url: String) -> String {
    format!(
        "{{name: everything, description: d, type: mcp, server: x, transport: {transport}, url: '{url}'}}"
    )
}

fn agent_file(entry: String) -> String {
    format!("tools:\n  - {entry}\n")
}

/// Runs two cases at a time, because each command starts a new server.
async fn check(entry: String, transport: &str) {
    let workspace = Workspace::with(&agent_file(entry));
    let (first, second) = CASES.split_at(CASES.len() / 2);
    tokio::join!(
        check_cases(&workspace, first),
        check_cases(&workspace, second),
        check_tools(&workspace, transport),
        check_content(&workspace),
    );
    workspace.assert_nothing_left();
}

async fn check_cases(workspace: &Workspace, cases: &[(&str, i32, &str)]) {
    for (typed, code, words) in cases {
        workspace.wharf(typed).await.check(*code, words);
    }
}

async fn check_tools(workspace: &Workspace, transport: &str) {
    let said = workspace.wharf("tools --json").await;
    said.check(0, "");
    let report = said.json();
    let source = &report["sources"][0];
    assert_eq!(
        (&source["name"], &source["transport"], &source["state"], &source["era"]),
        (&json!("everything"), &json!(transport), &json!("connected"), &json!("legacy"))
    );
    let tools = report["tools"].as_array().expect("a list");
    assert_eq!(source["tools"], tools.len());
    let echo = tools.iter().find(|it| it["wire_name"] == "echo").expect("the tool");
    assert_eq!((&echo["name"], &echo["quarantined"]), (&json!("everything__echo"), &Value::Null));
    assert_eq!(echo["input_schema"]["required"], json!(["message"]));
}

async fn check_content(workspace: &Workspace) {
    let weather = workspace.wharf("call get-structured-content location=Chicago --json").await.json();
    let structured = &weather["metadata"]["structured_content"];
    assert!(structured["temperature"].is_number() && structured["conditions"].is_string(), "{weather:#}");

    let error = workspace.wharf("call get-sum a:=\"two\" b:=3 --json").await.json();
    assert_eq!((&error["success"], &error["error"]["phase"]), (&json!(false), &json!("check")));
    let message = error["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("`arguments.a` is a string, but a number is expected"), "{message}");

    let image = workspace.wharf("call get-tiny-image --save pictures").await;
    image.check(0, "written to pictures/content-2.png]");
    let saved = std::fs::read(workspace.path("pictures/content-2.png")).expect("the picture");
    assert!(saved.starts_with(b"\x89PNG"), "{} bytes that are no picture", saved.len());
}
