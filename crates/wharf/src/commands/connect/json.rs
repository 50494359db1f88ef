//! Sets or removes one member of a JSON document with comments. Preserves the rest of the text byte for byte.

use crate::import::{parse_json, plain_json, without_comments};
use serde_json::{Map, Value};
use std::ops::Range;

/// A member of an object: its key, the offset of the key, and the range of its value.
struct Member {
    key: String,
    start: usize,
    value: Range<usize>,
}

/// An object in the text: its members and the offsets of its braces.
struct Object {
    open: usize,
    close: usize,
    members: Vec<Member>,
}

/// Returns the text with `value` as the member `name` of the object `section`, which is created if missing. `None` if
/// the text is not a JSON object or the section is not an object.
pub(super) fn set_member(text: &str, section: &str, name: &str, value: &Value) -> Option<String> {
    let text = if has_content(text) { text.to_owned() } else { format!("{text}{{}}\n") };
    let mut expected = object_of(&text)?;
    let members = expected.entry(section).or_insert_with(|| Value::Object(Map::new()));
    members.as_object_mut()?.insert(name.to_owned(), value.clone());
    let after = set_text(&text, section, name, value)?;
    (object_of(&after)? == expected).then_some(after)
}

/// Returns the text without the member `name` of the object `section`. Keeps a section that becomes empty.
pub(super) fn remove_member(text: &str, section: &str, name: &str) -> Option<String> {
    let mut expected = object_of(text)?;
    expected.get_mut(section)?.as_object_mut()?.remove(name)?;
    let after = remove_text(text, section, name)?;
    (object_of(&after)? == expected).then_some(after)
}

/// Returns the member `name` of the object `section`.
pub(super) fn member(text: &str, section: &str, name: &str) -> Option<Value> {
    object_of(text)?.get(section)?.get(name).cloned()
}

/// Checks whether the text contains more than white space and comments.
pub(super) fn has_content(text: &str) -> bool {
    !plain_json(text).trim_start_matches('\u{feff}').trim().is_empty()
}

fn object_of(text: &str) -> Option<Map<String, Value>> {
    match parse_json(text) {
        Ok(Value::Object(root)) => Some(root),
        _ => None,
    }
}

fn set_text(text: &str, section: &str, name: &str, value: &Value) -> Option<String> {
    let plain = plain_json(text);
    let root = Object::read(&plain, plain.find('{')?)?;
    let Some(found) = root.members.iter().find(|it| it.key == section) else {
        let value = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
        return Some(insert_member(text, &root, section, &value));
    };
    let object = Object::read(&plain, found.value.start)?;
    match object.members.iter().find(|it| it.key == name) {
        None => Some(insert_member(text, &object, name, value)),
        Some(old) => {
            let indent = indent_at(text, old.start);
            let new = pretty(value, &indent, &indent_unit(text), line_end(text));
            Some(format!("{}{new}{}", &text[..old.value.start], &text[old.value.end..]))
        }
    }
}

/// Returns the text with one more member at the end of an object.
fn insert_member(text: &str, object: &Object, key: &str, value: &Value) -> String {
    let (indent_unit, line_end) = (indent_unit(text), line_end(text));
    let outer = indent_at(text, object.open);
    let last = object.members.last();
    let is_on_own_line = |it: &&Member| text[..it.start].trim_end_matches([' ', '\t']).ends_with('\n');
    let indent = last
        .filter(is_on_own_line)
        .map_or_else(|| format!("{outer}{indent_unit}"), |it| indent_at(text, it.start));
    // Between the last value and the brace there are only white space, comments, and perhaps a trailing comma. The
    // plain JSON does not contain that comma.
    let end = object.open + text[object.open..object.close].trim_end().len();
    let comma_at = last.filter(|it| !has_trailing_comma(text, it.value.end)).map(|it| it.value.end);
    let mut out = String::with_capacity(text.len() + 200);
    match comma_at {
        Some(at) => out.extend([&text[..at], ",", &text[at..end]]),
        None => out.push_str(&text[..end]),
    }
    let value = pretty(value, &indent, &indent_unit, line_end);
    let comma = if last.is_some() && comma_at.is_none() { "," } else { "" };
    out.push_str(&format!("{line_end}{indent}{}: {value}{comma}", Value::from(key)));
    match text[end..object.close].contains('\n') {
        true => out.push_str(&text[end..]),
        false => out.push_str(&format!("{line_end}{outer}{}", &text[object.close..])),
    }
    out
}

