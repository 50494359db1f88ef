//! Sets or removes one table of a TOML document. Preserves the rest of the text.

use crate::import::parse_toml;
use serde_json::{Map, Value};
use std::ops::Range;

/// Returns the text with `value` as the table `[section.name]`. `None` if the text is not TOML, or is written in a
/// form that this module cannot edit safely.
pub(super) fn set_table(text: &str, section: &str, name: &str, value: &Value) -> Option<String> {
    let mut expected = parse_root(text)?;
    let tables = expected.entry(section).or_insert_with(|| Value::Object(Map::new()));
    tables.as_object_mut()?.insert(name.to_owned(), value.clone());
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let table = table_text(section, name, value).replace('\n', line_end);
    let ranges = ranges(text, section, name);
    let after = match ranges.first() {
        Some(first) => {
            let at = first.start;
            let rest = remove_ranges(text, &ranges);
            let gap = if rest[at..].trim().is_empty() { "" } else { line_end };
            format!("{}{table}{gap}{}", &rest[..at], &rest[at..])
        }
        None => {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
            let gap = if text.trim().is_empty() { "" } else { line_end };
            format!("{text}{end}{gap}{table}")
        }
    };
    (parse_root(&after)? == expected).then_some(after)
}

/// Returns the text without the table `[section.name]`.
pub(super) fn remove_table(text: &str, section: &str, name: &str) -> Option<String> {
    let mut expected = parse_root(text)?;
    let tables = expected.get_mut(section)?.as_object_mut()?;
    tables.remove(name)?;
    // In TOML, a section without tables does not exist.
    if tables.is_empty() {
        expected.remove(section);
    }
    let after = remove_ranges(text, &ranges(text, section, name));
    let after = if after.trim().is_empty() { String::new() } else { after };
    let found = parse_root(&after)?;
    (found == expected).then_some(after)
}

/// Returns the table `[section.name]`.
pub(super) fn table(text: &str, section: &str, name: &str) -> Option<Value> {
    parse_root(text)?.get(section)?.get(name).cloned()
}

/// Formats the table as text: its own keys first, then its nested tables.
pub(super) fn table_text(section: &str, name: &str, value: &Value) -> String {
    let mut text = format!("[{}.{}]\n", format_key(section), format_key(name));
    let pairs: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
    for (name, value) in pairs.iter().filter(|(_, it)| !it.is_object()) {
        text.push_str(&format!("{} = {}\n", format_key(name), format_value(value)));
    }
    for (inner, value) in pairs.iter().filter(|(_, it)| it.is_object()) {
        text.push_str(&format!("\n[{}.{}.{}]\n", format_key(section), format_key(name), format_key(inner)));
        for (name, value) in value.as_object().into_iter().flatten() {
            text.push_str(&format!("{} = {}\n", format_key(name), format_value(value)));
        }
    }
    text
}

fn parse_root(text: &str) -> Option<Map<String, Value>> {
    match parse_toml(text) {
        Ok(Value::Object(table)) => Some(table),
        _ => None,
    }
}

/// Returns the ranges of the table and its nested tables: each from its header to the next header, without trailing
/// comments, which belong to the next table.
fn ranges(text: &str, section: &str, name: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut start, mut is_ours) = (0, false);
    let mut last = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if line.trim_start().starts_with('[') {
            is_ours = is_header(line, section, name);
            if is_ours {
                ranges.push(start..end);
                last = end;
            }
        } else if is_ours && !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            last = end;
        }
        if let Some(range) = ranges.last_mut().filter(|_| is_ours) {
            range.end = last;
        }
        start = end;
    }
    ranges
}

/// Checks whether a line is `[section.name]` or `[section.name.more]`.
fn is_header(line: &str, section: &str, name: &str) -> bool {
    let table = parse_root(line);
    table.is_some_and(|it| it.get(section).and_then(|it| it.get(name)).is_some_and(Value::is_object))
}

/// Removes these ranges from the text, and the blank lines after each.
fn remove_ranges(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = text.to_owned();
    for range in ranges.iter().rev() {
        let rest = &out[range.end..];
        let blank = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
        out.replace_range(range.start..range.end + blank, "");
    }
    out
}

fn format_key(name: &str) -> String {
    let is_bare =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if is_bare { name.to_owned() } else { format_string(name) }
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => format_string(text),
        Value::Array(items) => format!("[{}]", items.iter().map(format_value).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Formats a TOML basic string. JSON escapes are valid in it; only DEL needs an extra escape.
fn format_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TABLE: &str = "[s.n]\ncommand = \"w\"\nargs = [\"a\"]\n";

    #[test]
    fn setting_a_table_keeps_all_other_text() {
        let value = json!({"command": "w", "args": ["a"]});
        for (text, expected) in [
            ("", TABLE.to_owned()),
            ("# Mine.\nmodel = \"x\"", format!("# Mine.\nmodel = \"x\"\n\n{TABLE}")),
            (
                "[s.n]\nurl = \"u\" # old\n\n[s.n.env]\nA = \"b\"\n\n# about m\n[s.m]\ncommand = \"x\"\n",
                format!("{TABLE}\n# about m\n[s.m]\ncommand = \"x\"\n"),
            ),
            ("[s.m]\ncommand = \"x\"\n", format!("[s.m]\ncommand = \"x\"\n\n{TABLE}")),
        ] {
            let after = set_table(text, "s", "n", &value);
            assert_eq!(after.as_deref(), Some(expected.as_str()), "{text}");
        }
        for text in ["s = 1\n", "[s", "s = { m = { command = \"x\" } }\n"] {
            assert_eq!(set_table(text, "s", "n", &value), None, "{text}");
        }
    }

    #[test]
    fn removing_a_table_keeps_all_other_text() {
        for (text, expected) in [
            (format!("a = 1\n\n{TABLE}"), Some("a = 1\n\n")),
            (format!("{TABLE}\n# m\n[s.m]\nx = 1\n"), Some("# m\n[s.m]\nx = 1\n")),
            ("a = 1\n".to_owned(), None),
        ] {
            assert_eq!(remove_table(&text, "s", "n").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn nested_tables_follow_their_table() {
        let value = json!({"env": {"A B": "c\"d"}, "command": "w"});
        let expected = "[s.\"a b\"]\ncommand = \"w\"\n\n[s.\"a b\".env]\n\"A B\" = \"c\\\"d\"\n";
        assert_eq!(table_text("s", "a b", &value), expected);
        assert_eq!(set_table("", "s", "a b", &value).as_deref(), Some(expected));
    }
}
