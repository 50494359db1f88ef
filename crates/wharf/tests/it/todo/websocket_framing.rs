//! Tests how `wharf todo --transport websocket` reads frames and the handshake before them, byte by byte.

use super::{engines::Engine, server::Listening};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

const READ_TIMEOUT: Duration = Duration::from_secs(20);

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING_FRAME: u8 = 9;
const PONG_FRAME: u8 = 10;
/// The last frame of a message.
const FIN: u8 = 0x80;

/// Builds a masked frame. `first` is its first byte: flags and opcode.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = head(first, 0x80, payload.len());
    let mask = [1, 2, 3, 4];
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Builds the head of a frame up to its length.
fn head(first: u8, mask_bit: u8, length: usize) -> Vec<u8> {
    match length {
        0..126 => vec![first, mask_bit | length as u8],
        126..=0xffff => [&[first, mask_bit | 126][..], &(length as u16).to_be_bytes()].concat(),
        _ => [&[first, mask_bit | 127][..], &(length as u64).to_be_bytes()].concat(),
    }
}

fn connect(listening: &Listening) -> TcpStream {
    let address = listening.url.split('/').nth(2).expect("an address");
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a timeout");
    stream
}

/// Sends a request and returns the head of the response.
fn handshake(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{request}: {error}"));
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text")
}

fn open(listening: &Listening) -> TcpStream {
    let mut stream = connect(listening);
    let host = listening.url.split('/').nth(2).expect("an address");
    let head = handshake(&mut stream, &format!("GET /ws HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}\r\n"));
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    stream
}

/// Reads one frame of the server: its first byte and its payload.
fn read_frame(stream: &mut TcpStream, what: &str) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap_or_else(|error| panic!("{what}: {error}"));
    let length = match head[1] {
        126 => {
            let mut length = [0; 2];
            stream.read_exact(&mut length).expect("a length");
            usize::from(u16::from_be_bytes(length))
        }
        short => usize::from(short),
    };
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).expect("a payload");
    (head[0], payload)
}

/// Describes the next frame of the server: its text, or the code with which it closes the connection.
fn outcome(stream: &mut TcpStream, what: &str) -> String {
    match read_frame(stream, what) {
        (0x81, text) => String::from_utf8(text).expect("text"),
        (0x88, close) if close.is_empty() => "closed".to_owned(),
        (0x88, close) => format!("closed {}", u16::from_be_bytes([close[0], close[1]])),
        (0x8a, payload) => format!("pong {}", String::from_utf8(payload).expect("text")),
        (first, payload) => panic!("{first:x} {payload:?}"),
    }
}

#[test]
fn frames_are_read_as_the_standard_says() {
    let engine = Engine::sqlite();
    let listening = Listening::start(&engine.address(), "websocket");
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(70_000));
    let (beginning, end) = PING.split_at(10);
    let too_large = 5 << 20;
    let unmasked = [&head(FIN | TEXT, 0, PING.len())[..], PING].concat();
    let code = |code: u16| code.to_be_bytes().to_vec();
    let million = vec![b' '; 1 << 20];
    let many: Vec<u8> =
        (0..5).flat_map(|at| frame(if at == 0 { TEXT } else { CONTINUATION }, &million)).collect();
    for (what, sent, expected) in [
        ("text", frame(FIN | TEXT, PING), vec![PONG]),
        ("binary", frame(FIN | BINARY, PING), vec![PONG]),
        ("64-bit length", frame(FIN | TEXT, large.as_bytes()), vec![PONG]),
        (
            "fragments around a ping",
            [
                frame(TEXT, beginning),
                frame(FIN | PING_FRAME, b"hi"),
                frame(CONTINUATION, b""),
                frame(FIN | CONTINUATION, end),
            ]
            .concat(),
            vec!["pong hi", PONG],
        ),
        ("unsolicited pong", [frame(FIN | PONG_FRAME, b""), frame(FIN | TEXT, PING)].concat(), vec![PONG]),
        ("close with a code", frame(FIN | CLOSE, &code(1001)), vec!["closed 1001"]),
        ("close without a code", frame(FIN | CLOSE, b""), vec!["closed"]),
        (
            "close after another frame",
            [frame(FIN | PONG_FRAME, b""), frame(FIN | CLOSE, &code(1000))].concat(),
            vec!["closed 1000"],
        ),
        (
            "frame too large",
            [head(FIN | TEXT, 0x80, too_large), vec![1, 2, 3, 4]].concat(),
            vec!["closed 1009"],
        ),
        ("fragments too large", many, vec!["closed 1009"]),
        ("no mask", unmasked, vec!["closed 1002"]),
        ("reserved bit", frame(FIN | 0x40 | TEXT, PING), vec!["closed 1002"]),
        ("unknown opcode", frame(FIN | 3, PING), vec!["closed 1002"]),
        ("continuation of nothing", frame(FIN | CONTINUATION, PING), vec!["closed 1002"]),
        ("second beginning", [frame(TEXT, beginning), frame(FIN | TEXT, end)].concat(), vec!["closed 1002"]),
        ("fragmented ping", frame(PING_FRAME, b""), vec!["closed 1002"]),
        ("long ping", frame(FIN | PING_FRAME, &[b'x'; 126]), vec!["closed 1002"]),
        ("not UTF-8", frame(FIN | TEXT, b"\xff\xfe"), vec!["closed 1007"]),
    ] {
        let mut stream = open(&listening);
        stream.write_all(&sent).expect("it is sent");
        for expected in expected {
            assert_eq!(outcome(&mut stream, what), expected, "{what}");
        }
    }
    assert_eq!(listening.terminate(), Some(143));
}

#[test]
fn handshake_with_ambiguous_framing_is_rejected() {
    let engine = Engine::sqlite();
    let listening = Listening::start(&engine.address(), "websocket");
    let host = format!("Host: {}\r\n", listening.url.split('/').nth(2).expect("an address"));
    for (request, expected) in [
        (format!("GET /ws HTTP/1.1\r\n{host}{UPGRADE}\r\n"), "101"),
        (format!("GET /ws HTTP/1.1\r\n{host}{UPGRADE}Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), "400"),
        (
            format!(
                "GET /ws HTTP/1.1\r\n{host}{UPGRADE}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            "400",
        ),
        (format!("GET /ws HTTP/1.1\n{host}{UPGRADE}\r\n"), "400"),
        (format!("GET /ws HTTP/1.1\r\n{host}\r\n"), "426"),
        (format!("GET /ws HTTP/1.1\r\n{host}{}\r\n", UPGRADE.replace("13", "8")), "426"),
        (format!("GET / HTTP/1.1\r\n{host}{UPGRADE}\r\n"), "404"),
        (format!("GET /ws HTTP/1.1\r\nHost: evil.example\r\n{UPGRADE}\r\n"), "403"),
    ] {
        let head = handshake(&mut connect(&listening), &request);
        assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{request}: {head}");
    }
}
