//! Tests that a disabled tool is unavailable to callers, and stays disabled.

use crate::serve::server::Server;
use serde_json::{Value, json};

const TOOL: &str = "/api/v1/tools/todo:delete_todo";

/// Sends a sessionless MCP request and returns the response.
pub(crate) fn mcp(server: &Server, method: &str, params: Value) -> Value {
    let mut params = params;
    for (name, value) in [
        ("io.modelcontextprotocol/protocolVersion", json!("2026-07-28")),
        ("io.modelcontextprotocol/clientInfo", json!({ "name": "c", "version": "1" })),
        ("io.modelcontextprotocol/clientCapabilities", json!({})),
    ] {
        params["_meta"][name] = value;
    }
    let name = params["name"].as_str().or(params["uri"].as_str()).map(|it| format!("Mcp-Name: {it}"));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let (token, method) =
        (format!("Authorization: Bearer {}", server.token), format!("Mcp-Method: {method}"));
    let mut headers = vec![
        token.as_str(),
        method.as_str(),
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
    ];
    headers.extend(name.as_deref());
    server.ask_with("POST", "/mcp", &headers, Some(&body)).1
}

fn names(server: &Server) -> Vec<String> {
    let listed = mcp(server, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn disabled_tool_is_unavailable_until_enabled() {
    let server = Server::start(&[]);
    assert!(names(&server).contains(&"todo__delete_todo".to_owned()));
    let off = json!({ "enabled": false, "reason": "nothing is deleted here" });
    let (status, tool) = server.ask("PATCH", TOOL, Some(&off));
    assert_eq!((status, &tool["enabled"], &tool["reason"]), (200, &json!(false), &off["reason"]), "{tool}");

    let check_disabled = |server: &Server| {
        let call = json!({ "arguments": { "todo_id": 1 } });
        let (status, refused) = server.ask("POST", &format!("{TOOL}/call"), Some(&call));
        assert_eq!(status, 403, "{refused}");
        assert!(
            refused["detail"].as_str().is_some_and(|it| it.contains("nothing is deleted here")),
            "{refused}"
        );
        assert_eq!(names(server).len(), 4);
        let arguments = json!({ "name": "todo__delete_todo", "arguments": { "todo_id": 1 } });
        let refused = mcp(server, "tools/call", arguments);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].to_string().contains("nothing is deleted here"), "{refused}");
        let (_, listed) = server.ask("GET", "/api/v1/tools?enabled=false", None);
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
        assert_eq!(listed["items"][0]["tool_id"], "todo:delete_todo");
    };
    check_disabled(&server);
    let mut server = server;
    server.child.kill().expect("it ran");
    let server = Server::start_in(server.into_folder(), &[]);
    check_disabled(&server);

    let (status, tool) = server.ask("PATCH", TOOL, Some(&json!({ "enabled": true })));
    assert_eq!((status, &tool["enabled"], &tool["reason"]), (200, &json!(true), &Value::Null));
    assert_eq!(names(&server).len(), 5);
    let call = json!({ "arguments": { "todo_id": 1 } });
    assert_eq!(server.ask("POST", &format!("{TOOL}/call"), Some(&call)).0, 200);
    for (body, expected) in [
        (json!({}), 400),
        (json!({ "enabled": "no" }), 400),
        (json!({ "enabled": false, "reason": 7 }), 400),
        (json!({ "enabled": false, "reason": "a\nb" }), 400),
        (json!({ "enabled": false, "because": "typo" }), 400),
    ] {
        assert_eq!(server.ask("PATCH", TOOL, Some(&body)).0, expected, "{body}");
    }
    assert_eq!(server.ask("PATCH", "/api/v1/tools/todo:nope", Some(&off)).0, 404);
}
