//! Modes that are specific to HTTP.

use super::{
    Mode,
    Stage::{Call, Init, Spawn},
    mode,
};
use crate::{action::Action, received::ReceivedMessage, serve::EVENTS};
use serde_json::json;
use std::time::Duration;

/// Bytes for 8 copies of 258 bytes in deflate's fixed codes: 8 times 13 bits.
const PACKED_BYTES: usize = 13;

pub(super) const MODES: &[Mode] = &[
    mode("rst", Call, "breaks the connection instead of answering", |_, _| vec![Action::Reset]),
    mode("rst_accept", Spawn, "breaks every connection at once", |_, _| vec![Action::Reset]),
    mode("accept_silent", Spawn, "takes the connection and reads nothing", |_, _| vec![Action::Freeze]),
    mode("accept_close", Spawn, "takes the connection and closes it", |_, _| vec![Action::wait(1)]),
    mode("not_http", Spawn, "speaks another protocol", |_, _| {
        vec![Action::raw("SSH-2.0-OpenSSH_9.9\r\n"), Action::wait(20)]
    }),
    mode("stall", Call, "sends the head of a response and no more", |_, _| {
        vec![
            Action::raw(head("200 OK", "content-type: application/json\r\ncontent-length: 100\r\n")),
            Action::Hang,
        ]
    }),
    mode("header_drip", Call, "sends a header without end, byte by byte", |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\nx-slow: {}", "z".repeat(2_000));
        vec![Action::Drip(head.into(), Duration::from_millis(20)), Action::Hang]
    }),
    mode("body_drip", Call, "sends a body without end, byte by byte", |_, _| {
        let head = head("200 OK", "content-type: application/json\r\ncontent-length: 100000\r\n");
        vec![Action::raw(head), Action::Drip(vec![b' '; 5_000], Duration::from_millis(20)), Action::Hang]
    }),
    mode("infinite_headers", Call, "sends headers without end", |received, _| {
        vec![
            Action::raw("HTTP/1.1 200 OK\r\n"),
            Action::Endless(b"x-more: and more\r\n".into(), received.options.size),
        ]
    }),
    mode("header_1g", Call, "sends one header without end", |received, _| {
        vec![Action::raw("HTTP/1.1 200 OK\r\nx-long: "), Action::Endless(b"z".into(), received.options.size)]
    }),
    mode("json_1g", Call, "sends a body of 1 GiB", |received, _| {
        let length =
            format!("content-type: application/json\r\ncontent-length: {}\r\n", received.options.size);
        vec![Action::raw(head("200 OK", &length)), Action::Endless(b"x".into(), received.options.size)]
    }),
    mode("json_chunked_1g", Call, "sends a body in chunks without end", |received, _| {
        let head = head("200 OK", "content-type: application/json\r\ntransfer-encoding: chunked\r\n");
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        vec![Action::raw(head), Action::Endless(chunk.into(), received.options.size)]
    }),
    mode("error_body_1g", Call, "sends 1 GiB with an error status", |received, _| {
        let length = format!("content-type: text/plain\r\ncontent-length: {}\r\n", received.options.size);
        vec![
            Action::raw(head("400 Bad Request", &length)),
            Action::Endless(b"e".into(), received.options.size),
        ]
    }),
    mode("gzip_bomb", Call, "sends a small body that is large once it is unpacked", |received, _| {
        let gzip_bomb = gzip_bomb(received.options.size);
        let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
        vec![Action::Raw(response("200 OK", headers, &gzip_bomb))]
    }),
    mode("sse_event_1g", Call, "sends an event without end", |received, _| {
        vec![Action::raw(format!("{EVENTS}data: ")), Action::Endless(b"x".into(), received.options.size)]
    }),
    mode("sse_comment_1g", Call, "sends a comment without end", |received, _| {
        vec![Action::raw(format!("{EVENTS}:")), Action::Endless(b"c".into(), received.options.size)]
    }),
    mode("html", Call, "sends a web page", |_, _| {
        vec![Action::Raw(response(
            "200 OK",
            "content-type: text/html\r\n",
            b"<html><h1>It works!</h1></html>",
        ))]
    }),
    mode("html_at_start", Init, "is a web server and nothing else", |_, _| {
        vec![Action::Raw(response(
            "200 OK",
            "content-type: text/html\r\n",
            b"<html><h1>It works!</h1></html>",
        ))]
    }),
    mode("empty_body", Call, "sends an empty body", |_, _| {
        vec![Action::Raw(response("200 OK", "content-type: application/json\r\n", b""))]
    }),
    mode("accepted_for_request", Call, "accepts a request as if it needed no answer", |_, _| {
        vec![Action::Raw(response("202 Accepted", "", b""))]
    }),
    mode("wrong_id", Call, "answers another request than the one it was asked", |received, _| {
        let body = received.echo().replacen(&format!(r#""id":{}"#, received.id()), r#""id":987654"#, 1);
        vec![Action::Raw(response("200 OK", "content-type: application/json\r\n", body.as_bytes()))]
    }),
    mode("chunk_garbage", Call, "sends chunks whose sizes are no numbers", |_, _| {
        let head = head("200 OK", "content-type: application/json\r\ntransfer-encoding: chunked\r\n");
        vec![Action::Raw([&head[..], b"zzzz\r\nhello\r\n"].concat())]
    }),
    mode("status_garbage", Call, "sends a status line that is none", |_, _| {
        vec![Action::raw("HTTP/9.9 banana\r\n\r\n")]
    }),
    mode("session_id_crlf", Init, "hides a header in the session id", |received, _| {
        let headers = "content-type: application/json\r\nmcp-session-id: a\r\n\tx-injected: yes\r\n";
        vec![Action::Raw(response("200 OK", headers, received.initialization().as_bytes()))]
    }),
    mode("truncated", Call, "closes the connection in the middle of the body", |received, _| {
        let head = head("200 OK", "content-type: application/json\r\ncontent-length: 5000\r\n");
        vec![Action::Raw([&head[..], received.echo().as_bytes()].concat())]
    }),
    mode("rst_mid", Call, "breaks the connection in the middle of the body", |_, _| {
        let head = head("200 OK", "content-type: application/json\r\ncontent-length: 5000\r\n");
        vec![Action::Raw([&head[..], br#"{"jsonrpc":"2.0","#].concat()), Action::wait(30), Action::Reset]
    }),
    mode("sse_eof", Call, "ends the stream before the answer", |_, _| {
        vec![Action::raw(EVENTS), Action::wait(10)]
    }),
    mode("e400", Call, "answers 400", |_, _| status("400 Bad Request", "")),
    mode("e401", Call, "answers 401", |_, _| {
        status("401 Unauthorized", "www-authenticate: Bearer realm=\"hostile\"\r\n")
    }),
    mode("e401_at_start", Spawn, "requires credentials that the client does not have", |_, _| {
        status("401 Unauthorized", "www-authenticate: Bearer realm=\"hostile\"\r\n")
    }),
    mode("e403", Call, "answers 403", |_, _| status("403 Forbidden", "")),
    mode("e404_at_start", Spawn, "has nothing at this address", |_, _| status("404 Not Found", "")),
    mode("e429", Call, "answers 429 with `Retry-After`", |_, _| {
        status("429 Too Many Requests", "retry-after: 100000\r\n")
    }),
    mode("e500", Call, "answers 500", |_, _| status("500 Internal Server Error", "")),
    mode("e502", Call, "answers 502", |_, _| status("502 Bad Gateway", "")),
    mode("e503_retry_after", Call, "answers 503 with `Retry-After`", |_, _| {
        status("503 Service Unavailable", "retry-after: 30\r\n")
    }),
    mode("session_404", Call, "has lost the session", |_, _| status("404 Not Found", "")),
    mode("session_404_loop", Call, "loses every session", |_, _| status("404 Not Found", "")),
    mode("redirect_same_307", Call, "sends us to another path", |_, _| {
        status("307 Temporary Redirect", "location: /elsewhere\r\n")
    }),
    mode("redirect_303", Call, "sends us to another path, to be read there", |_, _| {
        status("303 See Other", "location: /elsewhere\r\n")
    }),
    mode("redirect_loop", Call, "sends us round in circles", |_, _| {
        status("307 Temporary Redirect", "location: /round\r\n")
    }),
    mode("redirect_cross", Call, "sends us to another origin", |received, _| {
        let elsewhere = received.host.replace("127.0.0.1", "localhost");
        status("307 Temporary Redirect", &format!("location: http://{elsewhere}/steal\r\n"))
    }),
    mode("modern_header_mismatch", Call, "says that the headers contradict the body", |received, _| {
        rpc_error(received, -32020, "header mismatch")
    }),
    mode(
        "modern_unsupported_version",
        Call,
        "says that it does not speak the version any more",
        |received, _| rpc_error(received, -32022, "unsupported protocol version"),
    ),
    mode("sse_mixed_eol", Call, "ends the lines of its events in every way there is", |received, _| {
        vec![Action::raw(format!("{EVENTS}event: message\r\nid: 1\rdata: {}\n\r\n", received.echo()))]
    }),
    mode("sse_multiline", Call, "spreads the data of an event over several lines", |received, _| {
        let value: serde_json::Value = serde_json::from_str(&received.echo()).unwrap_or_default();
        let lines: String = format!("{value:#}").lines().map(|line| format!("data: {line}\n")).collect();
        vec![Action::raw(format!("{EVENTS}{lines}\n"))]
    }),
    mode("sse_bom", Call, "begins its stream with a byte order mark", |received, _| {
        vec![Action::raw(format!("{EVENTS}\u{feff}data: {}\n\n", received.echo()))]
    }),
    mode("sse_comment_keepalive", Call, "sends comments before it answers", |received, _| {
        let comments =
            Action::Repeat(Box::new(Action::raw(": still here\n\n")), 10, Duration::from_millis(20));
        vec![Action::raw(EVENTS), comments, Action::raw(format!("data: {}\n\n", received.echo()))]
    }),
    mode("sse_comment_drip", Call, "sends comments and never an answer", |_, _| {
        let comments =
            Action::Repeat(Box::new(Action::raw(": still here\n\n")), 500, Duration::from_millis(20));
        vec![Action::raw(EVENTS), comments]
    }),
    mode("sse_retry_0", Call, "ends the stream and wants it resumed at once, for ever", |_, _| {
        vec![Action::raw(format!("{EVENTS}id: 1\nretry: 0\ndata:\n\n")), Action::wait(5)]
    }),
    mode("sse_retry_huge", Call, "ends the stream and wants it resumed in a hundred years", |_, _| {
        vec![Action::raw(format!("{EVENTS}id: 1\nretry: 99999999999999\ndata:\n\n")), Action::wait(5)]
    }),
    mode("sse_junk_event", Call, "sends an event that is no message", |received, _| {
        vec![Action::raw(format!("{EVENTS}data: hello\n\ndata: {}\n\n", received.echo()))]
    }),
];

fn head(status: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}\r\n").into()
}

fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    // Announces that the connection closes, so that the client does not reuse it for the next request.
    [&head(status, &format!("{headers}connection: close\r\ncontent-length: {}\r\n", body.len()))[..], body]
        .concat()
}

fn status(status: &str, headers: &str) -> Vec<Action> {
    // Waits until the request has been received before the connection closes; otherwise the client may see a reset.
    vec![Action::wait(20), Action::Raw(response(status, headers, b"")), Action::wait(20)]
}

fn rpc_error(received: &ReceivedMessage, code: i64, message: &str) -> Vec<Action> {
    let error = json!({ "code": code, "message": message });
    let body = json!({ "jsonrpc": "2.0", "id": received.id(), "error": error }).to_string();
    vec![Action::Raw(response("400 Bad Request", "content-type: application/json\r\n", body.as_bytes()))]
}

/// Builds a gzip stream of `size` letters `x`: one literal, then copies of the 258 bytes before, 13 bits each.
fn gzip_bomb(size: u64) -> Vec<u8> {
    let mut bits = Bits::default();
    // Last block, fixed codes.
    bits.low_first(0b011, 3);
    bits.high_first(0x30 + u32::from(b'x'), 8);
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for _ in 0..size / 258 / 8 {
        for _ in 0..8 {
            // Code 285 is length 258; distance code 0 is distance 1.
            bits.high_first(0b1100_0101, 8);
            bits.high_first(0, 5);
        }
        packed.reserve(PACKED_BYTES);
        packed.append(&mut bits.bytes);
    }
    bits.high_first(0, 7);
    bits.low_first(0, 8);
    packed.append(&mut bits.bytes);
    packed
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    partial: u32,
    count: u32,
}

impl Bits {
    fn low_first(&mut self, value: u32, count: u32) {
        (0..count).for_each(|at| self.push(value >> at & 1));
    }

    fn high_first(&mut self, value: u32, count: u32) {
        (0..count).rev().for_each(|at| self.push(value >> at & 1));
    }

    fn push(&mut self, bit: u32) {
        self.partial |= bit << self.count;
        self.count += 1;
        if self.count == 8 {
            self.bytes.push(self.partial as u8);
            (self.partial, self.count) = (0, 0);
        }
    }
}
