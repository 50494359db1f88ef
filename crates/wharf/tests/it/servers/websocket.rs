//! Tests WebSocket servers. No protocol revision defines this transport, but two programs implement it: the Python
//! SDK up to version 1, and a gateway that exposes any stdio server on a port.

use super::{
    background::{Background, free_port},
    place::{Place, tool},
};

fn agent_file(url: &str) -> String {
    format!(
        "tools:\n  - {{name: far, description: d, type: mcp, server: x, transport: websocket, url: '{url}'}}\n"
    )
}

#[tokio::test]
async fn the_python_sdk() {
    let port = free_port();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/fixtures/websocket.py");
    let python = tool("python/bin/python").display().to_string();
    let _server = Background::listening_on(port, &python, &[script, &port.to_string()]).await;
    let place = Place::with(&agent_file(&format!("ws://127.0.0.1:{port}/ws")));
    place.wharf("tools").await.check(0, "far (1)\n  far__shout  Says it louder\n");
    place.wharf("call shout text=ahoy").await.check(0, "AHOY\n");
    place.wharf("call shout").await.check(2, "`arguments.text` is missing");
    place.wharf("call shout text=").await.check(1, "there is nothing to say");
    let refused = place.wharf("call shout text= --json").await.json();
    assert_eq!((&refused["success"], &refused["error"]["type"]), (&false.into(), &"ToolError".into()));
}

#[tokio::test]
async fn a_gateway_before_a_stdio_server() {
    let port = free_port();
    let number = port.to_string();
    let behind = "npx -y @modelcontextprotocol/server-memory";
    let args = ["-y", "supergateway@4", "--stdio", behind, "--outputTransport", "ws", "--port", &number];
    let _server = Background::listening_on(port, "npx", &args).await;
    let place = Place::with(&agent_file(&format!("ws://127.0.0.1:{port}/message")));
    place.wharf("doctor").await.check(0, "ok    far  websocket  2025-11-25  9 tools");
    place.wharf("call read_graph").await.check(0, "\"relations\": []");
    place.wharf("read memory://knowledge-graph").await.check(0, "\"entities\": []");
}
