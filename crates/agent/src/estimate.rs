//! Estimates the number of tokens of messages, with the runtime's estimator.

use crate::message::{AnswerPart, Content, Message};
pub(crate) use wharf_runtime::tokens::estimate_tokens;

/// Tokens of an image, whatever its size.
const IMAGE_TOKENS: u64 = 1_000;
/// Tokens that the frame of a message takes.
const MESSAGE_TOKENS: u64 = 4;

/// Estimates the tokens of a message.
pub(crate) fn estimate_message(message: &Message) -> u64 {
    let content = |content: &[Content]| content.iter().map(estimate_content).sum::<u64>();
    MESSAGE_TOKENS
        + match message {
            Message::User(parts) => content(parts),
            Message::Result(result) => content(&result.content),
            Message::Answer(answer) => answer.parts.iter().map(estimate_part).sum(),
        }
}

/// Estimates the tokens of a piece of content.
pub(crate) fn estimate_content(content: &Content) -> u64 {
    match content {
        Content::Text(text) => estimate_tokens(text),
        Content::Image { .. } => IMAGE_TOKENS,
    }
}

fn estimate_part(part: &AnswerPart) -> u64 {
    match part {
        AnswerPart::Text { text, .. } => estimate_tokens(text),
        AnswerPart::Reasoning { text, native } => {
            let native = native.as_ref().map_or(0, |it| estimate_tokens(&it.to_string()));
            native.max(estimate_tokens(text))
        }
        AnswerPart::Call(call) => estimate_tokens(&call.name) + estimate_tokens(call.history_arguments()),
    }
}
