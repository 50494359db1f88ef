//! Compares the answers of two versions to the same call.

use serde_json::{Map, Value, json};
use wharf_mcp::{
    Raw,
    model::{Block, CallResult, Item},
};
use wharf_runtime::{CallRecord, cassette::remove_pointer};

/// Maximum number of pointers that a difference names.
const MAX_POINTERS: usize = 5;

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnswerVerdict {
    /// The answers are equal.
    Same,
    /// The answers have the same members and types, with other values.
    Shape,
    /// The answers differ at these pointers.
    Differs(Vec<String>),
    /// At least one version failed. Says how.
    Error(String),
}

impl AnswerVerdict {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            AnswerVerdict::Same => "same",
            AnswerVerdict::Shape => "shape",
            AnswerVerdict::Differs(_) => "differs",
            AnswerVerdict::Error(_) => "error",
        }
    }
}

/// Compares two answers, without the values at the ignored pointers.
pub(super) fn compare_answers(old: &CallRecord, new: &CallRecord, ignored: &[String]) -> AnswerVerdict {
    let (before, after) = match (old.result(), new.result()) {
        (Some(before), Some(after)) => (before, after),
        (before, after) => {
            let version = |it: &CallRecord| it.fault().map(ToString::to_string).unwrap_or_default();
            return AnswerVerdict::Error(match (before, after) {
                (Some(_), _) => format!("new version: {}", version(new)),
                (None, Some(_)) => format!("locked version: {}", version(old)),
                (None, None) => format!("both versions: {}", version(new)),
            });
        }
    };
    let [mut before, mut after] = [before, after].map(|it| document(&it));
    for pointer in ignored {
        [&mut before, &mut after].into_iter().for_each(|it| remove_pointer(it, pointer));
    }
    compare_values(&before, &after)
}

fn compare_values(before: &Value, after: &Value) -> AnswerVerdict {
    if before == after {
        return AnswerVerdict::Same;
    }
    let mut pointers = Vec::new();
    find_differences("", Some(before), Some(after), &mut pointers);
    if pointers.is_empty() {
        return AnswerVerdict::Shape;
    }
    pointers.truncate(MAX_POINTERS);
    AnswerVerdict::Differs(pointers)
}

/// Lists the pointers at which one value is missing or has another type.
fn find_differences(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<String>) {
    let below = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let keys = before.keys().chain(after.keys().filter(|it| !before.contains_key(*it)));
            keys.for_each(|key| find_differences(&below(key), before.get(key), after.get(key), found));
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let count = before.len().max(after.len());
            (0..count).for_each(|at| {
                find_differences(&below(&at.to_string()), before.get(at), after.get(at), found);
            });
        }
        (Some(before), Some(after)) if std::mem::discriminant(before) == std::mem::discriminant(after) => {}
        _ => found.push(if path.is_empty() { "/".to_owned() } else { path.to_owned() }),
    }
}

/// Returns the structured content of a result; else its only text, as JSON if it is JSON; else all its content. Whether
/// the tool failed is part of it.
fn document(result: &Raw) -> Value {
    let read = CallResult::read(result);
    let is_error = read.is_error;
    let content = match (&read.structured, &read.content[..]) {
        (Some(structured), _) => structured.decode_or_default(),
        (None, [Item::Valid(Block::Text(text))]) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        _ => result.member("content").map(|it| it.decode_or_default::<Value>()).unwrap_or_default(),
    };
    if !is_error {
        return content;
    }
    let mut failed = Map::new();
    failed.insert("isError".to_owned(), json!(true));
    failed.insert("content".to_owned(), content);
    Value::Object(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_values_have_the_same_shape_and_other_members_differ() {
        let before = json!({ "now": "10:00", "zones": [{ "id": 1 }] });
        let rows = [
            (before.clone(), AnswerVerdict::Same),
            (json!({ "now": "10:01", "zones": [{ "id": 2 }] }), AnswerVerdict::Shape),
            (
                json!({ "now": "10:01", "zones": [{ "id": "2" }] }),
                AnswerVerdict::Differs(vec!["/zones/0/id".into()]),
            ),
            (json!({ "zones": [] }), AnswerVerdict::Differs(vec!["/now".into(), "/zones/0".into()])),
            (json!("text"), AnswerVerdict::Differs(vec!["/".into()])),
        ];
        for (after, expected) in rows {
            assert_eq!(compare_values(&before, &after), expected, "{after}");
        }
    }
}
