//! Sends arbitrary text through a header. What is encoded is visible ASCII that no server trims, and decodes to the
//! same text; what merely claims to be encoded is refused or decoded, and never brings anything down.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_mcp::http::{decode_value, encode_value};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    check(&text);
    decode_value(&text).iter().for_each(|decoded| check(decoded));
    // The fuzzer would have to guess both ends.
    decode_value(&format!("=?base64?{text}?=")).iter().for_each(|decoded| check(decoded));
});

fn check(text: &str) {
    let encoded = encode_value(text);
    assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{encoded:?} is no header");
    assert_eq!(encoded.trim(), encoded, "a server would trim it");
    assert_eq!(decode_value(&encoded).as_deref(), Some(text), "{encoded:?} is another text");
}
