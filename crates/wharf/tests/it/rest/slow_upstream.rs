//! Tests a gateway in front of a slow remote server: responses to callers, and the requests that the server must
//! not see.

use super::{
    disabled_tools::mcp,
    upstream::{REPORTS, Upstream},
};
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::Ordering,
    time::Duration,
};
use tempfile::TempDir;

const SLOW: &str = "/api/v1/tools/far:slow/call";

pub(super) fn gateway_before(upstream: &Upstream, settings: &str) -> Server {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), upstream.agent_file()).expect("an agent file");
    let file = folder.path().join("wharf.toml");
    fs::write(&file, settings).expect("settings");
    Server::start_in(folder, &["--settings", &file.display().to_string()])
}

pub(super) fn call(millis: u64) -> Value {
    json!({ "arguments": { "millis": millis } })
}

/// Sends a request without waiting for the response.
pub(super) fn begin(server: &Server, path: &str, key: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let (address, token, body) = (&server.address, &server.token, body.to_string());
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{key}\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .expect("it listens");
    stream
}

/// Waits until this many calls have reached the server.
pub(super) fn wait_for_calls(upstream: &Upstream, calls: usize) {
    for _ in 0..600 {
        if upstream.heard.calls.load(Ordering::Relaxed) >= calls {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the call did not reach the server");
}

/// The caller's connection breaks, the call continues, and a retry with the same idempotency key gets its result.
#[test]
fn idempotent_call_outlives_its_connection() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "");
    let body = call(1_500);
    let key = "Idempotency-Key: again\r\n";
    drop_when_reached(begin(&server, SLOW, key, &body), &upstream, 1);
    let token = format!("Authorization: Bearer {}", server.token);
    let headers: &[&str] = &[&token, key.trim(), "Content-Type: application/json"];
    let again = || server.raw("POST", SLOW, headers, Some(&body));
    assert!(again().starts_with("HTTP/1.1 409 "), "it is out");
    let mut answer = String::new();
    for _ in 0..300 {
        answer = again();
        if !answer.starts_with("HTTP/1.1 409 ") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("call 1"), "{answer}");
    assert!(answer.contains("idempotency-replayed: true"), "{answer}");
    assert_eq!(upstream.heard.calls.load(Ordering::Relaxed), 1);
    // Without a key, a call is cancelled when its connection closes.
    drop_when_reached(begin(&server, SLOW, "", &call(60_000)), &upstream, 2);
    for _ in 0..300 {
        if server.text("/metrics").contains("wharf_calls_in_flight 0") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("a call that nobody waits for is still out");
}

fn drop_when_reached(stream: TcpStream, upstream: &Upstream, calls: usize) {
    wait_for_calls(upstream, calls);
    drop(stream);
}

#[test]
fn limit_timeout_and_breaker_are_reported() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "[breaker]\nfailure_threshold = 2\n[server]\nmax_calls = 1\n");
    let mut out = begin(&server, SLOW, "", &call(1_500));
    wait_for_calls(&upstream, 1);
    let token = format!("Authorization: Bearer {}", server.token);
    let headers: &[&str] = &[&token, "Content-Type: application/json"];
    let busy = server.raw("POST", SLOW, headers, Some(&call(0)));
    assert!(busy.starts_with("HTTP/1.1 429 ") && busy.contains("retry-after: 1\r\n"), "{busy}");
    let mut answer = String::new();
    out.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    let late = json!({ "arguments": { "millis": 60_000 }, "timeout": 0.2 });
    for _ in 0..2 {
        let (status, late) = server.ask("POST", SLOW, Some(&late));
        assert_eq!((status, &late["type"]), (504, &json!("MCPTimeoutError")), "{late}");
        assert!(late["request_id"].is_string(), "{late}");
    }
    let refused = server.raw("POST", SLOW, headers, Some(&call(0)));
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: "), "{refused}");
    // The journal records the principal.
    let (_, calls) = server.ask("GET", "/api/v1/calls?status=timeout", None);
    assert_eq!(calls["items"].as_array().map(Vec::len), Some(2), "{calls}");
    assert_eq!(calls["items"][0]["principal"], "operator", "{calls}");
    // Caller credentials are never forwarded to servers.
    let heard = upstream.heard.headers();
    assert!(heard.contains("content-type") && !heard.contains(&server.token), "{heard}");
    assert!(!heard.to_ascii_lowercase().contains("authorization"), "{heard}");
}

