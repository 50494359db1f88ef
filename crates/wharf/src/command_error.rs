//! The error that ends a command: a message and a hint as text, or one JSON object.

use crate::{arguments::ArgumentError, content::printable, exit::Exit};
use serde_json::{Value, json};
use wharf_config::{Diagnostics, Severity};
use wharf_runtime::{Fault, views};

/// An error with its exit code, text form and JSON form.
#[derive(Clone, Debug)]
pub(crate) struct CommandError {
    pub(crate) exit: Exit,
    text: String,
    json: Value,
}

impl CommandError {
    /// Creates a usage error. A hint may follow the message after `\nhelp: `.
    pub(crate) fn usage(complaint: &str) -> CommandError {
        CommandError::new("MCPError", complaint, Exit::Usage)
    }

    /// Creates an error. `name` becomes its `type` in JSON.
    pub(crate) fn new(name: &str, complaint: &str, exit: Exit) -> CommandError {
        let complaint = complaint.trim_end();
        let complaint = complaint.strip_prefix("error: ").unwrap_or(complaint);
        let (message, hint) = match complaint.split_once("\nhelp: ") {
            Some((message, hint)) => (message, Some(hint)),
            None => (complaint, None),
        };
        let help = hint.map_or_else(String::new, |it| format!("help: {it}\n"));
        CommandError {
            exit,
            text: format!("error: {message}\n{help}"),
            json: json!({ "type": name, "message": message, "hint": hint }),
        }
    }

    /// Creates the error for a command that a signal interrupted. The tool may have run.
    pub(crate) fn interrupted(exit: Exit) -> CommandError {
        let word = if exit == Exit::Terminated { "terminated" } else { "interrupted" };
        let json =
            json!({ "type": "MCPError", "message": word, "hint": null, "phase": "call", "sent": "unknown" });
        // A user who presses Ctrl-C needs no message.
        CommandError { exit, text: String::new(), json }
    }

    /// Creates an error from the first error of a file. The caller reports the other diagnostics.
    pub(crate) fn from_diagnostics(diagnostics: &Diagnostics) -> CommandError {
        let first = diagnostics.items().iter().find(|it| it.severity == Severity::Error);
        let (name, message) = match first.map(|it| it.message.as_str()) {
            None => ("ConfigError", "the file cannot be used"),
            Some(message) => match message.split_once(": ") {
                Some((name, rest)) if name.ends_with("Error") => (name, rest),
                _ => ("ConfigError", message),
            },
        };
        let hint = first.and_then(|it| it.hint.as_ref());
        let json = json!({ "type": name, "message": message, "hint": hint });
        CommandError { exit: Exit::Usage, text: String::new(), json }
    }

    /// Creates an error from a gateway's JSON error. It has the same form as an error of a direct call.
    pub(crate) fn from_json(json: Value, exit: Exit) -> CommandError {
        let word = |key: &str| json[key].as_str().unwrap_or_default();
        let mut text = format!("error: {}: {}\n", word("type"), printable(word("message")));
        text.extend(word("stderr").lines().map(|it| format!("  | {}\n", printable(it))));
        if let Some(hint) = json["hint"].as_str() {
            text.push_str(&format!("help: {}\n", printable(hint)));
        }
        CommandError { exit, text, json }
    }

    /// Returns the text form.
    pub(crate) fn to_text(&self) -> &str {
        &self.text
    }

    /// Returns the JSON form.
    pub(crate) fn to_json(&self) -> Value {
        self.json.clone()
    }
}

impl From<ArgumentError> for CommandError {
    fn from(error: ArgumentError) -> CommandError {
        vec![error].into()
    }
}

/// Combines several argument errors into one.
impl From<Vec<ArgumentError>> for CommandError {
    fn from(errors: Vec<ArgumentError>) -> CommandError {
        let all = |part: fn(&ArgumentError) -> Option<&str>| {
            errors.iter().filter_map(part).collect::<Vec<_>>().join("; ")
        };
        let hint = Some(all(|it| it.hint.as_deref())).filter(|it| !it.is_empty());
        let message = all(|it| Some(&it.message));
        let lines = errors.iter().map(|ArgumentError { message, hint }| {
            let help = hint.as_ref().map_or_else(String::new, |it| format!("help: {it}\n"));
            format!("error: {message}\n{help}")
        });
        CommandError {
            exit: Exit::Usage,
            text: lines.collect(),
            json: json!({ "type": "MCPError", "message": message, "hint": hint }),
        }
    }
}

/// Converts a fault of a server: the error, its last stderr output and a hint.
impl From<&Fault> for CommandError {
    fn from(fault: &Fault) -> CommandError {
        CommandError::from_json(views::error(fault), fault.kind.into())
    }
}
