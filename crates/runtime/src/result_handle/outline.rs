//! Outlines a JSON document: which members there are, of which types, and how many items a list has.

use serde_json::value::RawValue;
use std::fmt::Write;
use wharf_config::is_invisible;
use wharf_mcp::Members;

/// Number of levels that an outline shows.
const DEPTH: usize = 3;
/// Maximum number of members of an object in an outline.
const MAX_MEMBERS: usize = 24;
/// Maximum length of a member's name in an outline, in characters.
const MAX_NAME_CHARS: usize = 40;

/// Describes the structure of a value, for example `{items: [1204 × {id: int, labels: [str]}], next: null}`.
pub(super) fn outline(value: &RawValue) -> String {
    let mut out = String::new();
    write_outline(value, DEPTH, true, &mut out);
    out
}

/// Returns the first item of the longest list near the top, if there is one.
pub(super) fn first_item(value: &RawValue) -> Option<&RawValue> {
    if let Some((_, first)) = count_and_first(value) {
        return Some(first);
    }
    let members: Members<'_> = serde_json::from_str(value.get()).ok()?;
    let lists = members.0.into_iter().filter(|(_, value)| value.get().starts_with('['));
    let longest = lists.filter_map(|(_, value)| count_and_first(value)).max_by_key(|(count, _)| *count);
    longest.map(|(_, first)| first)
}

fn count_and_first(value: &RawValue) -> Option<(usize, &RawValue)> {
    let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    Some((items.len(), *items.first()?))
}

/// `counts` says whether the lengths of lists are shown. They are not for the items of a list, which differ.
fn write_outline(value: &RawValue, depth: usize, counts: bool, out: &mut String) {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') if depth == 0 => out.push_str("{…}"),
        Some(b'[') if depth == 0 => out.push_str("[…]"),
        Some(b'{') => {
            let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
            out.push('{');
            for (at, (name, value)) in members.0.iter().take(MAX_MEMBERS).enumerate() {
                let comma = if at == 0 { "" } else { ", " };
                let _ = write!(out, "{comma}{}: ", shown_name(name));
                write_outline(value, depth - 1, counts, out);
            }
            if members.0.len() > MAX_MEMBERS {
                let _ = write!(out, ", … {} more", members.0.len() - MAX_MEMBERS);
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            out.push('[');
            if let Some(first) = items.first() {
                if counts {
                    let _ = write!(out, "{} × ", items.len());
                }
                write_outline(first, depth - 1, false, out);
            }
            out.push(']');
        }
        Some(b'"') => out.push_str("str"),
        Some(b't' | b'f') => out.push_str("bool"),
        Some(b'n') => out.push_str("null"),
        _ if text.contains(['.', 'e', 'E']) => out.push_str("float"),
        _ => out.push_str("int"),
    }
}

fn shown_name(name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || "_-.$@".contains(it));
    let short: String = name.chars().take(MAX_NAME_CHARS).collect();
    let short = if short.len() < name.len() { format!("{short}…") } else { short };
    if is_plain { short } else { format!("\"{}\"", escape_invisible(&short)) }
}

/// Escapes the characters that people do not see, except line breaks and tabs.
pub(super) fn escape_invisible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) && !matches!(c, '\n' | '\t') {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outline_shows_types_and_counts() {
        for (json, expected) in [
            (
                r#"{"items":[{"id":1,"title":"a","labels":["x","y"]},{}],"next":null,"ok":true,"at":1.5}"#,
                "{items: [2 × {id: int, title: str, labels: […]}], next: null, ok: bool, at: float}",
            ),
            ("[[1,2],[3]]", "[2 × [int]]"),
            ("[]", "[]"),
            (r#"{"a b":{"b":{"c":{"d":1}}}}"#, r#"{"a b": {b: {c: {…}}}}"#),
            ("{\"\u{202e}x\":1}", r#"{"\u{202e}x": int}"#),
        ] {
            let value: &RawValue = serde_json::from_str(json).expect("JSON");
            assert_eq!(outline(value), expected, "{json}");
        }
    }

    #[test]
    fn first_item_is_that_of_the_longest_list() {
        let value: &RawValue = serde_json::from_str(r#"{"a":[1],"b":[{"x":1},2]}"#).expect("JSON");
        assert_eq!(first_item(value).map(RawValue::get), Some(r#"{"x":1}"#));
    }
}
