//! Tests servers that offer both eras: clients of the handshake era keep elicitation, sampling and roots.

use super::{
    test_client::{Gateway, TestClient, Transport},
    test_server::{NO_REQUESTS, TestServer},
};
use crate::servers::{
    background::{BackgroundServer, free_port},
    workspace::tool,
};
use serde_json::{Value, json};
use std::sync::Arc;
use wharf_mcp::{
    Request,
    serve::Eras,
    session::{Era, NoHost},
};

const TRANSPORTS: [Transport; 3] = [Transport::Http, Transport::Ws, Transport::Sse];

/// Returns the protocol version in which the server receives the calls of this client.
async fn version_at_server(client: &TestClient) -> Value {
    let said = client.call("whoami", json!({})).await;
    let seen: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    seen["version"].clone()
}

#[tokio::test]
async fn server_of_both_eras_asks_a_handshake_client() {
    let test_server = TestServer::start(Eras::Both).await;
    let gateway = Gateway::in_front_of(&test_server);
    for transport in TRANSPORTS {
        let ada = gateway.connect(transport, Era::Legacy, "Ada").await;
        assert_eq!(version_at_server(&ada).await, "2025-11-25", "{transport:?}");
        // One asks with requests, the other in its result.
        for tool in ["push", "rounds"] {
            let said = ada.call(tool, json!({})).await;
            let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{tool}: {said}"));
            assert_eq!(said["who"]["content"]["name"], "Ada", "{transport:?} {tool}");
            assert_eq!(said["what"]["content"]["text"], "Ada", "{transport:?} {tool}");
            assert_eq!(said["where"]["roots"][0]["name"], "Ada", "{transport:?} {tool}");
        }
        assert_eq!(ada.ask(Request::get_prompt("greet", None)).await, r#"Greet "Ada"."#, "{transport:?}");
        let secret = ada.ask(Request::read_resource("island://secret/1")).await;
        assert_eq!(secret, r#"for "Ada""#, "{transport:?}");
    }
}

#[tokio::test]
async fn other_clients_use_the_newest_era() {
    let test_server = TestServer::start(Eras::Both).await;
    let gateway = Gateway::in_front_of(&test_server);
    let ada = gateway.connect(Transport::Http, Era::Legacy, "Ada").await;
    assert_eq!(version_at_server(&ada).await, "2025-11-25");
    let mute = gateway.connect_with(Transport::Http, Era::Legacy, "Mute", Arc::new(NoHost)).await;
    assert_eq!(version_at_server(&mute).await, "2026-07-28", "this client cannot be asked anyway");
    let bob = gateway.connect(Transport::Http, Era::Modern, "Bob").await;
    assert_eq!(version_at_server(&bob).await, "2026-07-28");
    let said = bob.call("push", json!({})).await;
    assert!(said.contains(NO_REQUESTS), "as without the gateway: {said}");
    assert!(bob.call("rounds", json!({})).await.contains("Bob"));
}

#[tokio::test]
async fn era_of_the_entry_is_used_for_all_clients() {
    let test_server = TestServer::start(Eras::Both).await;
    for (pinned, expected) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let gateway = Gateway::start(&[("island", &test_server, &format!("era: {pinned}"))]);
        for era in [Era::Legacy, Era::Modern] {
            let ada = gateway.connect(Transport::Http, era, "Ada").await;
            assert_eq!(version_at_server(&ada).await, expected, "{era:?}");
        }
    }
}

/// The Python SDK offers both eras, but names only one of them in `server/discover`.
#[tokio::test]
async fn python_server_asks_clients_of_both_eras() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/bridge/both_eras.py");
    let python = tool("python-2/bin/python").display().to_string();
    let port = free_port();
    let _server = BackgroundServer::listening_on(port, &python, &[script, &port.to_string()]).await;
    let remote = format!("transport: http, url: \"http://127.0.0.1:{port}/mcp\"");
    let local = format!("command: \"{python}\", args: [\"{script}\"]");
    for reached_by in [remote, local] {
        let entry =
            format!("{{ name: both, type: mcp, server: s, description: d, prefix: \"\", {reached_by} }}");
        let grants = format!("[grants]\ncommands = [\"{python}\"]\n");
        let gateway = Gateway::start_with(&format!("tools:\n  - {entry}\n"), &grants);
        let ada = gateway.connect(Transport::Http, Era::Legacy, "Ada").await;
        let bob = gateway.connect(Transport::Http, Era::Modern, "Bob").await;
        for tool in ["push", "either", "rounds", "push"] {
            assert_eq!(ada.call(tool, json!({})).await, "Ada", "{tool}: {entry}");
        }
        for tool in ["either", "rounds"] {
            assert_eq!(bob.call(tool, json!({})).await, "Bob", "{tool}: {entry}");
        }
    }
}
