//! Prompts and their results.

use super::{Block, Item, Read, elements, lenient, required};
use crate::Raw;

/// Prompt as listed by `prompts/list`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Name on the wire.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Arguments.
    pub arguments: Vec<PromptArgument>,
    /// Whole prompt, as the server sent it.
    pub raw: Raw,
}

/// Argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// Argument name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Whether the argument is required.
    pub required: bool,
}

/// Result of `prompts/get`.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptResult {
    /// Description.
    pub description: Option<String>,
    /// Messages, each read separately.
    pub messages: Vec<Item<PromptMessage>>,
    /// Whole result, as the server sent it.
    pub raw: Raw,
}

/// One message of a prompt result.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Role: `user` or `assistant`.
    pub role: String,
    /// Content block.
    pub content: Item<Block>,
}

impl Read for Prompt {
    fn read(raw: &Raw) -> Result<Prompt, String> {
        let arguments = elements(raw, "arguments").unwrap_or_default();
        Ok(Prompt {
            name: required(raw, "name")?,
            title: lenient(raw, "title"),
            description: lenient(raw, "description"),
            arguments: arguments.iter().map(PromptArgument::read).collect::<Result<_, _>>()?,
            raw: raw.clone(),
        })
    }
}

impl Read for PromptArgument {
    fn read(raw: &Raw) -> Result<PromptArgument, String> {
        Ok(PromptArgument {
            name: required(raw, "name")?,
            description: lenient(raw, "description"),
            required: lenient(raw, "required").unwrap_or(false),
        })
    }
}

impl Read for PromptMessage {
    fn read(raw: &Raw) -> Result<PromptMessage, String> {
        let content: Raw = required(raw, "content")?;
        Ok(PromptMessage { role: required(raw, "role")?, content: Item::read(&content) })
    }
}

impl PromptResult {
    /// Reads a result. It never fails, whatever the result contains.
    pub fn read(raw: &Raw) -> PromptResult {
        let messages = elements(raw, "messages").unwrap_or_default();
        PromptResult {
            description: lenient(raw, "description"),
            messages: messages.iter().map(Item::read).collect(),
            raw: raw.clone(),
        }
    }
}
