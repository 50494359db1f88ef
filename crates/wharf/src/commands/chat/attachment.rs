//! Turns resources (`@URI`) and prompts (`/SOURCE:NAME`) of servers into messages for the model.

use crate::{
    app::Connections,
    arguments::TypedArguments,
    command_error::CommandError,
    commands::{
        prompt::{build_arguments, not_found_message},
        read::find_resource,
    },
};
use wharf_agent::message::{AnswerMessage, AnswerPart, Content, Message};
use wharf_mcp::model::{Block, Contents, Item, PromptMessage, PromptResult};

/// Maximum number of resources in a message.
const MAX_ATTACHMENTS: usize = 8;
/// Maximum size of a text, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Maximum size of an image in base64, in bytes: 5 MiB of data.
const MAX_IMAGE_BYTES: usize = 7 * 1024 * 1024;

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

/// Reads the resources that a message names, and returns the message with them. The error is for the user.
pub(super) async fn attach_resources(
    message: String,
    connections: &Connections,
) -> Result<Vec<Content>, String> {
    let is_listed = |uri: &str| connections.catalog.resources.iter().any(|it| it.item.uri == uri);
    let uris = mentioned_uris(&message, is_listed);
    if uris.len() > MAX_ATTACHMENTS {
        return Err(format!("a message can have {MAX_ATTACHMENTS} resources, not {}", uris.len()));
    }
    let mut content = vec![Content::Text(message)];
    for uri in uris {
        let (source, result) = match find_resource(connections, &uri).await {
            Ok(found) => found,
            Err(Some(fault)) => return Err(format!("`{uri}` cannot be read: {}", fault.cause)),
            Err(None) => return Err(format!("no server has a resource `{uri}`")),
        };
        for contents in result.contents {
            content.push(describe_contents(contents, &source)?);
        }
    }
    Ok(content)
}

fn describe_contents(contents: Item<Contents>, source: &str) -> Result<Content, String> {
    let Item::Valid(Contents { uri, mime_type, text, blob, .. }) = contents else {
        return Err(format!("`{source}` returned contents that cannot be read"));
    };
    let media_type = mime_type.unwrap_or_default();
    match (text, blob) {
        (Some(text), _) if text.len() > MAX_TEXT_BYTES => Err(format!("`{uri}` is longer than 1 MiB")),
        (Some(text), _) => Ok(Content::Text(fence(&uri, source, &text))),
        (None, Some(base64)) if base64.len() > MAX_IMAGE_BYTES => {
            Err(format!("`{uri}` is larger than 5 MiB"))
        }
        (None, Some(base64)) if media_type.starts_with("image/") => Ok(Content::Image { media_type, base64 }),
        (None, _) => Err(format!("`{uri}` is neither text nor an image")),
    }
}

/// Puts a text into a fenced block that names its URI and source. The fence is longer than any in the text.
fn fence(uri: &str, source: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("Resource {uri} of the server {source}:\n{fence}\n{text}\n{fence}")
}

/// Messages of a prompt: those before the last one, and the last one, which is the user's.
pub(super) struct PromptEntries {
    pub(super) earlier: Vec<Message>,
    pub(super) message: Vec<Content>,
}

/// Gets a prompt of a server as messages, marked with their source. The error is for the user.
pub(super) async fn get_prompt(
    name: &str,
    words: &[String],
    connections: &Connections,
) -> Result<PromptEntries, String> {
    let Some(entry) = connections.catalog.prompt(name) else {
        return Err(complaint(&not_found_message(connections, name)));
    };
    let typed =
        TypedArguments::read(None, words).map_err(|error| complaint(CommandError::from(error).to_text()))?;
    let arguments =
        build_arguments(&typed, name, &entry.prompt).map_err(|error| complaint(error.to_text()))?;
    let result = connections.handle.prompt(name, Some(&arguments), None).await;
    let result = PromptResult::read(&result.map_err(|fault| fault.message())?);
    let mark = format!("Prompt {}:{}", entry.source, entry.prompt.name);
    let messages = result.messages.into_iter().map(|it| match it {
        Item::Valid(message) => prompt_message(message, &mark),
        Item::Invalid(_, why) => Err(format!("the prompt cannot be used: {why}")),
    });
    let mut messages = messages.collect::<Result<Vec<_>, _>>()?;
    match messages.pop() {
        Some(Message::User(message)) => Ok(PromptEntries { earlier: messages, message }),
        _ => Err("the prompt does not end with a message of the user".to_owned()),
    }
}

/// Returns the first line of an error, without its label.
fn complaint(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn prompt_message(message: PromptMessage, mark: &str) -> Result<Message, String> {
    let content = match message.content {
        Item::Valid(Block::Text(text)) => Content::Text(text),
        Item::Valid(Block::Image { data, mime_type }) => {
            Content::Image { media_type: mime_type, base64: data }
        }
        Item::Valid(Block::Resource(Contents { uri, text: Some(text), .. })) => {
            Content::Text(fence(&uri, mark, &text))
        }
        _ => return Err("the prompt has content that the model cannot be shown".to_owned()),
    };
    Ok(match (message.role.as_str(), content) {
        ("assistant", Content::Text(text)) => Message::Answer(AnswerMessage {
            parts: vec![AnswerPart::Text { text, native: None }],
            model: mark.to_owned(),
        }),
        (_, content) => Message::User(vec![Content::Text(format!("[{mark}]")), content]),
    })
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

    #[test]
    fn a_text_cannot_leave_its_block() {
        let shown = fence("a://b", "s", "x\n````\ny");
        assert_eq!(shown, "Resource a://b of the server s:\n`````\nx\n````\ny\n`````");
    }
}
