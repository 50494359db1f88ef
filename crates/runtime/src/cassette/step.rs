//! A recorded step of a conversation that is not a tool call: a message of the user, a turn of the model, a decision about
//! a call, a prompt or a resource.

use super::MAIN_CONVERSATION;
use serde_json::{Map, Value, json};

/// Kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A message of the user, and the rules of its run.
    Input,
    /// A question to the model and its answer.
    Model,
    /// A person's decision about a call.
    Approval,
    /// A prompt that a server returned.
    Prompt,
    /// A resource that a server returned.
    Read,
}

/// A step of a conversation. Whoever records it knows the members of its body.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedStep {
    /// Kind.
    pub kind: StepKind,
    /// Conversation that the step belongs to.
    pub conversation: String,
    /// Number of the step in its conversation, by its start. Calls and steps share the numbers.
    pub n: u64,
    /// Members of the line beside `conversation` and `n`.
    pub body: Map<String, Value>,
    /// Number of its line, from 1; 0 for a step that was not read from a file.
    pub line: usize,
}

/// Reads the number of a call or step. Canonical JSON has no larger ones.
pub(super) fn read_number(body: &Map<String, Value>) -> Option<u64> {
    body.get("n")?.as_u64().filter(|it| *it < 1 << 53)
}

impl StepKind {
    const ALL: [StepKind; 5] =
        [StepKind::Input, StepKind::Model, StepKind::Approval, StepKind::Prompt, StepKind::Read];

    /// Returns the key of the line.
    pub fn as_str(self) -> &'static str {
        match self {
            StepKind::Input => "input",
            StepKind::Model => "model",
            StepKind::Approval => "approval",
            StepKind::Prompt => "prompt",
            StepKind::Read => "read",
        }
    }

    pub(super) fn parse(key: &str) -> Option<StepKind> {
        StepKind::ALL.into_iter().find(|it| it.as_str() == key)
    }
}

impl RecordedStep {
    /// Returns what steps are sorted by. `main` comes first, and `c2` before `c10`.
    pub(super) fn key(&self) -> (bool, usize, &str, u64) {
        let name = self.conversation.as_str();
        (name != MAIN_CONVERSATION, name.len(), name, self.n)
    }

    pub(super) fn parse(kind: StepKind, body: &Map<String, Value>) -> Option<RecordedStep> {
        let conversation = body.get("conversation")?.as_str()?.to_owned();
        let n = read_number(body)?;
        let mut body = body.clone();
        body.retain(|key, _| key != "conversation" && key != "n");
        Some(RecordedStep { kind, conversation, n, body, line: 0 })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut body = self.body.clone();
        body.insert("conversation".to_owned(), json!(self.conversation));
        body.insert("n".to_owned(), json!(self.n));
        json!({ self.kind.as_str(): body })
    }
}
