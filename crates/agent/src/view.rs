//! The part of a conversation that one request shows to the model.

use crate::{message::Message, tool_list::ToolList};

/// Everything that one request shows to the model.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Id of the conversation, for the provider's prompt cache.
    pub conversation_id: &'a str,
    /// Instructions of the agent. May be empty.
    pub instructions: &'a str,
    /// Tools that the model may call, in the form of the dialect.
    pub tools: &'a ToolList,
    /// Which tools the model may or must call.
    pub tool_choice: ToolChoice<'a>,
    /// Messages, oldest first.
    pub messages: &'a [Message],
}

/// Which tools the model may or must call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The model decides.
    Auto,
    /// The model must answer without a call. The tools stay in the request, so that the prompt cache holds.
    Forbidden,
    /// The model must call this tool.
    Required(&'a str),
}
