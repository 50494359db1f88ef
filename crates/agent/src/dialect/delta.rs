//! Additions to an answer, as one event of a response makes them.

use serde_json::Value;

/// Addition to an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Text for the user.
    Text(String),
    /// Readable reasoning.
    Reasoning(String),
    /// Data that the provider wants back. It belongs to the newest part if that has the same kind and no such data
    /// yet, and otherwise is a part of its own.
    Native(NativeKind, Value),
    /// Tool call, or a piece of one.
    Call(CallFragment),
    /// Tokens used so far. Replaces earlier values.
    Usage(Usage),
    /// The reason why the answer ended.
    Finish(FinishReason),
}

/// Kind of part that native data belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeKind {
    /// Text.
    Text,
    /// Reasoning.
    Reasoning,
}

/// Tool call, or a piece of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallFragment {
    /// Whether this is a whole call, so that no other fragment belongs to it.
    pub is_whole: bool,
    /// The server's index, as text. It is only compared.
    pub index: Option<String>,
    /// Id of the call.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: Option<String>,
    /// Text to append to the arguments.
    pub arguments: String,
    /// Data that the provider wants back with the call.
    pub native: Option<Value>,
}

/// Tokens that a request used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Tokens of the request, including cached ones.
    pub input: u64,
    /// Tokens of the request that the provider's cache served.
    pub cached_input: u64,
    /// Tokens of the answer, including reasoning.
    pub output: u64,
    /// Tokens of reasoning.
    pub reasoning: u64,
}

/// Reason why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The answer reached the maximum length.
    Length,
    /// The provider filtered the prompt or the answer.
    Filtered,
    /// The model refused.
    Refused,
}

impl FinishReason {
    /// Returns whether the calls of an answer that ended this way are complete and may be made.
    pub fn allows_calls(self) -> bool {
        matches!(self, FinishReason::Stop | FinishReason::ToolCalls)
    }
}

/// Returns the number at a path of keys, or 0 if there is none.
pub(super) fn count(value: &Value, path: &[&str]) -> u64 {
    path.iter().try_fold(value, |it, key| it.get(key)).and_then(Value::as_u64).unwrap_or(0)
}
