//! Compares definitions: what changed, and how much it matters.

use super::{
    difference::{Difference, DifferenceKind as Kind},
    resolve_references::resolve_references,
    schema_compare::{Direction, compare_schemas},
};
use serde_json::{Map, Value};
use wharf_config::is_invisible;

/// The hints of a tool: name, default, and the value that promises more.
const HINTS: [(&str, bool, bool); 4] = [
    ("readOnlyHint", false, true),
    ("idempotentHint", false, true),
    ("destructiveHint", true, false),
    ("openWorldHint", true, false),
];

/// Compares two definitions of a tool. Different definitions give at least one difference that is not a note.
pub fn compare_tools(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    compare(before, after, |before, after, found| {
        for (key, old, new) in changed_members(before, after) {
            match key {
                "annotations" => compare_annotations(old, new, found),
                "inputSchema" | "outputSchema" => {
                    let direction = if key == "inputSchema" { Direction::Input } else { Direction::Output };
                    let start = found.len();
                    match (old, new) {
                        (Some(old), Some(new)) => {
                            let (old, new) = (resolve_references(old), resolve_references(new));
                            compare_schemas(direction, &old, &new, found);
                        }
                        (None, Some(_)) if direction == Direction::Output => {
                            found.push(Difference::new("result:", Kind::OutputAdded, None, None));
                        }
                        (Some(_), None) if direction == Direction::Output => {
                            found.push(Difference::new("result:", Kind::OutputRemoved, None, None));
                        }
                        (old, new) => found.push(Difference::new(key, Kind::SchemaChanged, old, new)),
                    }
                    if found.len() == start {
                        // Only the way in which the schema is written changed, for example its references.
                        found.push(Difference::new(key, Kind::SchemaChanged, None, None));
                    }
                }
                _ => compare_member(key, key, old, new, found),
            }
        }
    })
}

/// Compares two definitions of a prompt or a resource template.
pub fn compare_items(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    compare(before, after, |before, after, found| {
        for (key, old, new) in changed_members(before, after) {
            compare_member(key, key, old, new, found);
        }
    })
}

/// Compares two instructions of a server.
pub fn compare_instructions(before: Option<&str>, after: Option<&str>) -> Vec<Difference> {
    let value = |text: Option<&str>| text.map(|it| Value::String(it.to_owned()));
    let mut found = Vec::new();
    if before != after {
        let (before, after) = (value(before), value(after));
        compare_text("instructions", before.as_ref(), after.as_ref(), &mut found);
    }
    found
}

fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    members: impl Fn(&Map<String, Value>, &Map<String, Value>, &mut Vec<Difference>),
) -> Vec<Difference> {
    let mut found = Vec::new();
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => members(before, after, &mut found),
        (None, Some(after)) => {
            found.push(Difference::new("", Kind::ToolAdded, None, Some(after)));
            find_hidden_characters("", None, after, &mut found);
        }
        (Some(before), None) => found.push(Difference::new("", Kind::ToolRemoved, Some(before), None)),
        (before, after) => found.push(Difference::new("", Kind::SchemaChanged, before, after)),
    }
    found
}

/// Returns the members that differ, in the order of their names.
pub(super) fn changed_members<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
) -> Vec<(&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let mut keys: Vec<&String> =
        before.keys().chain(after.keys().filter(|it| !before.contains_key(*it))).collect();
    keys.sort();
    let pairs = keys.into_iter().map(|key| (key.as_str(), before.get(key), after.get(key)));
    pairs.filter(|(_, before, after)| before != after).collect()
}

/// Compares any member: texts by their words, objects and lists of the same length by their parts.
fn compare_member(
    path: &str,
    key: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (before, after) {
        _ if matches!(key, "title" | "description" | "instructions") => {
            compare_text(path, before, after, found);
        }
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for (key, before, after) in changed_members(before, after) {
                compare_member(&format!("{path}/{key}"), key, before, after, found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate().filter(|(_, (a, b))| a != b) {
                compare_member(&format!("{path}/{at}"), "", Some(before), Some(after), found);
            }
        }
        (before, after) => found.push(Difference::new(path, Kind::SchemaChanged, before, after)),
    }
}

/// Reports a changed text, and characters in it that people do not see.
pub(super) fn compare_text(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    found.push(Difference::new(path, Kind::TextChanged, before, after));
    if let Some(after) = after {
        find_hidden_characters(path, before, after, found);
    }
}

/// Reports texts that have invisible characters which the earlier text does not have.
fn find_hidden_characters(path: &str, before: Option<&Value>, after: &Value, found: &mut Vec<Difference>) {
    match after {
        Value::String(text) => {
            let earlier = before.and_then(Value::as_str).unwrap_or_default();
            let is_new =
                |c: char| is_invisible(c) && !matches!(c, '\n' | '\t' | '\r') && !earlier.contains(c);
            if text.chars().any(is_new) {
                found.push(Difference::new(path, Kind::HiddenCharacters, before, Some(after)));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                find_hidden_characters(&format!("{path}/{at}"), None, item, found);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                find_hidden_characters(&format!("{path}/{key}"), None, value, found);
            }
        }
        _ => {}
    }
}

fn compare_annotations(before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    let empty = Map::new();
    let object = |it: Option<&Value>| match it {
        None => Some(empty.clone()),
        Some(Value::Object(members)) => Some(members.clone()),
        Some(_) => None,
    };
    let (Some(old), Some(new)) = (object(before), object(after)) else {
        return found.push(Difference::new("annotations", Kind::SchemaChanged, before, after));
    };
    let start = found.len();
    for (key, before, after) in changed_members(&old, &new) {
        match HINTS.iter().find(|it| it.0 == key) {
            Some((_, default, good)) => {
                let is_good = after.map_or(*default == *good, |it| *it == Value::Bool(*good));
                let kind = if is_good { Kind::HintBetter } else { Kind::HintWorse };
                found.push(Difference::new(key, kind, before, after));
            }
            None => compare_member(&format!("annotations/{key}"), key, before, after, found),
        }
    }
    if found.len() == start {
        // Empty annotations appeared or disappeared.
        found.push(Difference::new("annotations", Kind::SchemaChanged, before, after));
    }
}
