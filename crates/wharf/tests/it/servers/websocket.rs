//! Tests WebSocket servers. No protocol revision defines this transport, but two programs implement it: the Python
//! SDK up to version 1, and a gateway that exposes any stdio server on a port.

use super::{
    background::{BackgroundServer, free_port},
    workspace::{Workspace, tool},
};

fn agent_file(url: &str) -> String {
    format!(
        "tools:\n  - {{name: far, description: d, type: mcp, server: x, transport: websocket, url: '{url}'}}\n"
    )
}

#[tokio::test]
async fn python_sdk_server_works_over_websocket() {
    let port = free_port();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/fixtures/websocket.py");
    let python = tool("python/bin/python").display().to_string();
    let _server = BackgroundServer::listening_on(port, &python, &[script, &port.to_string()]).await;
    let workspace = Workspace::with(&agent_file(&format!("ws://127.0.0.1:{port}/ws")));
    workspace.wharf("tools").await.check(0, "far (1)\n  far__shout  Says it louder\n");
    workspace.wharf("call shout text=ahoy").await.check(0, "AHOY\n");
    workspace.wharf("call shout").await.check(2, "`arguments.text` is missing");
    workspace.wharf("call shout text=").await.check(1, "there is nothing to say");
    let refused = workspace.wharf("call shout text= --json").await.json();
    assert_eq!((&refused["success"], &refused["error"]["type"]), (&false.into(), &"ToolError".into()));
}

#[tokio::test]
async fn supergateway_works_over_websocket() {
    let port = free_port();
    let number = port.to_string();
    let behind = "npx -y @modelcontextprotocol/server-memory";
    let args = ["-y", "supergateway@4", "--stdio", behind, "--outputTransport", "ws", "--port", &number];
    let _server = BackgroundServer::listening_on(port, "npx", &args).await;
    let workspace = Workspace::with(&agent_file(&format!("ws://127.0.0.1:{port}/message")));
    workspace.wharf("doctor").await.check(0, "ok    far  websocket  2025-11-25  9 tools");
    workspace.wharf("call read_graph").await.check(0, "\"relations\": []");
    workspace.wharf("read memory://knowledge-graph").await.check(0, "\"entities\": []");
}
