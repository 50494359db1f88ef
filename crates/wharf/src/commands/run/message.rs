//! Reads the message of the user.

use crate::{command_error::CommandError, exit::Exit};
use std::io::{self, IsTerminal, Read};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: u64 = 64 * 1024;

/// Returns the message: the argument, or standard input.
pub(super) fn read(argument: Option<&str>) -> Result<String, CommandError> {
    let text = match argument {
        Some(text) if text != "-" => text.to_owned(),
        None if io::stdin().is_terminal() => {
            return Err(CommandError::usage("there is no message\nhelp: write it after `wharf run`"));
        }
        _ => read_standard_input()?,
    };
    if text.len() as u64 > MAX_MESSAGE_BYTES {
        return Err(CommandError::usage("the message is longer than 64 KiB"));
    }
    let clean: String =
        text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t' | '\r')).collect();
    if clean.trim().is_empty() {
        return Err(CommandError::usage("the message is empty"));
    }
    Ok(clean)
}

fn read_standard_input() -> Result<String, CommandError> {
    let mut text = String::new();
    match io::stdin().lock().take(MAX_MESSAGE_BYTES + 1).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => {
            let complaint = format!("standard input cannot be read: {error}");
            Err(CommandError::new("MCPError", &complaint, Exit::Usage))
        }
    }
}
