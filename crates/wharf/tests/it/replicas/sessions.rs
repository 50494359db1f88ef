//! Tests that a handshake-era session that starts at one gateway continues at another, for the same principal.

use super::{Cluster, OTHER_TOKEN, PROPAGATION_TIMEOUT, until};
use crate::kills::gateway::TOKEN;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use wharf_store::{Location, Store};

/// Sends a request and returns status, session id and body.
async fn send(
    gateway: &str,
    method: &str,
    token: &str,
    session: &str,
    body: &Value,
) -> (u16, String, String) {
    let body = if method == "POST" { body.to_string() } else { String::new() };
    let session = if session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {session}\r\n") };
    let request = format!(
        "{method} /mcp HTTP/1.1\r\nHost: {gateway}\r\nAuthorization: Bearer {token}\r\n{session}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(gateway).await.expect("somebody listens");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    let named =
        head.lines().find_map(|it| it.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
    (status, named.unwrap_or_default(), body.to_owned())
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn begin(gateway: &str) -> String {
    let client = json!({ "name": "a client that moves", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let (status, session, _) = send(gateway, "POST", TOKEN, "", &request("initialize", &params)).await;
    assert_eq!((status, session.len()), (200, 32));
    session
}

#[tokio::test]
async fn session_continues_at_another_replica() {
    let cluster = Cluster::new().await;
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    let (here, there) = (here.address.as_str(), there.address.as_str());
    let session = begin(here).await;
    let call = request("tools/call", &json!({ "name": "puppet__echo", "arguments": { "number": 7 } }));

    let (status, _, body) = send(there, "POST", TOKEN, &session, &call).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("number") && !body.contains("isError\":true"), "{body}");
    let (status, ..) = send(there, "POST", OTHER_TOKEN, &session, &call).await;
    assert_eq!(status, 404, "it is not theirs");
    let (status, ..) = send(there, "POST", TOKEN, &"0".repeat(32), &call).await;
    assert_eq!(status, 404, "nobody has begun it");
    let (status, ..) = send(there, "DELETE", OTHER_TOKEN, &session, &Value::Null).await;
    assert_eq!(status, 404, "it is not theirs");

    // Session state set at one gateway is known to the other, but the database alone does not reveal the session id.
    let (status, ..) =
        send(there, "POST", TOKEN, &session, &request("logging/setLevel", &json!({ "level": "error" })))
            .await;
    assert_eq!(status, 200);
    let location = Location::parse(&cluster.postgres.address()).expect("an address");
    let store = Store::open(&location).await.expect("the database opens");
    assert_eq!(store.session(&session).await.expect("it is read"), None, "its name is the client's alone");
    let key = sha256(&session);
    let row = store.session(&key).await.expect("it is read").expect("a session");
    assert_eq!((row.log_level.as_deref(), row.principal.as_deref()), (Some("error"), Some("operator")));
    assert!(row.client_info.is_some_and(|it| it.contains("a client that moves")));

    let (status, ..) = send(there, "DELETE", TOKEN, &session, &Value::Null).await;
    assert_eq!(status, 204);
    until("it is over everywhere", PROPAGATION_TIMEOUT, async || {
        send(here, "POST", TOKEN, &session, &call).await.0 == 404
    })
    .await;
    assert_eq!(store.session(&key).await.expect("it is read"), None);
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
