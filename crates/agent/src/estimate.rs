//! Estimates the number of tokens of a request without a tokenizer.

use crate::message::{AnswerPart, Content, Message};

/// Tokens of an image, whatever its size.
const IMAGE_TOKENS: u64 = 1_000;
/// Tokens that the frame of a message takes.
const MESSAGE_TOKENS: u64 = 4;

/// Estimates the tokens of a text: a quarter of its ASCII bytes, and one for every other character.
pub(crate) fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.chars().filter(|it| !it.is_ascii()).count() as u64;
    ascii.div_ceil(4) + other
}

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

fn estimate_content(content: &Content) -> u64 {
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
        AnswerPart::Call(call) => estimate_tokens(&call.name) + estimate_tokens(&call.arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_counts_a_quarter_and_other_characters_one() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("abcde"), 2);
        assert_eq!(estimate_tokens("grüß"), 1 + 2);
        assert_eq!(estimate_tokens("日本"), 2);
    }
}
