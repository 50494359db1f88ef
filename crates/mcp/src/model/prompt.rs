//! Prompts, and what they are filled in to.

use super::{Block, Item, Read, elements, lenient, required};
use crate::Raw;

/// A prompt, as `prompts/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Its name on the wire.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What can be filled in.
    pub arguments: Vec<PromptArgument>,
    /// Everything, as the server sent it.
    pub raw: Raw,
}

/// A blank in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// Whether it has to be filled in.
    pub required: bool,
}

/// A prompt, filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptResult {
    /// What it is for.
    pub description: Option<String>,
    /// The messages, each read on its own.
    pub messages: Vec<Item<PromptMessage>>,
    /// Everything, as the server sent it.
    pub raw: Raw,
}

/// One message of a filled-in prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Who says it: `user` or `assistant`.
    pub role: String,
    /// What is said.
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
    /// Reads a result. Whatever it holds, this cannot fail.
    pub fn read(raw: &Raw) -> PromptResult {
        let messages = elements(raw, "messages").unwrap_or_default();
        PromptResult {
            description: lenient(raw, "description"),
            messages: messages.iter().map(Item::read).collect(),
            raw: raw.clone(),
        }
    }
}
