//! Tests that sources registered with a gateway are also available to clients that start `wharf stdio`.

use super::upstream::Upstream;
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{path::Path, sync::atomic::Ordering};
use wharf_mcp::{
    Request, Session,
    session::{ClientInfo, List, Options},
    stdio,
};

#[test]
fn registered_sources_are_served_over_stdio() {
    let upstream = Upstream::start();
    let server = Server::start(&[]);
    let body = json!({
        "name": "far", "url": format!("http://{}", upstream.address), "source_type": "mcp",
        "mcp_server_url": format!("http://{}", upstream.address), "mcp_transport_type": "streamable_http",
        "mcp_env_vars": { "API_KEY": "a-key-of-the-operators" },
    });
    let (status, source) = server.ask("POST", "/api/v1/sources", Some(&body));
    assert_eq!(status, 201, "{source}");
    let off = json!({ "enabled": false, "reason": "under review" });
    assert_eq!(server.ask("PATCH", "/api/v1/tools/todo:delete_todo", Some(&off)).0, 200);

    // The gateway keeps running meanwhile; each process has its own sessions.
    let before = upstream.heard.calls.load(Ordering::SeqCst);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let names = runtime.block_on(list_and_call(server.folder.path()));
    for (name, is_there) in [("far__slow", true), ("todo__create_todo", true), ("todo__delete_todo", false)] {
        assert_eq!(names.contains(&json!(name)), is_there, "{name}: {names:?}");
    }
    assert_eq!(upstream.heard.calls.load(Ordering::SeqCst), before + 1);
    assert!(upstream.heard.headers().contains("a-key-of-the-operators"));
    let call = server.ask("POST", "/api/v1/tools/far:slow/call", Some(&json!({ "arguments": {} })));
    assert_eq!(call.0, 200, "{}", call.1);
}

/// Calls a tool as a desktop client does, and returns the names of all tools.
async fn list_and_call(folder: &Path) -> Vec<Value> {
    let mut command = stdio::Command::new(env!("CARGO_BIN_EXE_wharf"), folder);
    command.args = vec!["stdio".into()];
    command.env = vec![("WHARF_HOME".into(), folder.join("home").into())];
    let options = Options::new(ClientInfo { name: "a desktop".into(), version: "1".into() });
    let connected = Session::connect(&command, &options).await.expect("a session");
    let tools = connected.session.list(List::Tools).await.expect("a list").items;
    let called = connected.session.request(Request::call_tool("far__slow", None)).await;
    assert!(called.is_ok(), "{called:?}");
    drop(connected.session);
    connected.task.join().await;
    tools.iter().filter_map(|it| it.member("name")).map(|it| it.decode_or_default()).collect()
}
