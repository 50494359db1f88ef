//! Entries of a conversation: what happened, in the order in which it happened. Entries are never changed.

use crate::{
    dialect::Usage,
    message::{AnswerMessage, AnswerPart, Content, Message, ToolResult},
    result_text::CallFate,
    run_ending::RunStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Call that the entry is about.
    pub call_id: Option<String>,
    /// Content.
    pub body: EntryBody,
}

/// Content of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryBody {
    /// Message of the user.
    User {
        /// The message.
        content: Vec<Content>,
    },
    /// Whole answer of the model.
    Answer {
        /// The answer.
        #[serde(flatten)]
        message: AnswerMessage,
        /// Tokens of the request and the answer, if the provider reported them.
        usage: Option<Usage>,
    },
    /// A call is about to be sent.
    Started {
        /// `source:tool`.
        tool_id: String,
        /// Digest of the call.
        digest: String,
        /// The rule, hint, default or person that decided.
        why: String,
    },
    /// A call has its result.
    Result {
        /// The result.
        #[serde(flatten)]
        result: ToolResult,
        /// Knowledge about the call.
        fate: CallFate,
        /// State of the call, as clients see it.
        status: String,
        /// Digest of the call.
        digest: String,
        /// Duration in seconds, if the call was made.
        duration: Option<f64>,
    },
    /// A person decided about a call.
    Approval {
        /// Whether the call is allowed.
        is_allowed: bool,
        /// Principal or person that decided.
        by: String,
        /// Reason, if there is one.
        reason: Option<String>,
        /// Tool and definition, if the decision holds for all calls of the tool in this conversation.
        tool: Option<(String, String)>,
        /// Digest of the call.
        digest: String,
    },
    /// The messages before a position are summed up.
    Summary {
        /// Number of messages that the summary covers.
        position: usize,
        /// The summary.
        summary: String,
    },
    /// The model got words of the agent in the place of the user.
    Notice {
        /// The words.
        notice: String,
    },
    /// The model is shown less than everything.
    Context {
        /// Description.
        message: String,
        /// Calls whose results are left out from now on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<String>,
        /// Number of messages whose thinking is left out from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking_before: Option<usize>,
    },
    /// A result that the model no longer sees is stored under a handle.
    Stored {
        /// The handle.
        stored: String,
    },
    /// The model is offered other tools than in the run before.
    Tools {
        /// Description.
        message: String,
        /// Names of the tools and their estimated tokens, in the order of the request.
        tools: Vec<(String, u64)>,
        /// Names of the tools that the model has to find, and their estimated tokens.
        #[serde(default)]
        deferred: Vec<(String, u64)>,
    },
    /// The run waits for decisions.
    Waiting {
        /// Checkpoint from which the run continues.
        waiting: Value,
    },
    /// The run ended.
    Ending {
        /// Status of the run.
        status: RunStatus,
        /// Error, as `done` has it.
        error: Option<Value>,
        /// Number of whole answers.
        turns: u64,
    },
}

/// Entry in the form of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryText {
    /// Kind of the entry.
    pub kind: &'static str,
    /// Content as JSON.
    pub body: String,
    /// Data of the provider for each part of an answer, as a JSON array.
    pub native: Option<String>,
    /// Provider and model that the data belongs to.
    pub native_for: Option<String>,
}

impl Entry {
    pub(crate) fn of(body: EntryBody) -> Entry {
        Entry { call_id: None, body }
    }

    pub(crate) fn of_call(call_id: &str, body: EntryBody) -> Entry {
        Entry { call_id: Some(call_id.to_owned()), body }
    }

    /// Returns the entry as text.
    pub fn to_text(&self) -> EntryText {
        let (native, native_for) = match &self.body {
            EntryBody::Answer { message, .. } => native_of(message),
            _ => (None, None),
        };
        let body = serde_json::to_string(&self.body).unwrap_or_default();
        EntryText { kind: self.body.kind(), body, native, native_for }
    }

    /// Reads an entry from text. Returns `None` if it cannot be read.
    pub fn from_text(kind: &str, call_id: Option<&str>, body: &str, native: Option<&str>) -> Option<Entry> {
        let mut read: EntryBody = serde_json::from_str(body).ok()?;
        if read.kind() != kind {
            return None;
        }
        if let (EntryBody::Answer { message, .. }, Some(native)) = (&mut read, native) {
            let native: Vec<Option<Value>> = serde_json::from_str(native).ok()?;
            message.parts.iter_mut().zip(native).for_each(|(part, native)| *part.native_mut() = native);
        }
        Some(Entry { call_id: call_id.map(str::to_owned), body: read })
    }
}

impl EntryBody {
    /// Describes the tools that the model is offered, and those that it has to find.
    pub(crate) fn tools(tools: Vec<(String, u64)>, deferred: Vec<(String, u64)>) -> EntryBody {
        let (count, tokens) = (tools.len(), tools.iter().map(|(_, tokens)| tokens).sum::<u64>());
        let message = format!("{count} tools are offered, about {tokens} tokens");
        EntryBody::Tools { message, tools, deferred }
    }

    /// Describes something that the model does not see.
    pub(crate) fn context(message: String) -> EntryBody {
        EntryBody::Context { message, left_out: Vec::new(), thinking_before: None }
    }

    /// Returns the entry of a message, unless it is a result, which needs more.
    pub(crate) fn of_message(message: &Message) -> Option<EntryBody> {
        match message {
            Message::User(content) => Some(EntryBody::User { content: content.clone() }),
            Message::Answer(message) => Some(EntryBody::Answer { message: message.clone(), usage: None }),
            Message::Result(_) => None,
        }
    }

    /// Returns the kind of the entry.
    pub fn kind(&self) -> &'static str {
        match self {
            EntryBody::User { .. } => "user",
            EntryBody::Answer { .. } => "answer",
            EntryBody::Started { .. } => "started",
            EntryBody::Result { .. } => "result",
            EntryBody::Approval { .. } => "approval",
            EntryBody::Summary { .. } => "summary",
            EntryBody::Notice { .. }
            | EntryBody::Context { .. }
            | EntryBody::Stored { .. }
            | EntryBody::Tools { .. }
            | EntryBody::Waiting { .. } => "context",
            EntryBody::Ending { .. } => "ending",
        }
    }
}

fn native_of(message: &AnswerMessage) -> (Option<String>, Option<String>) {
    let native: Vec<Option<&Value>> = message.parts.iter().map(AnswerPart::native).collect();
    if native.iter().all(Option::is_none) {
        return (None, None);
    }
    (serde_json::to_string(&native).ok(), Some(message.model.clone()))
}
