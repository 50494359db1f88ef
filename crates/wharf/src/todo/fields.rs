//! Reads the arguments of a tool field by field. Collects all errors and names the field in each, so that a caller
//! can fix them all at once.
//!
//! `null` means the same as an absent field, because some callers fill in every parameter.

use jiff::civil::Date;
use serde_json::{Map, Value};
use wharf_store::Status;

/// Maximum length of a title or query, in characters.
const MAX_TITLE_CHARS: usize = 1_000;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 65_536;
/// Maximum length of a tag in characters, and maximum number of tags.
const TAG_LIMIT: usize = 100;

/// The arguments that have not been read yet, and the errors of those that have.
pub(super) struct ArgumentFields {
    unread: Map<String, Value>,
    errors: Vec<String>,
}

impl ArgumentFields {
    pub(super) fn of(arguments: Option<Value>) -> ArgumentFields {
        let (unread, errors) = match arguments {
            Some(Value::Object(unread)) => (unread, Vec::new()),
            None | Some(Value::Null) => (Map::new(), Vec::new()),
            Some(_) => (Map::new(), vec!["the arguments must be an object".to_owned()]),
        };
        ArgumentFields { unread, errors }
    }

    /// Accepts a second name for a field.
    pub(super) fn accept_alias(mut self, name: &str, alias: &str) -> ArgumentFields {
        if let Some(value) = self.unread.remove(alias).filter(|it| !it.is_null()) {
            match self.unread.get(name) {
                Some(known) if !known.is_null() && *known != value => {
                    self.add_error(format!("`{alias}` is an alias of `{name}`, but their values differ"));
                }
                _ => _ = self.unread.insert(name.to_owned(), value),
            }
        }
        self
    }

    /// Reads a required text, which must not be blank.
    pub(super) fn title(&mut self, name: &str) -> String {
        let given = self.unread.get(name).is_some_and(|it| !it.is_null());
        let title = self.new_title(name);
        if title.is_none() && !given {
            self.add_error(format!("`{name}` is missing"));
        }
        title.unwrap_or_default()
    }

    /// Reads an optional text, which must not be blank.
    pub(super) fn new_title(&mut self, name: &str) -> Option<String> {
        let text = self.text(name, MAX_TITLE_CHARS)?;
        if text.trim().is_empty() {
            self.add_error(format!("`{name}` must not be empty"));
        }
        Some(text)
    }

    /// Reads a longer text. An empty one is `Some(None)`.
    pub(super) fn description(&mut self) -> Option<Option<String>> {
        let text = self.text("description", MAX_DESCRIPTION_CHARS)?;
        Some(Some(text).filter(|it| !it.is_empty()))
    }

    pub(super) fn id(&mut self) -> i64 {
        let Some(value) = self.take("todo_id") else {
            self.add_error("`todo_id` is missing".to_owned());
            return 0;
        };
        integer(&value).filter(|it| *it >= 1).unwrap_or_else(|| {
            self.add_error(format!("`todo_id` must be a whole number from 1, and is {}", shown(&value)));
            0
        })
    }

    pub(super) fn priority(&mut self) -> Option<i64> {
        let value = self.take("priority")?;
        let priority = integer(&value).filter(|it| (1..=5).contains(it));
        if priority.is_none() {
            self.add_error(format!(
                "`priority` must be a whole number from 1 to 5, and is {}",
                shown(&value)
            ));
        }
        priority
    }

    pub(super) fn status(&mut self) -> Option<Status> {
        let value = self.take("status")?;
        let status = value.as_str().and_then(Status::named);
        if status.is_none() {
            let names = Status::ALL.map(Status::as_str).join(", ");
            self.add_error(format!("`status` must be one of {names}, and is {}", shown(&value)));
        }
        status
    }

    pub(super) fn tags(&mut self) -> Option<Vec<String>> {
        let value = self.take("tags")?;
        let Value::Array(values) = &value else {
            self.add_error(format!("`tags` must be a list of texts, and is {}", shown(&value)));
            return None;
        };
        if values.len() > TAG_LIMIT {
            self.add_error(format!("`tags` must be at most {TAG_LIMIT}, and are {}", values.len()));
            return None;
        }
        let mut tags: Vec<String> = Vec::new();
        for (place, value) in values.iter().enumerate() {
            match tag(value) {
                Ok(tag) if tags.contains(&tag) => {}
                Ok(tag) => tags.push(tag),
                Err(why) => self.add_error(format!("`tags[{place}]` {why}")),
            }
        }
        Some(tags)
    }

    /// Reads a date. It stays text, because that sorts chronologically.
    pub(super) fn date(&mut self, name: &str) -> Option<String> {
        let value = self.take(name)?;
        let date = value.as_str().and_then(date);
        if date.is_none() {
            let shown = shown(&value);
            self.add_error(format!("`{name}` must be a date that exists, as YYYY-MM-DD, and is {shown}"));
        }
        date
    }

    /// Reads a date. An empty text is `Some(None)`.
    pub(super) fn new_date(&mut self, name: &str) -> Option<Option<String>> {
        if self.unread.get(name).and_then(Value::as_str) == Some("") {
            self.unread.remove(name);
            return Some(None);
        }
        self.date(name).map(Some)
    }

