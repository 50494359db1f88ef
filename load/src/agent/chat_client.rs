//! A client of streams: sends one request and notes when the first text and the end arrive.

use super::scripted_agent::Task;
use crate::post::Address;
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Size of a read, in bytes.
const READ_BYTES: usize = 64 << 10;
/// Timeout of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Times of one message: to the first text, and to the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exchange {
    pub(super) first: Duration,
    pub(super) whole: Duration,
}

/// A stream of a response, and what was read of it.
pub(super) struct ResponseStream {
    stream: TcpStream,
    pub(super) text: String,
}

impl ResponseStream {
    /// Sends a request.
    pub(super) fn post(
        address: &Address,
        path: &str,
        token: &str,
        body: &Value,
    ) -> Result<ResponseStream, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(&address.host).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(failed)?;
        let (host, body) = (&address.host, body.to_string());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).map_err(failed)?;
        Ok(ResponseStream { stream, text: String::new() })
    }

    /// Reads until these words have arrived.
    pub(super) fn read_until(&mut self, words: &str) -> Result<(), String> {
        let mut piece = vec![0; READ_BYTES];
        let mut searched = 0;
        loop {
            // Words may be split between two reads.
            let from = self.text.floor_char_boundary(searched);
            if self.text[from..].contains(words) {
                return Ok(());
            }
            searched = self.text.len().saturating_sub(words.len());
            match self.stream.read(&mut piece).map_err(|it| it.to_string())? {
                0 => return Err(format!("`{words}` is missing in: {}", self.text)),
                read => self.text.push_str(&String::from_utf8_lossy(&piece[..read])),
            }
        }
    }
}

/// Asks the model itself as often as an agent does, and reads everything.
pub(super) fn ask_model(url: &str, task: Task) -> Result<Exchange, String> {
    let mut exchange = Exchange::default();
    let begun = Instant::now();
    for request in 0..task.requests() {
        let role = if request == 0 { "user" } else { "tool" };
        let body = json!({ "model": "m", "stream": true, "messages": [{ "role": role, "content": task.message() }] });
        let mut stream = ResponseStream::post(&Address::of(url), "/chat/completions", "k", &body)?;
        if request + 1 == task.requests() {
            stream.read_until("word ")?;
            exchange.first = begun.elapsed();
        }
        stream.read_until("\r\n0\r\n\r\n")?;
    }
    exchange.whole = begun.elapsed();
    Ok(exchange)
}
