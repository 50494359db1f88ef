//! Tests the legacy SSE client against scripted servers.

use crate::{eras::options, fake_http::FakeHttp};
use std::time::Duration;
use wharf_mcp::{Request, Session, http::Client, sse::Endpoint};

/// Connects, calls a tool and compares the outcome.
async fn check(script: &str, expected: &str) {
    let fake = FakeHttp::start(script).await;
    let endpoint = Endpoint::new(fake.url(), Client::new(Duration::from_secs(2)).unwrap());
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
async fn the_stream_names_a_place_and_brings_the_answers() {
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
            "2024-11-05: a message is cut short, or contains newlines",
        ),
        (
            "GET: sse+ event: endpoint\\ndata: http://localhost:9/x\\n\\n".into(),
            "Protocol Open: the server wants messages sent to another origin: `http://localhost:9/x`",
        ),
        ("GET: json {}".into(), "Connect Open: the server offers no stream of events at this address"),
        ("GET: 404 ".into(), "Connect Open: the server answered 404 Not Found"),
        ("GET: sse event: endpoint\\n".into(), "Connect Open: the server closed the stream"),
    ] {
        check(&script, expected).await;
    }
}
