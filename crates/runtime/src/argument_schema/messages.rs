//! Formats validation errors: the path and the message. Long values are truncated.

use super::{
    ArgumentError,
    node::{Bound, Types},
};
use serde_json::Value;
use std::{
    fmt::{self, Display},
    iter,
};

/// Maximum number of characters of a value or name to show.
const MAX_SHOWN_CHARS: usize = 60;
/// Maximum number of values to list.
const MAX_LISTED_VALUES: usize = 6;
/// Maximum number of path steps to show. Of a longer path only the last ones are shown.
const MAX_PATH_STEPS: usize = 12;
/// Maximum length of a JSON pointer, in bytes. A longer one ends at an ancestor of the value.
const MAX_POINTER_BYTES: usize = 1024;

/// Path of a value within the arguments. The chain lives on the stack and costs nothing until it is formatted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValuePath<'a> {
    up: Option<(&'a ValuePath<'a>, PathStep<'a>)>,
    pub(super) depth: usize,
}

#[derive(Clone, Copy, Debug)]
enum PathStep<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> ValuePath<'a> {
    pub(super) const ROOT: ValuePath<'static> = ValuePath { up: None, depth: 0 };

    pub(super) fn member(&'a self, name: &'a str) -> ValuePath<'a> {
        ValuePath { up: Some((self, PathStep::Member(name))), depth: self.depth + 1 }
    }

    pub(super) fn item(&'a self, at: usize) -> ValuePath<'a> {
        ValuePath { up: Some((self, PathStep::Item(at))), depth: self.depth + 1 }
    }

    /// Returns the path as a JSON pointer (RFC 6901) into the arguments.
    fn pointer(&self) -> String {
        let steps: Vec<PathStep<'_>> =
            iter::successors(self.up, |(up, _)| up.up).map(|(_, step)| step).collect();
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            let step = match step {
                PathStep::Item(at) => at.to_string(),
                PathStep::Member(name) => name.replace('~', "~0").replace('/', "~1"),
            };
            if pointer.len() + step.len() >= MAX_POINTER_BYTES {
                break;
            }
            pointer.extend(["/", &step]);
        }
        pointer
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, left: usize) -> fmt::Result {
        let Some((up, step)) = self.up else { return f.write_str("arguments") };
        if left == 0 {
            return f.write_str("arguments…");
        }
        up.write(f, left - 1)?;
        match step {
            PathStep::Item(at) => write!(f, "[{at}]"),
            PathStep::Member(name) if is_plain(name) => write!(f, ".{name}"),
            PathStep::Member(name) => write!(f, "[{}]", quoted(name)),
        }
    }
}

impl Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, MAX_PATH_STEPS)
    }
}

fn is_plain(name: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
    !name.is_empty() && name.len() <= MAX_SHOWN_CHARS && name.chars().all(is_letter)
}

/// One error, with the data needed to compare it to others.
#[derive(Debug)]
pub(super) struct ValidationError {
    path: String,
    pointer: String,
    depth: usize,
    kind: ValidationErrorKind,
    message: String,
}

/// Kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValidationErrorKind {
    /// The value does not have one of these types.
    Type(Types),
    /// The value is not one of the allowed ones.
    Value,
    /// Any other error.
    Other,
}

impl ValidationError {
    pub(super) fn new(at: &ValuePath<'_>, kind: ValidationErrorKind, message: String) -> ValidationError {
        ValidationError { path: at.to_string(), pointer: at.pointer(), depth: at.depth, kind, message }
    }

    /// Returns how much this error speaks against the alternative at `depth`. A wrong type means that the alternative
    /// was not meant. A wrong type or value in a direct member probably does too, because such members distinguish
    /// alternatives.
    pub(super) fn weight(&self, depth: usize) -> usize {
        match self.kind {
            ValidationErrorKind::Type(_) if self.depth == depth => 1000,
            ValidationErrorKind::Type(_) | ValidationErrorKind::Value if self.depth <= depth + 1 => 10,
            _ => 1,
        }
    }

