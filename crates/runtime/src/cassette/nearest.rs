//! Finds the recorded call that is most like a call that is not recorded, and how the two differ.

use serde_json::Value;
use std::fmt;

/// Maximum number of differing values that a miss shows.
const MAX_SHOWN_DIFFERENCES: usize = 5;

/// Maximum length of a shown value, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// A call that is not in the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The most similar recorded call: its line, and how the arguments differ.
    pub nearest: Option<(usize, Vec<String>)>,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            None => f.write_str("no call of this tool is recorded"),
            Some((line, differences)) if differences.is_empty() => {
                write!(f, "nearest: line {line}, which has been played already")
            }
            Some((line, differences)) => write!(f, "nearest: line {line}: {}", differences.join("; ")),
        }
    }
}

impl Miss {
    /// Finds the nearest of these calls, each with its line and its arguments: the one with the fewest differing values.
    pub(super) fn of(arguments: &Value, calls: impl Iterator<Item = (usize, Value)>) -> Miss {
        let compared = calls.map(|(line, recorded)| (line, differences(arguments, &recorded)));
        let nearest = compared.min_by_key(|(_, differences)| differences.len());
        Miss {
            nearest: nearest.map(|(line, mut differences)| {
                differences.truncate(MAX_SHOWN_DIFFERENCES);
                (line, differences)
            }),
        }
    }

    /// Returns the nearest call in lines of their own, one for each difference. Begins with a line break.
    pub fn to_lines(&self) -> String {
        match &self.nearest {
            Some((line, differences)) if !differences.is_empty() => {
                let lines = differences.iter().map(|it| format!("\n  nearest: line {line}     {it}"));
                lines.collect()
            }
            _ => format!("\n  {self}"),
        }
    }
}

/// Lists the values that differ, each with its pointer.
pub fn differences(found: &Value, recorded: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    compare("", Some(found), Some(recorded), &mut differences);
    differences
}

fn compare(path: &str, found: Option<&Value>, recorded: Option<&Value>, differences: &mut Vec<String>) {
    match (found, recorded) {
        (Some(found), Some(recorded)) if found == recorded => {}
        (Some(Value::Object(found)), Some(Value::Object(recorded))) => {
            let keys = found.keys().chain(recorded.keys().filter(|it| !found.contains_key(*it)));
            for key in keys {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(&path, found.get(key), recorded.get(key), differences);
            }
        }
        (Some(Value::Array(found)), Some(Value::Array(recorded))) => {
            for at in 0..found.len().max(recorded.len()) {
                compare(&format!("{path}/{at}"), found.get(at), recorded.get(at), differences);
            }
        }
        (found, recorded) => {
            differences.push(format!("{path} {}, recorded {}", shown(found), shown(recorded)));
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or("absent".to_owned(), Value::to_string);
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_have_pointers_and_short_values() {
        let found = json!({ "a/b": 1, "list": [1, 2], "new": "x".repeat(200) });
        let recorded = json!({ "a/b": 2, "list": [1], "old": null });
        let seen = differences(&found, &recorded);
        assert_eq!(seen[0], "/a~1b 1, recorded 2");
        assert_eq!(seen[1], "/list/1 2, recorded absent");
        assert!(seen[2].starts_with("/new \"xxx") && seen[2].ends_with("…, recorded absent"), "{seen:?}");
        assert_eq!(seen[3], "/old absent, recorded null");
    }
}
