//! The error that ends a command: for a person a message and a hint, for a program one JSON object.

use crate::{arguments::ArgumentError, exit::Exit};
use serde_json::{Value, json};

/// Why a command could not do its work.
#[derive(Clone, Debug)]
pub(crate) struct CommandError {
    /// The name of the error, for programs.
    pub(crate) name: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
}

impl CommandError {
    /// What was typed cannot be used. A hint may follow the message after `\nhelp: `.
    pub(crate) fn usage(complaint: &str) -> CommandError {
        CommandError::new("MCPError", complaint, Exit::Usage)
    }

    pub(crate) fn new(name: &'static str, complaint: &str, exit: Exit) -> CommandError {
        let (message, hint) = match complaint.trim_end().split_once("\nhelp: ") {
            Some((message, hint)) => (message, Some(hint.to_owned())),
            None => (complaint.trim_end(), None),
        };
        CommandError { name, message: message.to_owned(), hint, exit }
    }

    /// The lines for a person.
    pub(crate) fn to_text(&self) -> String {
        let hint = self.hint.as_ref().map_or_else(String::new, |it| format!("help: {it}\n"));
        format!("error: {}\n{hint}", self.message)
    }

    /// The object for a program.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "type": self.name, "message": self.message, "hint": self.hint })
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
        CommandError { name: "MCPError", message: all(|it| Some(&it.message)), hint, exit: Exit::Usage }
    }
}
