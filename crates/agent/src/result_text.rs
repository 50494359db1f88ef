//! The words that a model is told about the outcome of a call.

use crate::{message::Content, result_blocks::result_content};
use serde::{Deserialize, Serialize};
use wharf_runtime::{CallRecord, Fault, FaultKind, Outcome, sent_word};

/// Beginning of the words about a call of a tool that does not exist.
pub(crate) const NO_SUCH_TOOL: &str = "there is no tool '";
/// Beginning of the words about a call of unknown fate.
pub(crate) const UNKNOWN_FATE: &str = "unknown: the call was sent";

/// Knowledge about a call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFate {
    /// The tool answered, with a result or an error.
    Answered,
    /// The call was not executed.
    NotExecuted,
    /// The call was sent and may have been executed.
    Unknown,
}

impl CallFate {
    /// Returns the words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            CallFate::Answered => "answered",
            CallFate::NotExecuted => "not executed",
            CallFate::Unknown => "unknown",
        }
    }
}

/// Kind of the error of a call that clients are told beside its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallError {
    /// The arguments do not fit, or there is no such tool.
    InvalidArguments,
    /// The source cannot be reached.
    Connection,
    /// The source did not answer in time.
    Timeout,
    /// The source answered with an error of the protocol.
    Execution,
}

impl CallError {
    /// Returns the `error_type` that clients receive.
    pub(crate) fn error_type(self) -> &'static str {
        match self {
            CallError::InvalidArguments => "invalid_tool_arguments",
            CallError::Connection => "mcp_connection_error",
            CallError::Timeout => "timeout",
            CallError::Execution => "tool_execution_failed",
        }
    }

    fn of(fault: &Fault) -> CallError {
        match fault.kind {
            FaultKind::Arguments | FaultKind::ToolNotFound | FaultKind::ResultNotFound => {
                CallError::InvalidArguments
            }
            FaultKind::Timeout => CallError::Timeout,
            _ if fault.rpc.is_some() => CallError::Execution,
            FaultKind::Protocol | FaultKind::Disabled | FaultKind::LockMismatch => CallError::Execution,
            _ => CallError::Connection,
        }
    }
}

/// Outcome of a call, in the words for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallOutcome {
    /// Content for the model.
    pub(crate) content: Vec<Content>,
    /// Whether the call failed.
    pub(crate) is_error: bool,
    /// Knowledge about the call.
    pub(crate) fate: CallFate,
    /// Error that clients are told, if the call failed by itself.
    #[serde(default)]
    pub(crate) error: Option<CallError>,
    /// Advice for people about that error.
    #[serde(default)]
    pub(crate) hint: Option<String>,
}

impl CallOutcome {
    /// Creates the outcome of a call that was not executed.
    pub(crate) fn refused(words: String) -> CallOutcome {
        CallOutcome {
            content: vec![Content::Text(words)],
            is_error: true,
            fate: CallFate::NotExecuted,
            error: None,
            hint: None,
        }
    }

    /// Creates the outcome of a call that names no tool, or whose arguments do not fit.
    pub(crate) fn invalid(words: String) -> CallOutcome {
        CallOutcome { error: Some(CallError::InvalidArguments), ..CallOutcome::refused(words) }
    }

    /// Creates the outcome of a call that was sent and not answered.
    pub(crate) fn unknown(cause: &str) -> CallOutcome {
        let words = format!(
            "{UNKNOWN_FATE} and no answer came ({cause}). It may have been executed. \
             Find out before you repeat it."
        );
        CallOutcome {
            content: vec![Content::Text(words)],
            is_error: true,
            fate: CallFate::Unknown,
            error: None,
            hint: None,
        }
    }

    /// Reads the outcome of a completed call. `handle` names its whole result, if that is stored.
    pub(crate) fn of(record: &CallRecord, handle: Option<&str>) -> CallOutcome {
        match &record.outcome {
            Outcome::Failed(fault) => CallOutcome {
                error: Some(CallError::of(fault)),
                hint: fault.hint.clone(),
                ..describe_fault(fault)
            },
            Outcome::Answered(_) | Outcome::Refused(_) => CallOutcome {
                content: result_content(record, handle),
                is_error: matches!(record.outcome, Outcome::Refused(_)),
                fate: CallFate::Answered,
                error: None,
                hint: None,
            },
        }
    }

    /// Returns the text of the content.
    pub(crate) fn text(&self) -> String {
        self.content.iter().map(Content::as_text).collect::<Vec<_>>().join("\n")
    }
}

fn describe_fault(fault: &Fault) -> CallOutcome {
    let cause = fault.cause.trim_end_matches('.');
    match fault.kind {
        FaultKind::Arguments => CallOutcome::refused(format!("not executed: {cause}.")),
        FaultKind::ToolNotFound => CallOutcome::refused(format!("not executed: {cause}.")),
        FaultKind::BreakerOpen => {
            let seconds = fault.retry_after.unwrap_or_default().as_secs_f64().ceil();
            CallOutcome::refused(format!("not executed: {} is unavailable for {seconds} s.", fault.source))
        }
        _ if fault.rpc.is_some() => CallOutcome {
            content: vec![Content::Text(cause.to_owned())],
            is_error: true,
            fate: CallFate::Answered,
            error: None,
            hint: None,
        },
        _ if sent_word(fault.sent) == "no" => {
            CallOutcome::refused(format!("not executed: {cause}. It is safe to call again."))
        }
        _ => CallOutcome::unknown(cause),
    }
}
