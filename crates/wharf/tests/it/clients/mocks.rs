//! Recordings of real servers, served by `wharf mock` to the official clients: each gets what the real server answered.

use super::{
    Client, ClientKind, Transport, run_against,
    steps::{self, Step},
    test_gateway::Target,
};
use crate::servers::workspace::{Workspace, tool};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    thread,
};
use tempfile::TempDir;

/// Clients: each language, in both eras.
const ERAS: [(ClientKind, &str); 6] = [
    (ClientKind::Python1, "legacy"),
    (ClientKind::Python2, "modern"),
    (ClientKind::TypeScript1, "legacy"),
    (ClientKind::TypeScript2, "modern"),
    (ClientKind::Rust, "legacy"),
    (ClientKind::Rust, "modern"),
];

/// Entries of agent.yaml.
const AGENT: &str = "tools:
  - {name: everything, description: d, type: mcp, server: '@modelcontextprotocol/server-everything', command: npx}
  - {name: files, description: d, type: mcp, server: '@modelcontextprotocol/server-filesystem', command: npx, args: ['-y', '@modelcontextprotocol/server-filesystem', '.']}
  - {name: memory, description: d, type: mcp, server: '@modelcontextprotocol/server-memory', command: npx}
  - {name: thinking, description: d, type: mcp, server: '@modelcontextprotocol/server-sequential-thinking', command: npx}
  - {name: fetch, description: d, type: mcp, server: mcp-server-fetch, command: uvx, args: [mcp-server-fetch, --ignore-robots-txt]}
  - {name: time, description: d, type: mcp, server: mcp-server-time, command: uvx}
  - {name: git, description: d, type: mcp, server: mcp-server-git, command: uvx}
";

/// One call to each server: a result, a picture, structured content, and an error of a tool.
const SCENARIO: &str = "cassette: real.jsonl
calls:
  - {tool: 'everything:get-sum', arguments: {a: 2, b: 3}}
  - {tool: 'everything:get-tiny-image'}
  - {tool: 'files:list_directory', arguments: {path: .}}
  - {tool: 'memory:create_entities', arguments: {entities: [{name: Ada, entityType: person, observations: [writes programs]}]}}
  - {tool: 'thinking:sequentialthinking', arguments: {thought: Begin, thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false}}
  - {tool: 'fetch:fetch', arguments: {url: 'http://127.0.0.1:PORT/page', raw: true}}
  - {tool: 'time:convert_time', arguments: {source_timezone: UTC, time: '12:00', target_timezone: Asia/Tokyo}}
  - {tool: 'git:git_status', arguments: {repo_path: /nowhere}}
";

/// A served recording, stopped on drop.
struct Mock(Child);

impl Drop for Mock {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

fn serve(workspace: &Workspace) -> (Mock, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(["mock", "real.jsonl", "--transport", "http"])
        .current_dir(workspace.path(""))
        .stdout(Stdio::piped())
        .spawn()
        .expect("wharf runs");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut url).expect("its address");
    (Mock(child), url.trim().to_owned())
}

/// Serves one page on a free port of loopback for as long as the test runs. Returns the port.
fn serve_page() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nConnection: close\r\n\r\nhello, boats";
            let _ = stream.write_all(page.as_bytes());
        }
    });
    port
}

/// Returns the steps that repeat the recorded calls, with the recorded results.
fn recorded_steps(text: &str) -> Vec<Step> {
    let lines = text.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
    let calls: Vec<Value> = lines.filter_map(|it| it.get("call").cloned()).collect();
    assert_eq!(calls.len(), SCENARIO.matches("- {tool").count(), "{text}");
    let names: Vec<String> = calls
        .iter()
        .map(|it| {
            format!("{}__{}", it["source"].as_str().expect("a name"), it["tool"].as_str().expect("a name"))
        })
        .collect();
    let listed: Vec<Value> = names.iter().map(|it| json!({ "name": it })).collect();
    let mut steps = vec![steps::list_tools(listed)];
    steps.extend(calls.iter().zip(&names).map(|(call, name)| {
        assert!(call["result"].is_object(), "{call}");
        let mut result = call["result"].clone();
        remove_files(&mut result);
        steps::call(name, call["arguments"].clone(), result)
    }));
    steps
}

/// Removes what is in files beside the recording.
fn remove_files(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_files),
        Value::Object(members) => {
            members.retain(|_, it| it.get("$file").is_none());
            members.values_mut().for_each(remove_files);
        }
        _ => {}
    }
}

#[test]
fn mock_answers_every_official_client_in_both_eras_as_the_real_servers_did() {
    let path = |name: &str| tool(name).display().to_string();
    let workspace = Workspace::with(AGENT)
        .set("NPM_CONFIG_CACHE", &path("npx-reference"))
        .set("UV_CACHE_DIR", &path("uvx-reference"))
        .set("UV_PYTHON", &path("python/bin/python"));
    let scenario = SCENARIO.replace("PORT", &serve_page().to_string());
    fs::write(workspace.path("real.test.yaml"), scenario).expect("a file");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { workspace.wharf("test --update").await.check(0, "1 passed, 0 failed") });
    let text = fs::read_to_string(workspace.path("real.jsonl")).expect("the recording");
    let steps = recorded_steps(&text);
    let (_mock, url) = serve(&workspace);
    for (kind, era) in ERAS {
        let home = TempDir::new().expect("a folder");
        let target = Target { transport: Transport::Http, words: vec![url.clone()], home };
        run_against(&Client { kind, transport: Transport::Http, era }, &target, &steps);
    }
}