    /// Returns the types that were expected at `depth`.
    pub(super) fn expected(&self, depth: usize) -> Option<Types> {
        match self.kind {
            ValidationErrorKind::Type(types) if self.depth == depth => Some(types),
            _ => None,
        }
    }

    /// Rewords an error about the name of a member.
    pub(super) fn about_name(self) -> ValidationError {
        ValidationError {
            message: format!("has a name that {}", self.message),
            kind: ValidationErrorKind::Other,
            ..self
        }
    }

    pub(super) fn into_argument_error(self) -> ArgumentError {
        ArgumentError { path: self.path, pointer: self.pointer, message: self.message }
    }
}

/// Formats `is a string, but an integer is expected`.
pub(super) fn wrong_type(value: &Value, expected: Types) -> String {
    format!("is {}, but {} is expected", kind(value), expected.in_words())
}

/// Formats `is "red", but one of "blue", "green" is expected`.
pub(super) fn not_among(value: &Value, all: &[Value]) -> String {
    let listed: Vec<String> = all.iter().take(MAX_LISTED_VALUES).map(shown).collect();
    let more = all.len().saturating_sub(MAX_LISTED_VALUES);
    let (listed, value) = (listed.join(", "), shown(value));
    match (all.len(), more) {
        (1, _) => format!("is {value}, but {listed} is expected"),
        (_, 0) => format!("is {value}, but one of {listed} is expected"),
        _ => format!("is {value}, but one of {listed} and {more} more is expected"),
    }
}

/// Formats `is 7, but at most 5 is allowed`.
pub(super) fn out_of_bounds(value: &Value, bound: Bound, limit: impl Display) -> String {
    let limit = match bound {
        Bound::AtLeast => format!("at least {limit} is required"),
        Bound::AtMost => format!("at most {limit} is allowed"),
        Bound::MoreThan => format!("more than {limit} is required"),
        Bound::LessThan => format!("less than {limit} is required"),
    };
    format!("is {}, but {limit}", shown(value))
}

/// Formats `has 1 item, but at least 2 are required`.
pub(super) fn too_few(count: usize, what: [&str; 2], limit: u64) -> String {
    format!("has {}, but at least {limit} {} required", counted(count, what), is_or_are(limit))
}

/// Formats `has 3 items, but at most 2 are allowed`.
pub(super) fn too_many(count: usize, what: [&str; 2], limit: u64) -> String {
    format!("has {}, but at most {limit} {} allowed", counted(count, what), is_or_are(limit))
}

fn counted(count: usize, [one, many]: [&str; 2]) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn is_or_are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Describes a value by its type. A number is shown itself, because `1.5` best explains why it is not an integer.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Formats a value for a message. Objects and arrays are described by their type.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Bool(it) => it.to_string(),
        other => kind(other),
    }
}

/// Formats a text in quotes, truncated.
pub(super) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN_CHARS + 1).collect();
    shorten(&Value::from(short).to_string())
}

/// Truncates a text.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MAX_SHOWN_CHARS - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_formatted_like_code() {
        let items = ValuePath::ROOT.member("items");
        let third = items.item(2);
        assert_eq!(third.member("due_date").to_string(), "arguments.items[2].due_date");
        assert_eq!(third.member("a b").to_string(), r#"arguments.items[2]["a b"]"#);
        assert_eq!(ValuePath::ROOT.member("").to_string(), r#"arguments[""]"#);
        let long = "x".repeat(1000);
        assert!(ValuePath::ROOT.member(&long).to_string().chars().count() <= 9 + 2 + MAX_SHOWN_CHARS);
    }

    #[test]
    fn long_values_are_shortened() {
        let long = shown(&Value::from("\u{1}".repeat(500)));
        assert_eq!(long.chars().count(), MAX_SHOWN_CHARS);
        assert!(long.ends_with('…'), "{long}");
        assert_eq!(shown(&Value::from("short")), "\"short\"");
    }
}
