//! Tests ten thousand concurrent stream requests: the gateway accepts up to its limit, rejects the rest at once
//! with `Retry-After`, and stays within its memory limit.

use crate::serve::server::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};
use tempfile::TempDir;

/// Number of clients.
const CLIENTS: usize = 10_000;

/// Maximum memory for all of them, in KiB. Only accepted clients may cost memory.
const MAX_MEMORY_KIB: u64 = 64 << 10;

/// A client and the beginning of its response.
struct StreamClient {
    status: String,
    head: String,
    stream: BufReader<TcpStream>,
}

impl StreamClient {
    fn connect(server: &Server, request: &str) -> StreamClient {
        let mut stream = TcpStream::connect(&server.address).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut stream = BufReader::with_capacity(512, stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).expect("a line in time") > 0, "hung up on after {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
        StreamClient { status, head, stream }
    }

    fn body(mut self) -> String {
        let length = self.head.split("content-length: ").nth(1).and_then(|it| it.lines().next());
        let mut body = vec![0; length.and_then(|it| it.parse().ok()).unwrap_or(0)];
        self.stream.read_exact(&mut body).expect("a body");
        String::from_utf8_lossy(&body).into_owned()
    }
}

/// Builds a request with the token.
fn request(server: &Server, line: &str, headers: &str, body: &str) -> String {
    let (address, token, length) = (&server.address, &server.token, body.len());
    format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Connects this many clients and returns the accepted ones. Checks that the others get this reason and a
/// `Retry-After`.
fn connect_clients(server: &Server, request: &str, count: usize, reason: &str) -> Vec<StreamClient> {
    // Raises the file limit of the test; the program raises its own.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("as many files as may be");
    let mut staying = Vec::new();
    for _ in 0..count {
        let client = StreamClient::connect(server, request);
        if client.status == "200" {
            staying.push(client);
            continue;
        }
        assert!(client.status == "503" && client.head.contains("\r\nretry-after: 5\r\n"), "{}", client.head);
        let body = client.body();
        assert!(body.contains(reason), "{body}");
    }
    staying
}

/// Returns the memory of the gateway, in KiB.
fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("it runs");
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Checks that the gateway accepts a stream again once it notices that another has closed.
fn check_accepts_again(server: &Server, request: &str) {
    let free = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        StreamClient::connect(server, request).status == "200"
    });
    assert!(free, "nobody may listen any more");
}

/// Opens a handshake-era session and returns its header.
fn session(server: &Server) -> String {
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let client = StreamClient::connect(
        server,
        &request(server, "POST /mcp", "Content-Type: application/json\r\n", &hello),
    );
    let session = client.head.lines().find(|it| it.starts_with("mcp-session-id: ")).expect("a session");
    format!("{session}\r\n")
}

/// Checks the limit with ten thousand clients: `limit` are accepted, memory is bounded, and closed streams free
/// their places.
fn check_limit(server: &Server, listen: &str, limit: usize, reason: &str) {
    let before = memory(server);
    let staying = connect_clients(server, listen, CLIENTS, reason);
    assert_eq!(staying.len(), limit);
    let cost = memory(server).saturating_sub(before);
    assert!(cost < MAX_MEMORY_KIB, "{cost} KiB");
    assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200);
    drop(staying);
    check_accepts_again(server, listen);
}

#[test]
fn event_streams_are_limited() {
    let server = Server::start(&[]);
    let listen = request(&server, "GET /api/v1/events", "", "");
    check_limit(&server, &listen, 256, "at most 256 clients may listen at a time");
}

#[test]
fn mcp_streams_are_limited() {
    let server = Server::start(&[]);
    let listen = request(&server, "GET /mcp", &session(&server), "");
    check_limit(&server, &listen, 2_000, "too many open streams (limit 2000)");
}

/// The configured limit applies to all kinds of streams together.
#[test]
fn configured_limit_applies_to_all_streams() {
    let folder = TempDir::new().expect("a folder");
    let settings = folder.path().join("wharf.toml");
    fs::write(&settings, "[server]\nmax_streams = 5\n").expect("settings");
    let server = Server::start_in(folder, &["--settings", &settings.display().to_string()]);
    let notification_stream = request(&server, "GET /mcp", &session(&server), "");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": "mine", "method": "subscriptions/listen", "params": params });
    let headers = "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                   Mcp-Method: subscriptions/listen\r\n";
    let asking = request(&server, "POST /mcp", headers, &body.to_string());
    let full = "too many open streams (limit 5); close one or try again later";
    let first = connect_clients(&server, &notification_stream, 3, full);
    let second = connect_clients(&server, &asking, 10, full);
    assert_eq!((first.len(), second.len()), (3, 2));
    assert!(StreamClient::connect(&server, &asking).body().contains(r#""id":"mine""#));
    assert_eq!(connect_clients(&server, &request(&server, "GET /sse", "", ""), 10, full).len(), 5);
    drop(second);
    check_accepts_again(&server, &asking);
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let socket = request(&server, "GET /ws", upgrade, "");
    let open: Vec<StreamClient> = (0..5).map(|_| StreamClient::connect(&server, &socket)).collect();
    assert!(open.iter().all(|it| it.status == "101"));
    let refused = StreamClient::connect(&server, &socket);
    assert!(refused.status == "503" && refused.head.contains("retry-after: 5"), "{}", refused.head);
    assert!(refused.body().contains("raise `max_streams` in [server] of wharf.toml"));
}
