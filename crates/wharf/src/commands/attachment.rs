//! Reads what the user of `wharf run` and `wharf chat` adds to a message: files, and resources and prompts of servers.

use super::prompt::{build_arguments, not_found_message};
use crate::{
    app::Connections,
    arguments::TypedArguments,
    command_error::CommandError,
    exit::Exit,
    message_context::{MAX_ATTACHMENTS, UserMessage, file_attachment},
    message_reader::{MessageError, MessageReader},
};
use std::path::Path;
use wharf_agent::Attachment;

/// A file or a resource on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AttachedWord<'a> {
    /// A file of the user.
    File(&'a Path),
    /// A resource of a server.
    Resource(&'a str),
}

impl AttachedWord<'_> {
    /// Reads a word of the command line. A URI has `://`; everything else is a path, so that no server can take the
    /// place of a file.
    pub(super) fn parse(word: &str) -> AttachedWord<'_> {
        match word.contains("://") {
            true => AttachedWord::Resource(word),
            false => AttachedWord::File(Path::new(word)),
        }
    }
}

/// Reads files and resources in the order of the command line.
pub(super) async fn read_attachments(
    words: &[String],
    connections: &Connections,
) -> Result<Vec<Attachment>, CommandError> {
    check_count(words.len())?;
    let mut attachments = Vec::new();
    for word in words {
        match AttachedWord::parse(word) {
            AttachedWord::File(path) => {
                attachments.push(file_attachment(path).map_err(|why| CommandError::usage(&why))?);
            }
            AttachedWord::Resource(uri) => attachments.extend(read_resource(uri, connections).await?),
        }
    }
    Ok(attachments)
}

/// Reads the resources that a message names with `@`, and returns the message with them.
pub(super) async fn attach_resources(
    message: String,
    connections: &Connections,
) -> Result<UserMessage, CommandError> {
    let is_listed = |uri: &str| connections.catalog.resources.iter().any(|it| it.item.uri == uri);
    let uris = mentioned_uris(&message, is_listed);
    check_count(uris.len())?;
    let mut message = UserMessage::of_text(message);
    for uri in uris {
        message.attachments.extend(read_resource(&uri, connections).await?);
    }
    Ok(message)
}

/// Gets a prompt of a server as messages.
pub(super) async fn get_prompt(
    name: &str,
    words: &[String],
    connections: &Connections,
) -> Result<UserMessage, CommandError> {
    let not_found = || CommandError::new("MCPError", &not_found_message(connections, name), Exit::NotFound);
    let entry = connections.catalog.prompt(name).ok_or_else(not_found)?;
    let typed = TypedArguments::read(None, words)?;
    let arguments = build_arguments(&typed, name, &entry.prompt)?;
    reader(connections).prompt(name, &arguments).await.map_err(CommandError::from)
}

fn check_count(count: usize) -> Result<(), CommandError> {
    match count > MAX_ATTACHMENTS {
        true => {
            let complaint = format!("a message can have {MAX_ATTACHMENTS} attachments, not {count}");
            Err(CommandError::usage(&complaint))
        }
        false => Ok(()),
    }
}

async fn read_resource(uri: &str, connections: &Connections) -> Result<Vec<Attachment>, CommandError> {
    reader(connections).resource(uri, None).await.map_err(CommandError::from)
}

fn reader(connections: &Connections) -> MessageReader<'_> {
    MessageReader { handle: &connections.handle, catalog: &connections.catalog, caller: None }
}

impl From<MessageError> for CommandError {
    fn from(error: MessageError) -> CommandError {
        let (complaint, exit) = match error {
            MessageError::NoResource(uri) => (format!("no server has a resource `{uri}`"), Exit::NotFound),
            MessageError::Resource(uri, fault) => {
                let exit = if fault.rpc.is_some() { Exit::NotFound } else { fault.kind.into() };
                (format!("`{uri}` cannot be read: {}", fault.cause), exit)
            }
            MessageError::Prompt(fault) => return CommandError::from(&*fault),
            MessageError::Content(error) => (error.message().to_owned(), Exit::Protocol),
        };
        CommandError::new("MCPError", &complaint, exit)
    }
}

/// Returns the URIs that a message names with `@`.
fn mentioned_uris(message: &str, is_listed: impl Fn(&str) -> bool) -> Vec<String> {
    let mut uris: Vec<String> = Vec::new();
    for word in message.split_whitespace() {
        let Some(uri) = word.strip_prefix('@') else { continue };
        let trimmed = uri.trim_end_matches(['.', ',', ';', '?', '!', ')']);
        let uri = if is_listed(uri) { uri } else { trimmed };
        let is_uri = is_listed(uri) || uri.split_once("://").is_some_and(|(scheme, _)| !scheme.is_empty());
        if is_uri && !uris.iter().any(|it| it == uri) {
            uris.push(uri.to_owned());
        }
    }
    uris
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_an_at_sign_name_resources() {
        let listed = |uri: &str| uri == "note" || uri == "todo://1.";
        for (message, expected) in [
            ("@todo://2, and @todo://2?", vec!["todo://2"]),
            ("see @todo://1. or @note", vec!["todo://1.", "note"]),
            ("mail me@example.com or @somebody", vec![]),
        ] {
            assert_eq!(mentioned_uris(message, listed), expected, "{message}");
        }
    }
}