    /// Returns all errors at once, including one for each unknown field.
    pub(super) fn finish(mut self, tool: &str) -> Result<(), String> {
        let unknown: Vec<String> = self.unread.keys().map(|it| format!("`{tool}` has no `{it}`")).collect();
        self.errors.extend(unknown);
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors.join("; ")) }
    }

    fn text(&mut self, name: &str, longest: usize) -> Option<String> {
        let value = self.take(name)?;
        let Value::String(text) = value else {
            self.add_error(format!("`{name}` must be a text, and is {}", shown(&value)));
            return None;
        };
        let length = text.chars().count();
        if length > longest {
            self.add_error(format!("`{name}` must have at most {longest} characters, and has {length}"));
        }
        if text.chars().any(is_forbidden_control) {
            self.add_error(format!(
                "`{name}` must not have control characters other than tabs and line ends"
            ));
        }
        Some(text)
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.unread.remove(name).filter(|it| !it.is_null())
    }

    fn add_error(&mut self, error: String) {
        self.errors.push(error);
    }
}

/// Checks that a date exists and is written as YYYY-MM-DD.
pub(super) fn date(text: &str) -> Option<String> {
    let form = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let fits = text.len() == 10 && text.bytes().enumerate().all(form);
    (fits && text.parse::<Date>().is_ok()).then(|| text.to_owned())
}

fn tag(value: &Value) -> Result<String, String> {
    let tag = value.as_str().ok_or_else(|| format!("must be a text, and is {}", shown(value)))?;
    match tag.trim() {
        "" => Err("must not be empty".to_owned()),
        tag if tag.chars().count() > TAG_LIMIT => Err(format!("must have at most {TAG_LIMIT} characters")),
        tag if tag.chars().any(char::is_control) => Err("must not have control characters".to_owned()),
        tag => Ok(tag.to_owned()),
    }
}

/// Reads an integer. `2.0` counts as one.
fn integer(value: &Value) -> Option<i64> {
    let from_float = |it: f64| (it.fract() == 0.0 && it.abs() < 9e15).then_some(it as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(from_float))
}

fn is_forbidden_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

/// Formats a value, truncated for an error message.
fn shown(value: &Value) -> String {
    const MAX_SHOWN_CHARS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_name_the_field() {
        for (arguments, expected) in [
            (json!({}), "`title` is missing"),
            (json!({"title": null}), "`title` is missing"),
            (json!({"title": " \n"}), "`title` must not be empty"),
            (json!({"title": 5}), "`title` must be a text, and is 5"),
            (
                json!({"title": "a\u{0}b"}),
                "`title` must not have control characters other than tabs and line ends",
            ),
            (json!({"title": "x".repeat(1001)}), "`title` must have at most 1000 characters, and has 1001"),
            (json!({"title": "x", "priority": 0}), "`priority` must be a whole number from 1 to 5, and is 0"),
            (
                json!({"title": "x", "priority": 2.5}),
                "`priority` must be a whole number from 1 to 5, and is 2.5",
            ),
            (
                json!({"title": "x", "priority": "high"}),
                "`priority` must be a whole number from 1 to 5, and is \"high\"",
            ),
            (json!({"title": "x", "tags": "a"}), "`tags` must be a list of texts, and is \"a\""),
            (json!({"title": "x", "tags": ["a", 1]}), "`tags[1]` must be a text, and is 1"),
            (json!({"title": "x", "tags": [" "]}), "`tags[0]` must not be empty"),
            (
                json!({"title": "x", "due_date": "2026-02-29"}),
                "`due_date` must be a date that exists, as YYYY-MM-DD, and is \"2026-02-29\"",
            ),
            (
                json!({"title": "x", "due_date": "tomorrow"}),
                "`due_date` must be a date that exists, as YYYY-MM-DD, and is \"tomorrow\"",
            ),
            (json!({"title": "x", "urgency": 1}), "`create_todo` has no `urgency`"),
            (json!([]), "the arguments must be an object; `title` is missing"),
        ] {
            let mut fields = ArgumentFields::of(Some(arguments.clone()));
            _ = (fields.title("title"), fields.priority(), fields.tags(), fields.date("due_date"));
            assert_eq!(fields.finish("create_todo"), Err(expected.to_owned()), "{arguments}");
        }
    }

    #[test]
    fn optional_fields_and_aliases_are_read() {
        let given = json!({"id": 3.0, "priority": null, "tags": [" a ", "a", "b"], "due_date": "", "description": ""});
        let mut fields = ArgumentFields::of(Some(given)).accept_alias("todo_id", "id");
        assert_eq!((fields.id(), fields.priority()), (3, None));
        assert_eq!(fields.tags(), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((fields.new_date("due_date"), fields.description()), (Some(None), Some(None)));
        assert_eq!(fields.finish("update_todo"), Ok(()));
    }

    #[test]
    fn conflicting_alias_is_rejected() {
        for (given, agrees) in
            [(json!({"id": 3, "todo_id": 3}), true), (json!({"id": 3, "todo_id": 4}), false)]
        {
            let mut fields = ArgumentFields::of(Some(given)).accept_alias("todo_id", "id");
            fields.id();
            assert_eq!(fields.finish("delete_todo").is_ok(), agrees);
        }
    }

    #[test]
    fn only_days_that_exist_are_dates() {
        for (text, exists) in [
            ("2024-02-29", true),
            ("0001-01-01", true),
            ("2026-02-29", false),
            ("2026-13-01", false),
            ("2026-1-1", false),
            ("20260101", false),
            ("2026-01-01T00:00", false),
            ("+002026-01", false),
            ("２０２６-01-01", false),
        ] {
            assert_eq!(date(text).is_some(), exists, "{text}");
        }
    }
}
