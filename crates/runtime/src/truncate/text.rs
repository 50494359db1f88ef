//! Truncates a text to its beginning and end, and formats the markers for the missing part.

use serde_json::Value;
use std::borrow::Cow;

/// Maximum length of a name or type in a marker, in characters.
const MAX_NAME_CHARS: usize = 24;

/// Maximum length of the marker in a truncated text, in bytes of JSON.
pub(super) const MAX_MARKER_BYTES: usize = 110;

/// Formats a text block, as JSON, that states what is missing.
pub(super) fn marker_block(what: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, Value::from(marker(what)))
}

/// Formats the marker: `[… 1,234 format_bytes left out; the whole result is in the call record …]`.
fn marker(what: &str) -> String {
    format!("[… {what} left out; the whole result is in the call record …]")
}

/// Formats a size: `1,234 format_bytes`.
pub(super) fn format_bytes(count: usize) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {}", if count == 1 { "byte" } else { "bytes" })
}

/// Shortens a name and replaces characters that would end its quotes or need escaping.
pub(super) fn short_name(name: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c == '`' || c == '"' || c == '\\' || !(' '..='~').contains(&c);
    if name.chars().nth(MAX_NAME_CHARS).is_none() && !name.contains(is_odd) {
        return Cow::Borrowed(name);
    }
    let plain = name.chars().map(|c| if is_odd(c) { '?' } else { c });
    plain.take(MAX_NAME_CHARS).chain(['…']).collect::<String>().into()
}

/// Truncates a text to `limit` bytes of JSON without quotes: two thirds from the beginning, one third from the end,
/// and a marker between them. The marker's count includes the `lost` bytes dropped beside the text.
pub(super) fn keep_ends(text: &str, limit: usize, lost: usize) -> String {
    if lost == 0 && text.chars().map(json_length).sum::<usize>() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(MAX_MARKER_BYTES);
    let mut head = text.len();
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += json_length(c);
        if used > room * 2 / 3 {
            head = at;
            break;
        }
    }
    let (mut tail, mut used) = (text.len(), 0);
    for (at, c) in text[head..].char_indices().rev() {
        used += json_length(c);
        if used > room / 3 {
            break;
        }
        tail = head + at;
    }
    format!("{}\n{}\n{}", &text[..head], marker(&format_bytes(tail - head + lost)), &text[tail..])
}

/// Returns the length of a character in JSON, in bytes.
fn json_length(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes_are_formatted() {
        assert_eq!(format_bytes(1), "1 byte");
        assert_eq!(format_bytes(999), "999 bytes");
        assert_eq!(format_bytes(1_234_567), "1,234,567 bytes");
        assert_eq!(short_name("image/png"), "image/png");
        assert_eq!(short_name("a`b"), "a?b…");
        assert_eq!(short_name(&"x".repeat(99)), "x".repeat(24) + "…");
        assert!(
            Value::from(format!("\n{}\n", marker(&format_bytes(usize::MAX)))).to_string().len()
                <= MAX_MARKER_BYTES + 2
        );
    }

    #[test]
    fn long_text_keeps_beginning_and_end() {
        let text: String = ('a'..='z').cycle().take(1000).collect();
        let truncated = keep_ends(&text, MAX_MARKER_BYTES + 30, 0);
        assert_eq!(
            truncated,
            format!(
                "abcdefghijklmnopqrst\n[… 970 bytes left out; the whole result is in the call record …]\n{}",
                &text[990..]
            )
        );
        let truncated = keep_ends(&"€\n\u{1}".repeat(500), MAX_MARKER_BYTES + 100, 0);
        assert!(
            Value::from(truncated.as_str()).to_string().len() <= MAX_MARKER_BYTES + 100 + 2,
            "{truncated}"
        );
    }
}
