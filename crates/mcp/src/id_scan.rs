//! Finds the request id in a frame that could not be parsed.
//!
//! A frame that is too long, truncated or invalid usually still contains the id of its request. With the id, that one
//! request fails at once instead of waiting for its timeout. The scan is lenient on purpose: it never fails, it only
//! finds nothing.

/// Finds the id in a damaged frame: as a member of the outermost object, else as its very last member.
pub(crate) fn request_id(frame: &[u8]) -> Option<u64> {
    leading_id(frame).or_else(|| trailing_id(frame))
}

/// Scans the outermost object from its start for its `id`.
pub(crate) fn leading_id(frame: &[u8]) -> Option<u64> {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < frame.len() {
        match frame[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = string_end(frame, at + 1)?;
                if depth == 1 && frame.get(at + 1..end) == Some(b"id") {
                    let after = skip_spaces(frame, end + 1);
                    if frame.get(after) == Some(&b':') {
                        let value = &frame[skip_spaces(frame, after + 1)..];
                        // Digits at the end of the frame may be truncated.
                        let whole = value.iter().any(|byte| matches!(byte, b',' | b'}'));
                        return whole.then(|| number(value))?;
                    }
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Reads `…,"id":5}` at the end of a frame. Several servers write the id last, and the last `}` of a complete frame
/// always closes the outermost object, so nothing before it needs to be parsed.
pub(crate) fn trailing_id(frame: &[u8]) -> Option<u64> {
    let body = frame.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let colon = memchr::memrchr(b':', body)?;
    let key = body[..colon].trim_ascii_end().strip_suffix(b"\"id\"")?.trim_ascii_end();
    matches!(key.last(), Some(b',' | b'{')).then(|| number(body[colon + 1..].trim_ascii_start()))?
}

/// Parses an id that a peer echoed: ours are integers, but some servers return `"7"` or `7.0`.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &text[digits..];
    let fraction = rest.strip_prefix(b".").unwrap_or(rest);
    let zeros = fraction.iter().take_while(|byte| **byte == b'0').count();
    let ends = fraction[zeros..]
        .first()
        .is_none_or(|byte| matches!(byte, b'"' | b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'));
    if digits == 0 || !ends {
        return None;
    }
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// Returns the position of the quote that closes a string whose content starts at `from`.
fn string_end(frame: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', frame.get(from..)?)?;
        if frame[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
    }
}

fn skip_spaces(frame: &[u8], from: usize) -> usize {
    let rest = frame.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Returns whether brackets outside strings nest deeper than `limit`.
pub(crate) fn deeper_than(text: &[u8], limit: usize) -> bool {
    // Fast path: a frame with few opening brackets cannot be deep, and counting them is much cheaper than a full
    // scan.
    memchr::memchr2_iter(b'{', b'[', text).nth(limit).is_some() && deepest(text) > limit
}

fn deepest(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut at) = (0_usize, 0, 0);
    while at < text.len() {
        match text[at] {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => match string_end(text, at + 1) {
                Some(end) => at = end,
                None => break,
            },
            _ => {}
        }
        at += 1;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_id_of_damaged_frames() {
        for (frame, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"con"#, Some(7)),
            (r#"{"result":{"id":1},"id" : 7 ,"x":"#, Some(7)),
            (r#"{"result":{"text":"\"id\":3"},"jsonrpc":"2.0","id":7}"#, Some(7)),
            (r#"…cut out of the middle","x":[]},"jsonrpc":"2.0","id":7}"#, Some(7)),
            (r#"…cut out","id":"7"}"#, Some(7)),
            (r#"{"id":7.0,"#, Some(7)),
            (r#"{"id":7.5,"#, None),
            (r#"{"id":"seven","#, None),
            (r#"{"result":{"id":1"#, None),
            (r#"{"id":7"#, None),
            (r#"{"result":"unclosed \"#, None),
            ("{", None),
            ("", None),
        ] {
            assert_eq!(request_id(frame.as_bytes()), id, "{frame}");
        }
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert!(deeper_than(&[b'['; 129], 128));
        assert!(!deeper_than(&[b'['; 128], 128));
        assert!(!deeper_than(format!("\"{}\"", "[".repeat(500)).as_bytes(), 128));
        assert!(!deeper_than("[]".repeat(500).as_bytes(), 128));
    }
}
