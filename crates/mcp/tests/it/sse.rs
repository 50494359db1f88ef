//! Tests the legacy SSE client against scripted servers.

use crate::{eras::options, fake_http::FakeHttp};
use std::time::Duration;
use wharf_mcp::{Request, Session, http::HttpClient, sse::SseEndpoint};

/// Connects, calls a tool and compares the outcome.
async fn check(script: &str, expected: &str) {
    let fake = FakeHttp::start(script).await;
    let endpoint = SseEndpoint::new(fake.url(), HttpClient::new(Duration::from_secs(2)).unwrap());
    let outcome = match Session::connect(&endpoint, &options()).await {
        Ok(connected) => {
            let version = connected.session.terms().version.to_string();
            let called = connected.session.request(Request::call_tool("t", None)).await;
            format!(
                "{version}: {}",
                called.map_or_else(|failure| failure.to_string(), |raw| raw.as_str().to_owned())
            )
        }
        Err(failure) => format!("{:?} {:?}: {failure}", failure.class, failure.phase),
    };
    assert_eq!(outcome, expected, "for {script}");
}

#[tokio::test]
async fn the_endpoint_event_sets_the_post_url() {
    let handshake = r#"
        GET: sse+ event: endpoint\ndata: /messages?id=1\n\nevent: endpoint\ndata: http://evil.example/\n\n
        POST server/discover: push {"id":$id,"error":{"code":-32601,"message":"no"}}
        POST initialize: push {"id":$id,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}
        POST notifications/initialized: 202 "#;
    for (script, expected) in [
        (format!("{handshake}\nPOST tools/call: push {{\"id\":$id,\"result\":1}}"), "2024-11-05: 1"),
        (format!("{handshake}\nPOST tools/call: 400 "), "2024-11-05: the server answered 400 Bad Request"),
        (
            format!("{handshake}\nPOST tools/call: push {{\"jsonrpc\":\"2.0\""),
            "2024-11-05: a message is truncated, or contains newlines",
        ),
        (
            "GET: sse+ event: endpoint\\ndata: http://localhost:9/x\\n\\n".into(),
            "Protocol Open: the server names another origin for messages: `http://localhost:9/x`",
        ),
        ("GET: json {}".into(), "Connect Open: the server offers no event stream at this address"),
        ("GET: 404 ".into(), "Connect Open: the server answered 404 Not Found"),
        ("GET: sse event: endpoint\\n".into(), "Connect Open: the server closed the stream"),
    ] {
        check(&script, expected).await;
    }
}
