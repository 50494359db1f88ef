//! Tests that a gateway records prompts and resources, and answers them from the recording.

use super::disabled_tools::mcp;
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

const AGENT: &str = "tools:\n  - {name: todo, description: d, type: mcp, server: 'builtin:todo'}\n";

fn start(args: &[&str]) -> Server {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), AGENT).expect("a file");
    let server = Server::start_in(folder, args);
    assert_eq!(server.ask("GET", "/api/v1/tools", None).0, 200);
    server
}

fn prompt(server: &Server, date: &str) -> Value {
    let name = mcp(server, "prompts/list", json!({}))["result"]["prompts"][0]["name"].clone();
    mcp(server, "prompts/get", json!({ "name": name, "arguments": { "date": date } }))
}

fn resource(server: &Server, uri: &str) -> Value {
    mcp(server, "resources/read", json!({ "uri": uri }))
}

#[test]
fn prompts_and_resources_are_recorded_and_replayed() {
    let recordings = TempDir::new().expect("a folder");
    let record = recordings.path().join("a.jsonl").display().to_string();
    let server = start(&["--record", &record]);
    let todo = json!({ "arguments": { "title": "Paint the boat" } });
    assert_eq!(server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&todo)).0, 200);
    let (live_prompt, live_resource) = (prompt(&server, "2026-11-18"), resource(&server, "todo://1"));
    assert!(live_prompt["result"]["messages"].is_array(), "{live_prompt}");
    assert!(live_resource.to_string().contains("Paint the boat"), "{live_resource}");
    let refused = resource(&server, "todo://99");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    server.terminate();
    let text = fs::read_to_string(&record).expect("the recording");
    for kind in [r#"{"prompt":{"arguments":{"date":"2026-11-18"},"#, r#"{"read":{"conversation":"#] {
        assert!(text.contains(kind), "{kind}: {text}");
    }

    let server = start(&["--replay", &record]);
    assert_eq!(prompt(&server, "2026-11-18")["result"]["messages"], live_prompt["result"]["messages"]);
    assert_eq!(resource(&server, "todo://1")["result"]["contents"], live_resource["result"]["contents"]);
    assert_eq!(resource(&server, "todo://99")["error"]["code"], -32602);
    let missing = prompt(&server, "2026-11-19");
    assert!(missing.to_string().contains("is not in a.jsonl"), "{missing}");
}
