//! Turns files, and resources and prompts of servers, into messages for the model.
//!
//! A text of a server is always in a block, or after a line, that names where it is from. Nothing here reads a server.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::StatusCode;
use std::path::Path;
use wharf_agent::{
    Attachment, check_image, fence,
    message::{AnswerMessage, AnswerPart, Content, Message},
};
use wharf_config::read_regular;
use wharf_mcp::model::{Block, Contents, Item, PromptMessage, PromptResult, ReadResult};

/// Maximum number of files and resources in a message.
pub(crate) const MAX_ATTACHMENTS: usize = 8;
/// Maximum size of a text, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Maximum size of an image, in bytes.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// Beginnings of the image formats that models know, and their media types. `?` stands for any byte.
const IMAGE_FORMATS: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF????WEBP", "image/webp"),
];

/// A message of the user, and what belongs to it.
#[derive(Debug, Default)]
pub(crate) struct UserMessage {
    /// Messages of a prompt before the last one.
    pub(crate) earlier: Vec<Message>,
    /// The message: a text, or the last message of a prompt.
    pub(crate) content: Vec<Content>,
    pub(crate) attachments: Vec<Attachment>,
}

/// Reason why the model cannot be shown something. The text is for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentError {
    /// It is larger than a message may contain.
    TooLarge(String),
    /// The model cannot be shown it.
    Unusable(String),
}

impl UserMessage {
    /// Returns a message that is a text.
    pub(crate) fn of_text(text: String) -> UserMessage {
        UserMessage { content: vec![Content::Text(text)], ..UserMessage::default() }
    }
}

impl ContentError {
    /// Returns the HTTP status for a client.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            ContentError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            ContentError::Unusable(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            ContentError::TooLarge(message) | ContentError::Unusable(message) => message,
        }
    }
}

/// Returns the contents of a resource.
pub(crate) fn resource_attachments(
    result: ReadResult,
    source: &str,
) -> Result<Vec<Attachment>, ContentError> {
    result.contents.into_iter().map(|it| describe_contents(it, source)).collect()
}

fn describe_contents(contents: Item<Contents>, source: &str) -> Result<Attachment, ContentError> {
    let Item::Valid(Contents { uri, mime_type, text, blob, .. }) = contents else {
        return Err(ContentError::Unusable(format!("`{source}` returned contents that cannot be read")));
    };
    let media_type = mime_type.unwrap_or_default();
    let content = match (text, blob) {
        (Some(text), _) if text.len() > MAX_TEXT_BYTES => {
            return Err(ContentError::TooLarge(format!("`{uri}` is longer than 1 MiB")));
        }
        (Some(text), _) => Content::Text(text),
        (None, Some(base64)) if is_over_image_limit(&base64) => {
            return Err(ContentError::TooLarge(format!("`{uri}` is larger than 5 MiB")));
        }
        (None, Some(base64)) if media_type.starts_with("image/") => image_or_line(media_type, base64),
        (None, _) => return Err(ContentError::Unusable(format!("`{uri}` is neither text nor an image"))),
    };
    let title = format!("Resource {uri} of the server {source}");
    Ok(Attachment { title, source: Some(source.to_owned()), content })
}

/// Returns an image of a server, or a line in its place if models cannot be shown it.
fn image_or_line(media_type: String, base64: String) -> Content {
    let is_shown = check_image(&media_type, &base64).is_ok() && !is_over_image_limit(&base64);
    let image = Content::image(media_type, base64);
    if is_shown { image } else { Content::Text(image.as_text()) }
}

/// Returns whether an image is larger than a message may contain.
fn is_over_image_limit(base64: &str) -> bool {
    let padding = base64.bytes().rev().take_while(|it| *it == b'=').count();
    (base64.len() - padding) * 3 / 4 > MAX_IMAGE_BYTES
}

/// Checks the number, size, type and data of the images of a message.
pub(crate) fn check_images(content: &[Content]) -> Result<(), ContentError> {
    let images = || {
        content.iter().filter_map(|it| match it {
            Content::Image { media_type, base64, .. } => Some((media_type, base64)),
            Content::Text(_) => None,
        })
    };
    let too_large = |message: String| Err(ContentError::TooLarge(message));
    if images().count() > MAX_ATTACHMENTS {
        return too_large(format!("a message can have {MAX_ATTACHMENTS} images, not {}", images().count()));
    }
    if images().any(|(_, base64)| is_over_image_limit(base64)) {
        return too_large("an image is larger than 5 MiB".to_owned());
    }
    let mut checked = images().map(|(media_type, base64)| check_image(media_type, base64));
    checked.try_for_each(|it| it.map_err(ContentError::Unusable))
}

