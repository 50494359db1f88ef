//! Tests that requests of one connection are admitted each for itself, although the gateway recognizes a head that
//! repeats the last one.

use crate::serve::server::Server;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// One connection that is kept open.
struct Connection<'a> {
    stream: BufReader<TcpStream>,
    server: &'a Server,
}

impl Connection<'_> {
    fn to(server: &Server) -> Connection<'_> {
        let stream = TcpStream::connect(&server.address).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        Connection { stream: BufReader::new(stream), server }
    }

    /// Sends `server/discover` with a request id, after a change of the head. Returns the status.
    fn discover(&mut self, id: u64, change: impl FnOnce(String) -> String) -> u16 {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let head = change(format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n",
            self.server.address, self.server.token
        ));
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(request.as_bytes()).expect("it listens");
        let (status, answer) = self.read_response();
        if status == 200 {
            assert_eq!(answer["id"], id, "{answer}");
        }
        status
    }

    fn read_response(&mut self) -> (u16, Value) {
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a line");
            let line = line.trim().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().expect("a status");
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().expect("a length");
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

#[test]
fn a_head_that_differs_from_the_last_is_admitted_for_itself() {
    let server = Server::start(&[]);
    let mut wrong_token = server.token.clone();
    let last = if wrong_token.pop() == Some('a') { 'b' } else { 'a' };
    wrong_token.push(last);
    let (token, address) = (server.token.clone(), server.address.clone());
    let changes: [(&str, &str, String, u16); 5] = [
        ("another token of the same length", &token, wrong_token, 401),
        ("no token", "Authorization: ", "X-Other: ".to_owned(), 401),
        ("another host of the same length", &address, address.replacen('1', "2", 1), 403),
        ("another type of body", "application/json", "application/jsox".to_owned(), 415),
        ("another path", "/mcp", "/mcq".to_owned(), 404),
    ];
    for (what, part, other, expected) in changes {
        let mut connection = Connection::to(&server);
        // With ids of different lengths, so that the length of the body changes too.
        for id in [1, 2, 30, 4_000, 5] {
            assert_eq!(connection.discover(id, |head| head), 200, "before {what}");
        }
        assert_eq!(connection.discover(6, |head| head.replacen(part, &other, 1)), expected, "{what}");
    }
}

#[test]
fn heads_that_always_differ_are_admitted_for_themselves() {
    let server = Server::start(&[]);
    let mut connection = Connection::to(&server);
    for id in 0..20 {
        assert_eq!(connection.discover(id, |head| format!("{head}X-Number: {id}\r\n")), 200);
    }
    assert_eq!(connection.discover(20, |head| head.replacen("Bearer ", "Bearer x", 1)), 401);
}

#[test]
fn a_console_session_that_has_ended_is_not_admitted_again() {
    let server = Server::start(&[]);
    let credential = |secret: &str| format!("Authorization: Bearer {secret}");
    let (_, ticket) = server.ask("POST", "/api/v1/tickets", None);
    let ticket = ticket["ticket"].as_str().expect("a ticket");
    let (_, session) = server.ask_with("POST", "/api/v1/session", &[&credential(ticket)], None);
    let session = session["session"].as_str().expect("a session");
    let mut connection = Connection::to(&server);
    let as_session = |head: String| head.replace(&server.token, session);
    for id in 1..4 {
        assert_eq!(connection.discover(id, as_session), 200);
    }
    assert_eq!(server.ask_with("DELETE", "/api/v1/session", &[&credential(session)], None).0, 204);
    assert_eq!(connection.discover(4, as_session), 401);
}
