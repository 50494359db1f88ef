//! Reads VS Code's `inputs`: values that it asks the user for. Servers refer to them as `${input:id}`.

use super::note::{Note, printable};
use serde_json::Value;

/// The inputs of a file.
#[derive(Default)]
pub(super) struct Inputs(Vec<Input>);

/// One value to ask the user for.
pub(super) struct Input {
    id: String,
    /// Explanation for the user who fills in the value.
    pub(super) comment: String,
    pub(super) default: Option<String>,
}

impl Inputs {
    pub(super) fn read(value: Option<Value>, notes: &mut Vec<Note>) -> Inputs {
        let items = match value {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                notes.push(Note::general("`inputs` is not a list and was left out"));
                Vec::new()
            }
        };
        let (mut inputs, mut unreadable) = (Vec::new(), 0);
        for item in &items {
            match Input::read(item) {
                Some(input) => inputs.push(input),
                None => unreadable += 1,
            }
        }
        if unreadable > 0 {
            notes.push(Note::general(format!("{unreadable} of `inputs` had no `id` and was left out")));
        }
        Inputs(inputs)
    }

    pub(super) fn find(&self, id: &str) -> Option<&Input> {
        self.0.iter().find(|it| it.id == id)
    }
}

impl Input {
    fn read(value: &Value) -> Option<Input> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let default = match value.get("default") {
            None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        let mut comment = text("description").unwrap_or_default().to_owned();
        let choices = choices(value.get("options"));
        if !choices.is_empty() {
            comment = format!("{comment} (one of: {choices})");
        }
        if let Some(command) = text("command") {
            comment = format!("{comment} (VS Code asked its command {command})");
        }
        Some(Input {
            id: text("id").filter(|it| !it.is_empty())?.to_owned(),
            comment: printable(comment.trim()),
            default,
        })
    }
}

/// Returns the values of a pick list, whose options are strings or objects with a `value`.
fn choices(options: Option<&Value>) -> String {
    let options = options.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let word = |it: &Value| it.as_str().or_else(|| it.get("value")?.as_str()).map(str::to_owned);
    options.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn inputs_are_read() {
        let mut notes = Vec::new();
        let inputs = Inputs::read(
            Some(json!([
                {"id": "a", "type": "promptString", "description": "A key", "password": true},
                {"id": "b", "type": "pickString", "options": ["x", {"label": "Y", "value": "y"}], "default": "x"},
                {"id": "c", "type": "command", "command": "ext.pick", "default": 7},
                {"type": "promptString"}, 5,
            ])),
            &mut notes,
        );
        let seen = |id: &str| {
            let input = inputs.find(id).expect(id);
            (input.comment.as_str(), input.default.as_deref())
        };
        assert_eq!(seen("a"), ("A key", None));
        assert_eq!(seen("b"), ("(one of: x, y)", Some("x")));
        assert_eq!(seen("c"), ("(VS Code asked its command ext.pick)", Some("7")));
        assert!(inputs.find("d").is_none());
        assert_eq!(notes, [Note::general("2 of `inputs` had no `id` and was left out")]);
        Inputs::read(Some(json!({"a": 1})), &mut notes);
        assert_eq!(notes[1].to_string(), "`inputs` is not a list and was left out");
    }
}
