//! The beginning and the end of a text, and the words for what is missing.

use serde_json::Value;
use std::borrow::Cow;

/// As much of a name or a type as is shown, in characters.
const SHOWN: usize = 24;

/// What a cut text has in its middle, in bytes of JSON, at most.
pub(super) const MARKER: usize = 110;

/// A block that says what is missing, as JSON.
pub(super) fn note(what: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, Value::from(marker(what)))
}

/// `[… 1,234 bytes left out; the whole result is in the call record …]`
fn marker(what: &str) -> String {
    format!("[… {what} left out; the whole result is in the call record …]")
}

/// `1,234 bytes`
pub(super) fn bytes(count: usize) -> String {
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

/// A name, cut, and without what would end the quotes around it or take more room than it looks.
pub(super) fn short(name: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c == '`' || c == '"' || c == '\\' || !(' '..='~').contains(&c);
    if name.chars().nth(SHOWN).is_none() && !name.contains(is_odd) {
        return Cow::Borrowed(name);
    }
    let plain = name.chars().map(|c| if is_odd(c) { '?' } else { c });
    plain.take(SHOWN).chain(['…']).collect::<String>().into()
}

/// As much of a text as takes `limit` bytes in JSON, quotes apart: two thirds of it from the beginning, one third from
/// the end, and a line between them that says how much is missing, with what was `lost` beside the text.
pub(super) fn ends(text: &str, limit: usize, lost: usize) -> String {
    if lost == 0 && text.chars().map(written).sum::<usize>() <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(MARKER);
    let mut head = text.len();
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += written(c);
        if used > room * 2 / 3 {
            head = at;
            break;
        }
    }
    let (mut tail, mut used) = (text.len(), 0);
    for (at, c) in text[head..].char_indices().rev() {
        used += written(c);
        if used > room / 3 {
            break;
        }
        tail = head + at;
    }
    format!("{}\n{}\n{}", &text[..head], marker(&bytes(tail - head + lost)), &text[tail..])
}

/// How many bytes a character takes in JSON.
fn written(c: char) -> usize {
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
    fn words() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1_234_567), "1,234,567 bytes");
        assert_eq!(short("image/png"), "image/png");
        assert_eq!(short("a`b"), "a?b…");
        assert_eq!(short(&"x".repeat(99)), "x".repeat(24) + "…");
        assert!(Value::from(format!("\n{}\n", marker(&bytes(usize::MAX)))).to_string().len() <= MARKER + 2);
    }

    #[test]
    fn beginning_and_end() {
        let text: String = ('a'..='z').cycle().take(1000).collect();
        let cut = ends(&text, MARKER + 30, 0);
        assert_eq!(
            cut,
            format!(
                "abcdefghijklmnopqrst\n[… 970 bytes left out; the whole result is in the call record …]\n{}",
                &text[990..]
            )
        );
        let cut = ends(&"€\n\u{1}".repeat(500), MARKER + 100, 0);
        assert!(Value::from(cut.as_str()).to_string().len() <= MARKER + 100 + 2, "{cut}");
    }
}
