//! Parses server-sent events of bounded size from a byte stream.
//!
//! Chunk-driven like [`crate::frame`]. This is not a library because of the limit: an endless event, line or comment
//! must never use more memory than the limit allows.

use bytes::{Bytes, BytesMut};
use std::time::Duration;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Event type; `message` if none is given.
    pub kind: String,
    /// Data lines, joined.
    pub data: Bytes,
}

/// Error: an event or a line exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// Incremental parser of an event stream.
#[derive(Debug)]
pub struct Events {
    line: BytesMut,
    data: BytesMut,
    has_data: bool,
    kind: String,
    limit: usize,
    after_cr: bool,
    begun: bool,
    /// Whether an event exceeded the limit, so that the rest of the stream is unusable.
    broken: bool,
    /// Last event id, from which to resume.
    pub last_id: Option<String>,
    /// Reconnection delay that the server asked for.
    pub retry: Option<Duration>,
}

impl Events {
    /// Creates a parser with a limit of `limit` bytes per event.
    pub fn new(limit: usize) -> Events {
        Events {
            line: BytesMut::new(),
            data: BytesMut::new(),
            has_data: false,
            kind: String::new(),
            limit,
            after_cr: false,
            begun: false,
            broken: false,
            last_id: None,
            retry: None,
        }
    }

    /// Parses a chunk and returns the events that it completes. After handling them, check [`Events::is_broken`].
    pub fn push(&mut self, mut chunk: &[u8]) -> Result<Vec<Event>, TooLong> {
        if self.broken {
            return Err(TooLong);
        }
        let mut events = Vec::new();
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.line.len() + self.data.len() + part.len() > self.limit {
                self.broken = true;
                // Earlier complete events stay valid: one may be the response that a caller waits for.
                return if events.is_empty() { Err(TooLong) } else { Ok(events) };
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.after_cr = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            events.extend(self.end_line());
        }
        Ok(events)
    }

    /// Returns whether the limit was exceeded, so that no further events follow.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = self.line.split().freeze();
        let line = if self.begun { &line[..] } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        self.set(field, value.strip_prefix(b" ").unwrap_or(value));
        None
    }

    fn set(&mut self, field: &[u8], value: &[u8]) {
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.extend_from_slice(b"\n");
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = text(),
            b"id" if !value.contains(&0) => self.last_id = Some(text()).filter(|id| !id.is_empty()),
            b"retry" => self.retry = text().parse().ok().map(Duration::from_millis).or(self.retry),
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        let kind = std::mem::take(&mut self.kind);
        let data = self.data.split().freeze();
        std::mem::take(&mut self.has_data)
            .then(|| Event { kind: if kind.is_empty() { "message".into() } else { kind }, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feed(input: &[u8], chunk: usize, limit: usize) -> (Vec<String>, Events) {
        let mut events = Events::new(limit);
        let mut out = Vec::new();
        for part in input.chunks(chunk) {
            match events.push(part) {
                Ok(heard) => out.extend(
                    heard
                        .into_iter()
                        .map(|event| format!("{}={}", event.kind, String::from_utf8_lossy(&event.data))),
                ),
                Err(TooLong) => {
                    out.push("too long".into());
                    break;
                }
            }
        }
        (out, events)
    }

    #[test]
    fn events_come_whole_whatever_the_chunks() {
        for (input, expected) in [
            ("data: a\n\n", vec!["message=a"]),
            ("\u{feff}data: a\r\ndata:b\r\n\r\n", vec!["message=a\nb"]),
            ("event: endpoint\rdata: /m\r\r", vec!["endpoint=/m"]),
            (": comment\n\nid: 1\n\ndata\n\n", vec!["message="]),
            ("data: unfinished\n", vec![]),
        ] {
            for chunk in [1, 2, 100] {
                assert_eq!(feed(input.as_bytes(), chunk, 100).0, expected, "{input:?} in chunks of {chunk}");
            }
        }
    }

    #[test]
    fn resumption_is_remembered() {
        let (_, events) = feed(b"id: 7\nretry: 250\ndata: x\n\nid: 8\nretry: no\n\n", 3, 100);
        assert_eq!((events.last_id.as_deref(), events.retry), (Some("8"), Some(Duration::from_millis(250))));
    }

    #[test]
    fn what_came_before_an_overlong_event_is_kept() {
        let mut events = Events::new(12);
        let heard = events.push(b"data: x\n\ndata: xxxxxxxxxxxxxxxxxxxxxx").expect("the first is whole");
        assert_eq!(heard.len(), 1);
        assert_eq!(events.push(b"\n\ndata: y\n\n"), Err(TooLong));
    }

    #[test]
    fn everything_is_bounded() {
        for input in
            ["data: xxxxxxxxxxxxxxxxx", ": a comment without end", "data: aaaaaaaaa\ndata: bbbbbbbbb\n"]
        {
            assert_eq!(feed(input.as_bytes(), 4, 16).0, ["too long"], "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(input in "[da:t\r\n ]{0,48}", chunk in 1_usize..7) {
            let whole = feed(input.as_bytes(), input.len().max(1), 1000).0;
            prop_assert_eq!(feed(input.as_bytes(), chunk, 1000).0, whole);
        }
    }
}
