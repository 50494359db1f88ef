//! Checks that all JSON parsers read a body in the same way: no duplicate keys, no lone surrogates, and limited
//! nesting.
//!
//! The text is scanned and not decoded, because a number may be too large for any type here.

use std::collections::HashSet;
use wharf_mcp::Raw;

/// Checks JSON that is already known to be valid.
pub(super) fn check(raw: &Raw) -> Result<(), &'static str> {
    if raw.is_too_deep() {
        return Err("it is nested too deeply");
    }
    if raw.has_lone_surrogate() {
        return Err("it contains a lone surrogate escape");
    }
    let text = raw.as_bytes();
    // The keys of each open object; `None` for an array.
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let (mut at, mut expects_key) = (0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' => open.push(Some(HashSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => _ = open.pop(),
            b'"' => {
                let end = end_of_string(text, at);
                if let Some(Some(keys)) = open.last_mut().filter(|_| expects_key) {
                    let key = serde_json::from_slice(&text[at..end]).map_err(|_| "a key cannot be read")?;
                    if !keys.insert(key) {
                        return Err("it has a duplicate key");
                    }
                }
                at = end - 1;
            }
            _ => {}
        }
        match byte {
            b'{' | b',' => expects_key = matches!(open.last(), Some(Some(_))),
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => expects_key = false,
        }
        at += 1;
    }
    Ok(())
}

/// Returns the position after the closing quote of the string that begins at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_json_is_rejected() {
        for (text, fits) in [
            ("{}", true),
            (r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}"#, true),
            (r#"{"a":"a","b":"a"}"#, true),
            (r#"{"a":"{\"b\":1,\"b\":2}"}"#, true),
            (r#"{"n":12345678901234567890123,"f":1e99999}"#, true),
            (r#"{"\ud83d\ude00":1}"#, true),
            (r#"{"a":1,"a":2}"#, false),
            (r#"{"a":1, "\u0061" :2}"#, false),
            (r#"[{"b":{"a":[],"a":{}}}]"#, false),
            (r#"{"a":["x"],"b":[1,{"c":"\\"}],"a":1}"#, false),
            (r#"{"a":"\ud800"}"#, false),
        ] {
            let raw = Raw::parse(text).expect("JSON");
            assert_eq!(check(&raw).is_ok(), fits, "{text}");
        }
    }
}
