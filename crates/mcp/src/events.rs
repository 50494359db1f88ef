//! Parses server-sent events of bounded size from a byte stream.
//!
//! Chunk-driven like [`crate::frame`]. This is not a library because of the limit: an endless event, line or comment
//! must never use more memory than the limit allows.

use ::http::{HeaderMap, header::CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use std::time::Duration;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent {
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
pub struct SseParser {
    line: BytesMut,
    data: BytesMut,
    has_data: bool,
    kind: String,
    limit: usize,
    after_cr: bool,
    started: bool,
    /// Whether an event exceeded the limit, so that the rest of the stream is unusable.
    broken: bool,
    /// Last event id, from which to resume.
    pub last_id: Option<String>,
    /// Reconnection delay that the server asked for.
    pub retry: Option<Duration>,
}

impl SseParser {
    /// Creates a parser with a limit of `limit` bytes per event.
    pub fn new(limit: usize) -> SseParser {
        SseParser {
            line: BytesMut::new(),
            data: BytesMut::new(),
            has_data: false,
            kind: String::new(),
            limit,
            after_cr: false,
            started: false,
            broken: false,
            last_id: None,
            retry: None,
        }
    }

    /// Parses a chunk and returns the events that it completes. After handling them, check [`SseParser::is_broken`].
    pub fn push(&mut self, mut chunk: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
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

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = self.line.split().freeze();
        let line = if self.started { &line[..] } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line) };
        self.started = true;
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

    fn dispatch(&mut self) -> Option<SseEvent> {
        let kind = std::mem::take(&mut self.kind);
        let data = self.data.split().freeze();
        std::mem::take(&mut self.has_data)
            .then(|| SseEvent { kind: if kind.is_empty() { "message".into() } else { kind }, data })
    }
}

/// Returns whether the content type of a response is an event stream.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| is_event_stream_type(kind.as_bytes()))
}

/// Returns whether a content type is an event stream.
pub(crate) fn is_event_stream_type(kind: &[u8]) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    kind.trim_ascii_start().get(..EVENTS.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(EVENTS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feed(input: &[u8], chunk: usize, limit: usize) -> (Vec<String>, SseParser) {
        let mut events = SseParser::new(limit);
        let mut out = Vec::new();
        for part in input.chunks(chunk) {
            match events.push(part) {
                Ok(parsed) => out.extend(
                    parsed
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
    fn events_are_parsed_in_any_chunking() {
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
    fn last_id_and_retry_are_recorded() {
        let (_, events) = feed(b"id: 7\nretry: 250\ndata: x\n\nid: 8\nretry: no\n\n", 3, 100);
        assert_eq!((events.last_id.as_deref(), events.retry), (Some("8"), Some(Duration::from_millis(250))));
    }

    #[test]
    fn events_before_an_overlong_one_are_returned() {
        let mut events = SseParser::new(12);
        let parsed = events.push(b"data: x\n\ndata: xxxxxxxxxxxxxxxxxxxxxx").expect("the first is whole");
        assert_eq!(parsed.len(), 1);
        assert_eq!(events.push(b"\n\ndata: y\n\n"), Err(TooLong));
    }

    #[test]
    fn overlong_events_lines_and_comments_fail() {
        for input in
            ["data: xxxxxxxxxxxxxxxxx", ": a comment without end", "data: aaaaaaaaa\ndata: bbbbbbbbb\n"]
        {
            assert_eq!(feed(input.as_bytes(), 4, 16).0, ["too long"], "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn chunking_does_not_change_the_events(input in "[da:t\r\n ]{0,48}", chunk in 1_usize..7) {
            let whole = feed(input.as_bytes(), input.len().max(1), 1000).0;
            prop_assert_eq!(feed(input.as_bytes(), chunk, 1000).0, whole);
        }
    }
}
