//! Tests that a source registered at one gateway appears at all, and disappears when it is removed.

use super::{Cluster, PROPAGATION_TIMEOUT, until};
use crate::kills::gateway::{TOKEN, ask};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Sends a request and returns the complete response.
async fn send(gateway: &str, method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {gateway}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(gateway).await.expect("somebody listens");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

#[tokio::test]
async fn registered_source_is_served_by_every_replica() {
    let cluster = Cluster::new().await;
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    let url = cluster.puppet.url();
    let mut took = Vec::new();
    for name in ["late", "later", "last"] {
        let source = json!({ "name": name, "source_type": "mcp", "mcp_transport_type": "streamable_http", "mcp_server_url": url });
        let answer = send(&here.address, "POST", "/api/v1/sources", &source.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        let registered = Instant::now();
        let call = async || {
            let body = json!({ "arguments": { "number": 1 } }).to_string();
            ask(&there.address, "POST", &format!("/api/v1/tools/{name}:echo/call"), &body).await
        };
        until("the others have it", PROPAGATION_TIMEOUT, async || {
            call().await.is_ok_and(|it| it["success"] == true)
        })
        .await;
        took.push(registered.elapsed());
    }
    println!("registered at one, called at another after {took:?}");
    // A busy machine may be late, but not every time.
    assert!(took.iter().min().is_some_and(|it| *it < Duration::from_secs(1)), "{took:?}");

    let answer = send(&there.address, "DELETE", "/api/v1/sources/late", "").await;
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    let gone = async || ask(&here.address, "POST", "/api/v1/tools/late:echo/call", "{}").await;
    until("it is gone everywhere", PROPAGATION_TIMEOUT, async || {
        gone().await.is_err_and(|it| it.contains("404"))
    })
    .await;
}
