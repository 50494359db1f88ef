//! Messages of a conversation in the form that every dialect can write.

use crate::arguments::{ArgumentsError, check_arguments};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Message of the user.
    User(Vec<Content>),
    /// Answer of a model.
    Answer(AnswerMessage),
    /// Result of a tool call. The results of one answer follow it, in the order of its calls.
    Result(ToolResult),
}

/// Piece of a user's message or of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text(String),
    /// Image.
    Image {
        /// Media type, such as `image/png`.
        media_type: String,
        /// Bytes of the image in base64.
        base64: String,
        /// Handle of the stored result that has the image, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handle: Option<String>,
    },
}

impl Message {
    /// Returns the content of a user's message.
    pub(crate) fn as_user(&self) -> Option<&[Content]> {
        match self {
            Message::User(content) => Some(content),
            Message::Answer(_) | Message::Result(_) => None,
        }
    }
}

/// Answer of a model, as part of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerMessage {
    /// Parts in the order of the model. Every call has a result in the messages that follow.
    pub parts: Vec<AnswerPart>,
    /// Provider and model that wrote the answer. Only they receive its native data again.
    pub model: String,
}

/// Part of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPart {
    /// Text for the user.
    Text {
        /// The text.
        text: String,
        /// Data that the provider wants back with this part, as it came.
        #[serde(skip)]
        native: Option<Value>,
    },
    /// Reasoning of the model.
    Reasoning {
        /// Readable reasoning. May be empty.
        text: String,
        /// Data that the provider wants back with this part, as it came.
        #[serde(skip)]
        native: Option<Value>,
    },
    /// Tool call.
    Call(ToolCall),
}

/// Tool call in an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call, unique in its run.
    pub id: String,
    /// Name of the tool, as the request offered it.
    pub name: String,
    /// Arguments, in the model's own text. Shortened if they exceed the limit.
    pub arguments: String,
    /// Data that the provider wants back with this call, as it came.
    #[serde(skip)]
    pub native: Option<Value>,
}

impl AnswerPart {
    /// Returns the data that the provider wants back.
    pub(crate) fn native(&self) -> Option<&Value> {
        match self {
            AnswerPart::Text { native, .. } | AnswerPart::Reasoning { native, .. } => native.as_ref(),
            AnswerPart::Call(call) => call.native.as_ref(),
        }
    }

    pub(crate) fn native_mut(&mut self) -> &mut Option<Value> {
        match self {
            AnswerPart::Text { native, .. } | AnswerPart::Reasoning { native, .. } => native,
            AnswerPart::Call(call) => &mut call.native,
        }
    }
}

impl ToolCall {
    /// Returns the text of the arguments object, or why the call cannot be made.
    pub fn checked_arguments(&self) -> Result<&str, ArgumentsError> {
        check_arguments(&self.arguments)
    }

    /// Returns an arguments object for the history. Providers refuse a history with unusable arguments, so these
    /// become an empty object; the call's result says what was wrong.
    pub(crate) fn history_arguments(&self) -> &str {
        self.checked_arguments().unwrap_or("{}")
    }
}

/// Result of a tool call, in the words for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool, as the request offered it.
    pub name: String,
    /// Content of the result.
    pub content: Vec<Content>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ToolResult {
    /// Returns the text of the result, with a line for each image.
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.content.iter().map(Content::as_text).collect();
        lines.join("\n")
    }

    /// Returns the images of the result.
    pub(crate) fn images(&self) -> impl Iterator<Item = &Content> {
        self.content.iter().filter(|it| matches!(it, Content::Image { .. }))
    }
}

impl Content {
    /// Creates an image.
    pub fn image(media_type: impl Into<String>, base64: impl Into<String>) -> Content {
        Content::Image { media_type: media_type.into(), base64: base64.into(), handle: None }
    }

    /// Returns the size of the text. An image has none.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Content::Text(text) => text.len(),
            Content::Image { .. } => 0,
        }
    }

    /// Returns the text, or a description of the image.
    pub fn as_text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Image { media_type, base64, handle } => {
                describe_bytes(media_type, base64, handle.as_deref())
            }
        }
    }
}

/// Returns a line in place of bytes in base64: what they are, their size, and the handle of the stored result.
pub(crate) fn describe_bytes(what: &str, base64: &str, handle: Option<&str>) -> String {
    let padding = base64.len() - base64.trim_end_matches('=').len();
    let kilobytes = (base64.len() / 4 * 3).saturating_sub(padding).div_ceil(1024);
    let handle = handle.map_or_else(String::new, |it| format!(": {it}"));
    format!("[{what}, {kilobytes} KB{handle}]")
}
