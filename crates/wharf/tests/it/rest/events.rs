//! Tests the event stream: events arrive immediately, and the stream ends with the gateway.

use super::CREATE;
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

/// A client of the event stream.
pub(super) struct Listener(BufReader<TcpStream>);

impl Listener {
    fn new(server: &Server, query: &str) -> Listener {
        let stream = TcpStream::connect(&server.address).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let (address, token) = (&server.address, &server.token);
        let request = format!(
            "GET /api/v1/events{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        let mut listener = Listener(BufReader::new(stream));
        listener.0.get_mut().write_all(request.as_bytes()).expect("it listens");
        listener
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).expect("a line in time");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads until a line that starts with this text, and returns it.
    fn until(&mut self, start: &str) -> String {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("the stream ended before {start}"));
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// Listens, and waits until the gateway has accepted that.
    pub(super) fn open(server: &Server, query: &str) -> Listener {
        let mut listener = Listener::new(server, query);
        assert_eq!(listener.status(), "HTTP/1.1 200 OK");
        listener.until(": alive");
        listener
    }

    /// Reads until an event of this kind, and returns it.
    pub(super) fn data(&mut self, kind: &str) -> Value {
        self.until(&format!("event: {kind}"));
        let line = self.until("data: ");
        serde_json::from_str(&line["data: ".len()..]).expect("JSON")
    }

    fn status(&mut self) -> String {
        self.line().unwrap_or_default()
    }
}

#[test]
fn calls_and_catalog_changes_are_streamed() {
    let server = Server::start(&[]);
    let mut all = Listener::new(&server, "");
    let mut calls = Listener::new(&server, "?kind=call");
    for listener in [&mut all, &mut calls] {
        assert_eq!(listener.status(), "HTTP/1.1 200 OK");
        assert!(listener.until("content-type: ").ends_with("text/event-stream"));
        listener.until(": alive");
        assert_eq!(listener.until("event: "), "event: hello");
        listener.until("data: ");
    }
    let body =
        json!({ "arguments": { "title": "secret plans" }, "request_id": "streamed", "thread_id": "t" });
    assert_eq!(server.ask("POST", CREATE, Some(&body)).0, 200);
    let id = calls.until("id: ");
    assert!(id["id: ".len()..].parse::<u64>().is_ok_and(|it| it > 0), "{id}");
    assert_eq!(calls.until("event: "), "event: call");
    let event: Value = serde_json::from_str(&calls.until("data: ")["data: ".len()..]).expect("JSON");
    assert_eq!((&event["kind"], &event["source"]), (&json!("call"), &json!("todo")), "{event}");
    assert_eq!(
        (&event["data"]["request_id"], &event["data"]["status"]),
        (&json!("streamed"), &json!("success"))
    );
    assert!(!event.to_string().contains("secret plans"), "{event}");
    assert_eq!(server.ask("GET", "/api/v1/events?sort=1", None).0, 400);

    assert_eq!(
        server.ask("PATCH", "/api/v1/tools/todo:delete_todo", Some(&json!({ "enabled": false }))).0,
        200
    );
    all.until("event: call");
    all.until("event: catalog");
    // The stream ends when the gateway stops.
    assert_eq!(server.terminate(), Some(0));
    while all.line().is_some() {}
}
