//! Parses an arbitrary stream as server-sent events. The chunking does not change the events, and none exceeds the
//! limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use wharf_fuzz::ChunkedInput;
use wharf_mcp::events::{SseEvent, SseParser};

/// Growth factor of invalid UTF-8: one byte becomes a replacement character of three bytes.
const EXPANSION: usize = 3;

/// Result of parsing a stream.
#[derive(Debug, PartialEq)]
struct ParsedStream {
    events: Vec<SseEvent>,
    last_id: Option<String>,
    retry: Option<Duration>,
    too_long: bool,
}

fuzz_target!(|input: &[u8]| {
    let Some(input) = ChunkedInput::of(input) else { return };
    let parsed = parse(input.limit, input.chunks());
    let expected = parse(input.limit, input.stream.chunks(1));
    check_sizes(input.limit, &parsed);
    check_sizes(input.limit, &expected);

    if expected.too_long {
        // Events in the same chunk as an overlong one are lost with it.
        assert!(parsed.too_long, "an event over the limit passed");
        assert!(expected.events.starts_with(&parsed.events), "{parsed:?} does not begin {expected:?}");
    } else {
        assert_eq!(parsed, expected, "chunks matter");
    }
});

fn parse<'a>(limit: usize, mut chunks: impl Iterator<Item = &'a [u8]>) -> ParsedStream {
    let mut parser = SseParser::new(limit);
    let mut events = Vec::new();
    let too_long = chunks.any(|chunk| match parser.push(chunk) {
        Ok(more) => {
            events.extend(more);
            false
        }
        Err(_) => true,
    });
    let too_long = too_long || parser.is_broken();
    ParsedStream { events, last_id: parser.last_id, retry: parser.retry, too_long }
}

fn check_sizes(limit: usize, parsed: &ParsedStream) {
    let id = parsed.last_id.as_ref().map_or(0, String::len);
    assert!(id <= EXPANSION * limit, "an id has {id} bytes");
    for SseEvent { kind, data } in &parsed.events {
        assert!(data.len() <= limit, "an event has {} bytes", data.len());
        assert!(kind == "message" || kind.len() <= EXPANSION * limit, "a kind has {} bytes", kind.len());
    }
}
