//! Reads the message of the user: text, a prompt of a server, and what is attached to it.

use crate::{
    app::Connections,
    cli::RunArgs,
    command_error::CommandError,
    commands::attachment::{get_prompt, read_attachments},
    exit::Exit,
    message_context::UserMessage,
};
use std::io::{self, IsTerminal, Read};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: u64 = 64 * 1024;

/// Returns the text of the message: the argument, or standard input. `None` if a prompt takes its place.
pub(super) fn read_text(args: &RunArgs) -> Result<Option<String>, CommandError> {
    if !args.prompt.is_empty() {
        return Ok(None);
    }
    let text = match args.message.as_deref() {
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
    Ok(Some(clean))
}

/// Returns the whole message: the text or the prompt, and the attachments.
pub(super) async fn complete(
    text: Option<String>,
    args: &RunArgs,
    connections: &Connections,
) -> Result<UserMessage, CommandError> {
    let mut message = match (text, args.prompt.split_first()) {
        (None, Some((name, words))) => get_prompt(name, words, connections).await?,
        (text, _) => UserMessage::of_text(text.unwrap_or_default()),
    };
    message.attachments = read_attachments(&args.attach, connections).await?;
    Ok(message)
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
