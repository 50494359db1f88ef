//! The error that ends a command: for a person a message and a hint, for a program one JSON object.

use crate::{arguments::ArgumentError, content::printable, exit::Exit};
use serde_json::{Value, json};
use wharf_runtime::{
    Fault,
    config::{Diagnostics, Severity},
    project,
};

/// Why a command could not do its work.
#[derive(Clone, Debug)]
pub(crate) struct CommandError {
    pub(crate) exit: Exit,
    text: String,
    json: Value,
}

impl CommandError {
    /// What was typed cannot be used. A hint may follow the message after `\nhelp: `.
    pub(crate) fn usage(complaint: &str) -> CommandError {
        CommandError::new("MCPError", complaint, Exit::Usage)
    }

    /// A complaint under the name that programs know it by.
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

    /// The person, or the program that started us, wants us to end. The tool may have run.
    pub(crate) fn interrupted(exit: Exit) -> CommandError {
        let word = if exit == Exit::Terminated { "terminated" } else { "interrupted" };
        let json =
            json!({ "type": "MCPError", "message": word, "hint": null, "phase": "call", "sent": "unknown" });
        // A person who presses Ctrl-C knows.
        CommandError { exit, text: String::new(), json }
    }

    /// The first mistake of a file; the others are beside it.
    pub(crate) fn of_file(diagnostics: &Diagnostics) -> CommandError {
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

    /// An error that a gateway has put into JSON, so that it reads as if it had happened here.
    pub(crate) fn of_json(json: Value, exit: Exit) -> CommandError {
        let word = |key: &str| json[key].as_str().unwrap_or_default();
        let mut text = format!("error: {}: {}\n", word("type"), printable(word("message")));
        text.extend(word("stderr").lines().map(|it| format!("  | {}\n", printable(it))));
        if let Some(hint) = json["hint"].as_str() {
            text.push_str(&format!("help: {}\n", printable(hint)));
        }
        CommandError { exit, text, json }
    }

    /// The lines for a person.
    pub(crate) fn to_text(&self) -> &str {
        &self.text
    }

    /// The object for a program.
    pub(crate) fn to_json(&self) -> Value {
        self.json.clone()
    }
}

impl From<ArgumentError> for CommandError {
    fn from(error: ArgumentError) -> CommandError {
        vec![error].into()
    }
}

/// Several mistakes, as one error.
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

/// What went wrong with a server: what, its last words, what to do.
impl From<&Fault> for CommandError {
    fn from(fault: &Fault) -> CommandError {
        CommandError::of_json(project::error(fault), fault.kind.into())
    }
}
