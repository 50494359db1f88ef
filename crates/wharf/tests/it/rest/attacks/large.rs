//! Hostile requests that are too long for a file: huge bodies, URLs and headers, and large numbers of them.

use super::super::CREATE;
use crate::serve::server::{AfterSending, Server};
use serde_json::json;

/// Sends a call with custom body headers and body.
fn call(server: &Server, headers: &str, body: &[u8]) -> String {
    let (address, token) = (&server.address, &server.token);
    let head = format!(
        "POST {CREATE} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\n{headers}Connection: close\r\n\r\n"
    );
    server.send(&[head.as_bytes(), body].concat(), AfterSending::Stay)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn oversized_requests_are_rejected() {
    let server = Server::start(&[]);
    let sized = |body: &[u8]| call(&server, &format!("Content-Length: {}\r\n", body.len()), body);
    let titled =
        |length: usize| json!({ "arguments": { "title": "x".repeat(length) } }).to_string().into_bytes();
    let frame = titled(0).len();
    assert_eq!(status(&sized(&titled((4 << 20) + 1 - frame))), "413");
    // A body of the maximum size is read, and then rejected because the title is too long.
    assert_eq!(status(&sized(&titled((4 << 20) - frame))), "422");
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    assert_eq!(status(&call(&server, "Transfer-Encoding: chunked\r\n", &chunk.repeat(100))), "413");
    assert_eq!(status(&call(&server, "Content-Length: 999999999999\r\n", b"{}")), "413");
    let deep = [br#"{"arguments":{"title":"#.as_slice(), &[b'['; 5_000], &[b']'; 5_000], b"}}"].concat();
    assert_eq!(status(&sized(&deep)), "400");
    assert_eq!(status(&sized(b"{\"arguments\":{\"title\":\"\xff\xfe\"}}")), "400");
    assert_eq!(status(&sized(b"{}\0")), "400");

    let ask = |path: &str, headers: &str| {
        let (address, token) = (&server.address, &server.token);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        server.send(format!("{head}{headers}Connection: close\r\n\r\n").as_bytes(), AfterSending::Stay)
    };
    for length in [17 << 10, 64 << 10, 1 << 20] {
        let answer = ask(&format!("/api/v1/tools?q={}", "x".repeat(length)), "");
        // A URL that exceeds the limit for all headers is rejected with 431.
        assert!(matches!(status(&answer), "414" | "431"), "{length}: {answer}");
    }
    assert_eq!(status(&ask("/health", &"X-Many: 1\r\n".repeat(200))), "431");
    for length in [33 << 10, 64 << 10, 1 << 20] {
        assert_eq!(
            status(&ask("/health", &format!("X-Long: {}\r\n", "x".repeat(length)))),
            "431",
            "{length}"
        );
    }
    assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200);
}

/// Made-up tool names create no metric series and no forged log lines.
#[test]
fn unknown_tool_names_create_no_series_and_no_log_lines() {
    let server = Server::start(&["--log-format", "text"]);
    for number in 0..300 {
        let path = format!("/api/v1/tools/made-up-{number}%0AINFO%20forged%1B%5B31m/call");
        assert_eq!(server.ask("POST", &path, Some(&json!({}))).0, 404);
    }
    let path = format!("/api/v1/tools?token={}", server.token);
    assert_eq!(server.ask_with("GET", &path, &["User-Agent: a\tb"], None).0, 401);
    assert_eq!(server.ask_with("GET", &path, &["User-Agent: a\u{1b}[31mb"], None).0, 400);
    let metrics = server.text("/metrics");
    assert!(!metrics.contains("made-up"), "{metrics}");
    let series = metrics.lines().filter(|it| it.starts_with("wharf_call_duration_seconds_count")).count();
    assert_eq!(series, 1, "{metrics}");
    let logged = |it: &String| it.contains("made-up-299");
    // The log is written asynchronously.
    let log = (0..1_000).map(|_| (server.text("/health"), server.log()).1).find(logged);
    let log = log.unwrap_or_else(|| panic!("calls are logged: {}", server.log()));
    let forged = log.lines().any(|it| it.starts_with("INFO"));
    assert!(!forged && !log.contains('\u{1b}') && !log.contains(&server.token), "{log}");
}

/// Clients with equal request ids each receive their own responses.
#[test]
fn clients_with_equal_ids_get_their_own_responses() {
    let server = std::sync::Arc::new(Server::start(&[]));
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let server = server.clone();
            std::thread::spawn(move || {
                for number in 0..25 {
                    let title = format!("{caller}-{number}");
                    let arguments = json!({ "name": "todo__create_todo", "arguments": { "title": title } });
                    let made = super::super::disabled_tools::mcp(&server, "tools/call", arguments);
                    assert_eq!(made["result"]["structuredContent"]["title"], title, "{made}");
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|it| it.join().expect("all answers were its own"));
}
