//! Streamable HTTP, written by hand: reads a request and performs the actions as its response.

use super::Server;
use crate::{
    action::Action,
    performer::{Framing, Output, Performer, SharedConnection},
    received::ReceivedMessage,
};
use std::{io, sync::Arc};

/// Head of an SSE response that lasts until the connection closes.
pub(crate) const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\nconnection: close\r\n\r\n";

pub(crate) const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const NOT_ALLOWED: &[u8] = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// First byte of a TLS handshake.
const TLS: u8 = 0x16;

/// Session header of a well-behaved server.
const SESSION: &str = "mcp-session-id: one\r\n";

/// One HTTP request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The request head, in lower case.
    pub(crate) head: String,
    original: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header in its original case.
    pub(crate) fn original(&self, name: &str) -> Option<&str> {
        let at = self.head.lines().position(|line| line.starts_with(name))?;
        self.original.lines().nth(at)?.split_once(':').map(|(_, value)| value.trim())
    }
}

pub(super) async fn run(server: Arc<Server>, line: Arc<SharedConnection>, host: String) -> io::Result<()> {
    let out = Output::SharedConnection(line.clone());
    let no_message = ReceivedMessage::nothing(&server.options, &host);
    let startup_actions = server.startup_actions(&no_message);
    if !startup_actions.is_empty() {
        let mut performer = Performer { out, framing: Framing::Json(String::new()), post: None };
        return server.perform(&mut performer, startup_actions, &no_message).await;
    }
    let mut buffer = Vec::new();
    while let Some(request) = read(&line, &mut buffer).await? {
        match request.method.as_str() {
            "POST" => {
                let Some(received) = ReceivedMessage::read(&server.options, &host, &request.body) else {
                    line.write(BAD_REQUEST).await?;
                    continue;
                };
                if !answer(&server, &line, &received).await? {
                    return Ok(());
                }
            }
            "DELETE" => line.write(OK).await?,
            _ => line.write(NOT_ALLOWED).await?,
        }
    }
    Ok(())
}

/// Responds to one message. Returns whether the connection can be reused.
async fn answer(
    server: &Server,
    line: &Arc<SharedConnection>,
    received: &ReceivedMessage,
) -> io::Result<bool> {
    let actions = server.decide(received);
    if actions.is_empty() {
        line.write(ACCEPTED).await?;
        return Ok(true);
    }
    let messages = actions.iter().filter(|action| action.is_message()).count();
    let quiet = |action: &Action| {
        action.is_message() || matches!(action, Action::Note(_) | Action::Wait(_) | Action::Stderr(..))
    };
    let plain = messages == 1 && actions.iter().all(quiet);
    let session = if received.method() == "initialize" { SESSION } else { "" };
    let framing = match plain {
        true => Framing::Json(session.to_owned()),
        false => Framing::Events(Some(EVENTS.to_owned())),
    };
    let mut performer = Performer { out: Output::SharedConnection(line.clone()), framing, post: None };
    server.perform(&mut performer, actions, received).await?;
    Ok(plain)
}

/// Reads one request, or `None` at the end of the connection.
pub(crate) async fn read(line: &SharedConnection, buffer: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if line.fill(buffer).await? == 0 {
            return Ok(None);
        }
        if buffer[0] == TLS {
            line.write(BAD_REQUEST).await?;
            return Ok(None);
        }
    };
    let original = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let head = original.to_lowercase();
    let length = header(&head, "content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    line.fill_to(buffer, end + length).await?;
    let body = buffer[end..end + length].to_vec();
    buffer.drain(..end + length);
    let mut words = original.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    Ok(Some(Request { method, path, head, original, body }))
}

/// Finds a header in a lower-case head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}
