//! Reads what the user of `wharf run` and `wharf chat` adds to a message: files, and resources and prompts of servers.

use super::{
    prompt::{build_arguments, not_found_message},
    read::find_resource,
};
use crate::{
    app::Connections,
    arguments::TypedArguments,
    command_error::CommandError,
    exit::Exit,
    message_context::{MAX_ATTACHMENTS, PromptEntries, file_content, prompt_entries, resource_content},
};
use std::path::Path;
use wharf_agent::message::Content;
use wharf_mcp::model::PromptResult;

/// A file or a resource on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attachment<'a> {
    /// A file of the user.
    File(&'a Path),
    /// A resource of a server.
    Resource(&'a str),
}

impl Attachment<'_> {
    /// Reads a word of the command line. A URI has `://`; everything else is a path, so that no server can take the
    /// place of a file.
    pub(super) fn parse(word: &str) -> Attachment<'_> {
        if word.contains("://") { Attachment::Resource(word) } else { Attachment::File(Path::new(word)) }
    }
}

/// Reads files and resources in the order of the command line.
pub(super) async fn read_attachments(
    words: &[String],
    connections: &Connections,
) -> Result<Vec<Content>, CommandError> {
    check_count(words.len())?;
    let mut content = Vec::new();
    for word in words {
        match Attachment::parse(word) {
            Attachment::File(path) => {
                content.push(file_content(path).map_err(|why| CommandError::usage(&why))?);
            }
            Attachment::Resource(uri) => content.extend(read_resource(uri, connections).await?),
        }
    }
    Ok(content)
}

/// Reads the resources that a message names with `@`, and returns the message with them.
pub(super) async fn attach_resources(
    message: String,
    connections: &Connections,
) -> Result<Vec<Content>, CommandError> {
    let is_listed = |uri: &str| connections.catalog.resources.iter().any(|it| it.item.uri == uri);
    let uris = mentioned_uris(&message, is_listed);
    check_count(uris.len())?;
    let mut content = vec![Content::Text(message)];
    for uri in uris {
        content.extend(read_resource(&uri, connections).await?);
    }
    Ok(content)
}

/// Gets a prompt of a server as messages.
pub(super) async fn get_prompt(
    name: &str,
    words: &[String],
    connections: &Connections,
) -> Result<PromptEntries, CommandError> {
    let not_found = || CommandError::new("MCPError", &not_found_message(connections, name), Exit::NotFound);
    let entry = connections.catalog.prompt(name).ok_or_else(not_found)?;
    let typed = TypedArguments::read(None, words)?;
    let arguments = build_arguments(&typed, name, &entry.prompt)?;
    let result = connections.handle.prompt(name, Some(&arguments), None).await;
    let result = PromptResult::read(&result.map_err(|fault| CommandError::from(&*fault))?);
    let of = (entry.source.as_str(), entry.prompt.name.as_str());
    prompt_entries(result, of).map_err(|why| CommandError::new("MCPError", &why, Exit::Protocol))
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

async fn read_resource(uri: &str, connections: &Connections) -> Result<Vec<Content>, CommandError> {
    let error = |complaint: String, exit| CommandError::new("MCPError", &complaint, exit);
    let (source, result) = find_resource(connections, uri).await.map_err(|fault| match fault {
        None => error(format!("no server has a resource `{uri}`"), Exit::NotFound),
        Some(fault) => {
            let exit = if fault.rpc.is_some() { Exit::NotFound } else { fault.kind.into() };
            error(format!("`{uri}` cannot be read: {}", fault.cause), exit)
        }
    })?;
    resource_content(result, &source).map_err(|why| error(why, Exit::Protocol))
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