/// Reads a file of the user: a text or an image. The error is for the user.
pub(crate) fn file_attachment(path: &Path) -> Result<Attachment, String> {
    let name = path.display();
    let bytes = read_regular(path, MAX_IMAGE_BYTES as u64).map_err(|error| format!("'{name}' {error}"))?;
    let content = match image_type(&bytes) {
        Some(media_type) => Content::image(media_type, STANDARD.encode(bytes)),
        None => match String::from_utf8(bytes) {
            Ok(text) if text.len() > MAX_TEXT_BYTES => return Err(format!("'{name}' is longer than 1 MiB")),
            Ok(text) => Content::Text(text),
            Err(_) => return Err(format!("'{name}' is neither text nor an image")),
        },
    };
    Ok(Attachment { title: format!("File {name}"), source: None, content })
}

fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let is_equal = |(wanted, byte): (&u8, &u8)| wanted == byte || *wanted == b'?';
    let fits = |start: &[u8]| bytes.len() >= start.len() && start.iter().zip(bytes).all(is_equal);
    IMAGE_FORMATS.iter().find(|(start, _)| fits(start)).map(|(_, media_type)| *media_type)
}

/// Returns the messages of a prompt, marked with its source and name.
pub(crate) fn prompt_message(
    result: PromptResult,
    (source, name): (&str, &str),
) -> Result<UserMessage, ContentError> {
    let mark = format!("Prompt {source}:{name}");
    let messages = result.messages.into_iter().map(|it| match it {
        Item::Valid(message) => marked_message(message, &mark),
        Item::Invalid(_, why) => Err(ContentError::Unusable(format!("the prompt cannot be used: {why}"))),
    });
    let mut messages = messages.collect::<Result<Vec<_>, _>>()?;
    match messages.pop() {
        Some(Message::User(message)) => {
            Ok(UserMessage { earlier: messages, content: message, attachments: Vec::new() })
        }
        _ => Err(ContentError::Unusable("the prompt does not end with a message of the user".to_owned())),
    }
}

fn marked_message(message: PromptMessage, mark: &str) -> Result<Message, ContentError> {
    let content = match message.content {
        Item::Valid(Block::Text(text)) => Content::Text(text),
        Item::Valid(Block::Image { data, mime_type }) => image_or_line(mime_type, data),
        Item::Valid(Block::Resource(Contents { uri, text: Some(text), .. })) => {
            Content::Text(fence(&format!("Resource {uri} of the server {mark}"), &text))
        }
        _ => {
            let why = "the prompt has content that the model cannot be shown";
            return Err(ContentError::Unusable(why.to_owned()));
        }
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
    use serde_json::json;

    #[test]
    fn an_image_of_a_server_that_models_cannot_be_shown_is_a_line() {
        let shown = |media_type: &str, base64: &str| {
            let blob = json!({ "uri": "f://a", "mimeType": media_type, "blob": base64 });
            let read = ReadResult::read(&json!({ "contents": [blob] }).into());
            let attached = resource_attachments(read, "files").expect("contents").remove(0).content;
            let image = json!({ "type": "image", "mimeType": media_type, "data": base64 });
            let prompt = json!({ "messages": [{ "role": "user", "content": image }] });
            let message =
                prompt_message(PromptResult::read(&prompt.into()), ("files", "p")).expect("a prompt");
            assert_eq!(message.content.last(), Some(&attached), "a prompt is like a resource");
            attached
        };
        assert_eq!(shown("image/png", "QUJD"), Content::image("image/png", "QUJD"));
        for (media_type, base64, size) in [("image/svg+xml", "QUJD", 1), ("image/png", "", 0)] {
            assert_eq!(shown(media_type, base64), Content::Text(format!("[{media_type}, {size} KB]")));
        }
    }

    #[test]
    fn files_are_texts_or_images_of_bounded_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = |bytes: &[u8]| {
            let path = folder.path().join("file");
            std::fs::write(&path, bytes).expect("a file");
            let shown = format!("'{}' ", path.display());
            let attached = file_attachment(&path).map_err(|it| it.replace(&shown, ""));
            attached.map(|it| it.content)
        };
        let image = |media_type: &str, base64: &str| Content::image(media_type, base64);
        assert_eq!(read(b"plain"), Ok(Content::Text("plain".to_owned())));
        assert_eq!(read(b"GIF89a"), Ok(image("image/gif", "R0lGODlh")));
        assert_eq!(read(b"RIFF\0\0\0\0WEBP"), Ok(image("image/webp", "UklGRgAAAABXRUJQ")));
        assert_eq!(read(b"\xff\xfe\x00"), Err("is neither text nor an image".to_owned()));
        assert_eq!(read(&[b'x'; MAX_TEXT_BYTES + 1]), Err("is longer than 1 MiB".to_owned()));
        let too_large = read(&[0; MAX_IMAGE_BYTES + 1]).expect_err("an error");
        assert!(too_large.contains("larger than"), "{too_large}");
        assert!(file_attachment(&folder.path().join("none")).is_err());
    }
}
