//! Reads the message of a client that sends a whole conversation: messages with roles and contents.

use crate::{
    api::{body::malformed, problem::Problem},
    message_context::check_images,
};
use http::StatusCode;
use serde_json::Value;
use wharf_agent::message::Content;

/// Maximum size of the user's last message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Maximum number of messages.
const MAX_MESSAGES: usize = 10_000;

/// The last message of a client, and its instructions. The messages between are in wharf's own record.
#[derive(Debug, Default)]
pub(super) struct ClientMessage {
    pub(super) instructions: Vec<String>,
    pub(super) message: Vec<Content>,
}

impl ClientMessage {
    /// Reads messages, of which the last one is the user's. `content` finds the content of one.
    pub(super) fn read(
        messages: &Value,
        content: impl Fn(&Value) -> Result<Vec<Content>, String>,
    ) -> Result<ClientMessage, Problem> {
        let list = messages.as_array().filter(|it| it.len() <= MAX_MESSAGES);
        let Some(messages) = list else { return Err(malformed("`messages` has to be a list of messages")) };
        let read =
            |at: usize| content(&messages[at]).map_err(|why| malformed(format!("`messages[{at}]`: {why}")));
        let mut instructions = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            if matches!(message["role"].as_str(), Some("system" | "developer")) {
                instructions.push(join_text(&read(at)?));
            }
        }
        let last =
            messages.iter().rposition(|it| !matches!(it["role"].as_str(), Some("system" | "developer")));
        let last = last.filter(|at| messages[*at]["role"] == "user");
        let last = last.ok_or_else(|| malformed("the last message has to be the user's"))?;
        let message = read(last)?;
        let size: usize = message.iter().map(|it| it_text(it).len()).sum();
        if size > MAX_MESSAGE_BYTES {
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the message is longer than 64 KiB"));
        }
        check_images(&message).map_err(|error| Problem::new(error.status(), error.message()))?;
        if size == 0 && message.iter().all(|it| matches!(it, Content::Text(_))) {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the message is empty"));
        }
        Ok(ClientMessage { instructions, message })
    }
}

/// Joins the texts of a message.
fn join_text(content: &[Content]) -> String {
    content.iter().map(it_text).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n")
}

fn it_text(content: &Content) -> &str {
    match content {
        Content::Text(text) => text,
        Content::Image { .. } => "",
    }
}

/// Reads an image in a data URL. Nothing is fetched, and its type and data are not checked.
pub(in crate::api) fn read_data_url(url: &str) -> Result<Content, &'static str> {
    let data = url.strip_prefix("data:").and_then(|it| it.split_once(";base64,"));
    let (media_type, base64) = data.ok_or("an image has to be a data URL: `data:image/png;base64,…`")?;
    Ok(Content::image(media_type, base64))
}