/// A server's `Retry-After` is passed on through REST and MCP, up to a maximum.
#[test]
fn retry_after_of_a_server_is_forwarded() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "[breaker]\nfailure_threshold = 100\n");
    assert_eq!(server.ask("POST", SLOW, Some(&call(0))).0, 200);
    let token = format!("Authorization: Bearer {}", server.token);
    let headers: &[&str] = &[&token, "Content-Type: application/json"];
    let (past, future) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
    for (status, wait, answered, passed_on) in [
        (429, "7", "429", Some(7)),
        (503, "30", "503", Some(30)),
        (429, "100000", "429", Some(300)),
        (503, "99999999999999999999", "503", Some(300)),
        (429, future, "429", Some(300)),
        (503, past, "503", Some(0)),
        (503, "tomorrow", "502", None),
        (500, "30", "502", None),
    ] {
        upstream.set_busy(Some((status, wait)));
        let said = server.raw("POST", SLOW, headers, Some(&call(0)));
        assert!(said.starts_with(&format!("HTTP/1.1 {answered} ")), "{status} {wait}: {said}");
        let header = passed_on.map(|it| format!("\r\nretry-after: {it}\r\n"));
        assert_eq!(said.contains("\r\nretry-after: "), header.is_some(), "{status} {wait}: {said}");
        assert!(said.contains(&header.unwrap_or_default()), "{status} {wait}: {said}");
        let tool = json!({ "name": "far__slow", "arguments": {} });
        let said = mcp(&server, "tools/call", tool);
        assert_eq!(said["error"]["data"]["retry_after"].as_f64(), passed_on.map(f64::from), "{said}");
    }
    upstream.set_busy(None);
    assert_eq!(server.ask("POST", SLOW, Some(&call(0))).0, 200);
}

/// On SIGTERM, the gateway completes calls in flight and rejects all other requests with 503.
#[test]
fn call_in_flight_completes_before_shutdown() {
    let upstream = Upstream::start();
    let mut server = gateway_before(&upstream, "");
    let mut out = begin(&server, SLOW, "", &call(5_000));
    wait_for_calls(&upstream, 1);
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let drains = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        server.ask_with("GET", "/ready", &[], None) == (503, json!({ "status": "draining" }))
    });
    assert!(drains, "it does not say that it leaves");
    assert_eq!(server.ask("POST", SLOW, Some(&call(0))).0, 503);
    assert_eq!(server.ask("GET", "/api/v1/events", None).0, 503);
    let mut answer = String::new();
    out.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("call 1"), "{answer}");
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
}

/// A stream client that does not read is disconnected; the others receive everything.
#[test]
fn listener_that_does_not_read_is_disconnected() {
    let upstream = Upstream::start();
    let server = gateway_before(&upstream, "");
    let mut stream = TcpStream::connect(&server.address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let (address, token) = (&server.address, &server.token);
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")
        .expect("it listens");
    let mut first = [0; 16];
    stream.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200 OK\r");

    // The client reads nothing, so it notices the disconnection only when it writes. One call may fit into the buffers
    // of the connection.
    let mut calls = 0;
    let cut_off = (0..20).any(|_| {
        calls += 1;
        let body = json!({ "request_id": format!("{calls:r>256}") });
        let (status, answer) = server.ask("POST", "/api/v1/tools/far:chatty/call", Some(&body));
        assert_eq!(status, 200, "{answer}");
        (0..20).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            stream.write_all(b"\r\n").is_err()
        })
    });
    assert!(cut_off, "it is still connected");
    let mut heard = Vec::new();
    let mut piece = [0; 65_536];
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        heard.extend_from_slice(&piece[..read]);
    }
    let reports = String::from_utf8_lossy(&heard).matches("event: progress").count();
    assert!(reports > 0 && reports < calls * REPORTS, "{reports} of {calls} x {REPORTS}");
    assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200);
}
