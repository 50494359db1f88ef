//! Encodes arbitrary text as a header value. The result is visible ASCII without surrounding spaces and decodes to
//! the same text. A value that only looks encoded is rejected or decoded, and never causes a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_mcp::http::{decode_value, encode_value};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    check(&text);
    decode_value(&text).iter().for_each(|decoded| check(decoded));
    // Adds the markers, because the fuzzer is unlikely to guess both.
    decode_value(&format!("=?base64?{text}?=")).iter().for_each(|decoded| check(decoded));
});

fn check(text: &str) {
    let encoded = encode_value(text);
    assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{encoded:?} is no header");
    assert_eq!(encoded.trim(), encoded, "a server would trim it");
    assert_eq!(decode_value(&encoded).as_deref(), Some(text), "{encoded:?} is another text");
}