fn remove_text(text: &str, section: &str, name: &str) -> Option<String> {
    let plain = plain_json(text);
    let root = Object::read(&plain, plain.find('{')?)?;
    let found = root.members.iter().find(|it| it.key == section)?;
    let object = Object::read(&plain, found.value.start)?;
    let at = object.members.iter().position(|it| it.key == name)?;
    let member = &object.members[at];
    let rest = &text[member.value.end..];
    let own_comma = rest.find(',').filter(|it| rest[..*it].trim().is_empty()).map(|it| it + 1);
    let end = member.value.end + own_comma.unwrap_or(0);
    // Remove the whole line if nothing else is on it.
    let start = text[..member.start].trim_end_matches([' ', '\t']).len();
    let is_line =
        text[..start].ends_with('\n') && text[end..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    let end = if is_line { end + text[end..].find('\n')? + 1 } else { end };
    let start = if is_line { start } else { member.start };
    let before = &text[..start];
    // The previous member becomes the last one, so remove its comma.
    let before = match (own_comma, at.checked_sub(1).map(|it| object.members[it].value.end)) {
        (None, Some(previous)) => {
            let comma = previous + plain[previous..start].find(',')?;
            format!("{}{}", &before[..comma], &before[comma + 1..])
        }
        _ => before.to_owned(),
    };
    Some(format!("{before}{}", &text[end..]))
}

impl Object {
    /// Parses the object that opens at `open` in plain JSON.
    fn read(plain: &str, open: usize) -> Option<Object> {
        let bytes = plain.as_bytes();
        let mut at = (bytes.get(open) == Some(&b'{')).then_some(open + 1)?;
        let mut members = Vec::new();
        loop {
            at = skip_blanks(bytes, at);
            match bytes.get(at)? {
                b'}' => return Some(Object { open, close: at, members }),
                b',' => at += 1,
                b'"' => {
                    let end = value_end(bytes, at)?;
                    let key = serde_json::from_str(&plain[at..end]).ok()?;
                    let colon = skip_blanks(bytes, end);
                    let start = (bytes.get(colon) == Some(&b':')).then(|| skip_blanks(bytes, colon + 1))?;
                    let value = start..value_end(bytes, start)?;
                    let next = value.end;
                    members.push(Member { key, start: at, value });
                    at = next;
                }
                _ => return None,
            }
        }
    }
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|it| it.is_ascii_whitespace()).count()
}

/// Returns the end of the value that begins at `at`.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut here) = (0_usize, at);
    loop {
        match bytes.get(here)? {
            b'"' => {
                here += 1;
                while *bytes.get(here)? != b'"' {
                    here += if bytes[here] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ if depth == 0 => {
                let is_end = |it: &u8| matches!(it, b',' | b'}' | b']') || it.is_ascii_whitespace();
                return Some(here + bytes[here..].iter().position(is_end)?);
            }
            _ => {}
        }
        here += 1;
        if depth == 0 {
            return Some(here);
        }
    }
}

/// Checks whether a comma follows the last value of an object, which ends at `end`.
fn has_trailing_comma(text: &str, end: usize) -> bool {
    without_comments(text)[end..].trim_start().starts_with(',')
}

/// Returns the indentation of the line that contains `at`.
fn indent_at(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |it| it + 1);
    text[line..at].chars().take_while(|it| matches!(it, ' ' | '\t')).collect()
}

