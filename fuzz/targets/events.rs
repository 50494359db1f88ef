//! Parses an arbitrary stream as server-sent events. The chunking does not change the events, and none exceeds the
//! limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use wharf_fuzz::Arrival;
use wharf_mcp::events::{Event, Events};

/// Growth factor of invalid UTF-8: one byte becomes a replacement character of three bytes.
const EXPANSION: usize = 3;

/// Result of parsing a stream.
#[derive(Debug, PartialEq)]
struct Heard {
    events: Vec<Event>,
    last_id: Option<String>,
    retry: Option<Duration>,
    too_long: bool,
}

fuzz_target!(|input: &[u8]| {
    let Some(arrival) = Arrival::of(input) else { return };
    let heard = hear(arrival.limit, arrival.chunks());
    let expected = hear(arrival.limit, arrival.stream.chunks(1));
    check_sizes(arrival.limit, &heard);
    check_sizes(arrival.limit, &expected);

    if expected.too_long {
        // Events in the same chunk as an overlong one are lost with it.
        assert!(heard.too_long, "an event over the limit passed");
        assert!(expected.events.starts_with(&heard.events), "{heard:?} does not begin {expected:?}");
    } else {
        assert_eq!(heard, expected, "chunks matter");
    }
});

fn hear<'a>(limit: usize, mut chunks: impl Iterator<Item = &'a [u8]>) -> Heard {
    let mut parser = Events::new(limit);
    let mut events = Vec::new();
    let too_long = chunks.any(|chunk| match parser.push(chunk) {
        Ok(more) => {
            events.extend(more);
            false
        }
        Err(_) => true,
    });
    let too_long = too_long || parser.is_broken();
    Heard { events, last_id: parser.last_id, retry: parser.retry, too_long }
}

fn check_sizes(limit: usize, heard: &Heard) {
    let id = heard.last_id.as_ref().map_or(0, String::len);
    assert!(id <= EXPANSION * limit, "an id has {id} bytes");
    for Event { kind, data } in &heard.events {
        assert!(data.len() <= limit, "an event has {} bytes", data.len());
        assert!(kind == "message" || kind.len() <= EXPANSION * limit, "a kind has {} bytes", kind.len());
    }
}