/// Returns the indentation that this text uses for one level.
fn indent_unit(text: &str) -> String {
    let first = text.lines().find(|it| it.starts_with([' ', '\t']) && !it.trim().is_empty());
    match first.map(|it| it.len() - it.trim_start().len()) {
        Some(_) if first.is_some_and(|it| it.starts_with('\t')) => "\t".to_owned(),
        Some(count @ 2..=8) => " ".repeat(count),
        _ => "  ".to_owned(),
    }
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Formats a value over several lines and indents every line but the first.
fn pretty(value: &Value, indent: &str, indent_unit: &str, line_end: &str) -> String {
    let text = format!("{value:#}");
    let mut lines = text.lines().map(|line| {
        let depth = (line.len() - line.trim_start().len()) / 2;
        format!("{}{}", indent_unit.repeat(depth), line.trim_start())
    });
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |out, line| format!("{out}{line_end}{indent}{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn setting_a_member_keeps_all_other_text() {
        for (text, expected) in [
            ("", "{\n  \"s\": {\n    \"n\": 1\n  }\n}\n"),
            ("// Mine.\n", "// Mine.\n{\n  \"s\": {\n    \"n\": 1\n  }\n}\n"),
            ("{}", "{\n  \"s\": {\n    \"n\": 1\n  }\n}"),
            ("{\"a\": 1}", "{\"a\": 1,\n  \"s\": {\n    \"n\": 1\n  }\n}"),
            (
                "{\n    // one\n    \"a\": [1, /* , */ 2], // two, three\n}\n",
                "{\n    // one\n    \"a\": [1, /* , */ 2], // two, three\n    \"s\": {\n        \"n\": 1\n    },\n}\n",
            ),
            (
                "{\n    \"a\": 1 // two, three\n}\n",
                "{\n    \"a\": 1, // two, three\n    \"s\": {\n        \"n\": 1\n    }\n}\n",
            ),
            (
                "{\n\t\"s\": {\n\t\t\"x\": {}\n\t},\n\t\"b\": 2\n}\n",
                "{\n\t\"s\": {\n\t\t\"x\": {},\n\t\t\"n\": 1\n\t},\n\t\"b\": 2\n}\n",
            ),
            ("{\r\n  \"s\": {}\r\n}\r\n", "{\r\n  \"s\": {\r\n    \"n\": 1\r\n  }\r\n}\r\n"),
            ("{\"s\": {\"n\": {\"old\": \"}\"}, \"m\": 2}}", "{\"s\": {\"n\": 1, \"m\": 2}}"),
            ("\u{feff}{\"s\": {}}", "\u{feff}{\"s\": {\n  \"n\": 1\n}}"),
        ] {
            let after = set_member(text, "s", "n", &json!(1));
            assert_eq!(after.as_deref(), Some(expected), "{text:?}");
            let again = set_member(expected, "s", "n", &json!(1));
            assert_eq!(again.as_deref(), Some(expected), "{expected:?}");
        }
        for text in ["[]", "{\"s\": 1}", "{\"s\": {}", "nonsense"] {
            assert_eq!(set_member(text, "s", "n", &json!(1)), None, "{text}");
        }
    }

    #[test]
    fn removing_a_member_keeps_all_other_text() {
        for (text, expected) in [
            ("{\"s\": {\"n\": 1}}", Some("{\"s\": {}}")),
            ("{\"s\": {\"n\": 1, \"m\": 2}}", Some("{\"s\": { \"m\": 2}}")),
            (
                "{\n  \"s\": {\n    \"a\": 1, // kept\n    \"n\": {\n      \"x\": 1\n    }\n  }\n}\n",
                Some("{\n  \"s\": {\n    \"a\": 1 // kept\n  }\n}\n"),
            ),
            (
                "{\n  \"s\": {\n    \"n\": 1,\n    // about a\n    \"a\": 1,\n  },\n}\n",
                Some("{\n  \"s\": {\n    // about a\n    \"a\": 1,\n  },\n}\n"),
            ),
            ("{\"s\": {}}", None),
            ("{}", None),
        ] {
            assert_eq!(remove_member(text, "s", "n").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn objects_are_written_over_several_lines() {
        let text = set_member("{\n    \"s\": {}\n}", "s", "n", &json!({"a": ["b"]}));
        let expected = "{\n    \"s\": {\n        \"n\": {\n            \"a\": [\n                \"b\"\n            ]\n        }\n    }\n}";
        assert_eq!(text.as_deref(), Some(expected));
    }
}
