//! Defines a tool call, its outcome and its record. The CLI, the REST API, the MCP gateway and the agent share these
//! types.

mod caller;
mod deadline;

use crate::{
    Fault, FaultKind, Redactor, Trace,
    fault::sent_word,
    result_handle::{Document, PassedResult, ResultHandle},
    truncate,
};
pub use caller::{Caller, LogSubscription};
pub(crate) use deadline::Deadline;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};
use wharf_mcp::{
    Raw,
    model::{Block, CallResult, Item},
    session::Progress,
};

/// Callback for the progress of a call. It must not block.
pub type OnProgress = Box<dyn FnMut(&Progress) + Send>;

/// A tool call to be made.
#[derive(Default)]
pub struct Call {
    /// The tool: its shown name, `source:tool`, or a bare name if that is unique.
    pub tool: String,
    /// The arguments, a JSON object.
    pub arguments: Option<Raw>,
    /// Time limit for the whole call, including starting the server. Without it the timeouts of the source apply.
    pub timeout: Option<Duration>,
    /// The caller's request id. Generated if absent.
    pub request_id: Option<String>,
    /// Id of the conversation that the call belongs to.
    pub thread_id: Option<String>,
    /// The authenticated principal, if any.
    pub principal: Option<Arc<str>>,
    /// The interface that received the call, such as `rest` or `mcp`; empty if none did.
    pub via: &'static str,
    /// Callback for progress.
    pub on_progress: Option<OnProgress>,
    /// The client on whose behalf the call is made, if its metadata and consent apply to the call.
    pub caller: Option<Caller>,
    /// The trace span of this call, propagated to the server.
    pub trace: Option<Trace>,
}

/// Result of a call. A tool that returns an error has answered; that is not a failure of the source.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The tool's result.
    Answered(Raw),
    /// The tool's own error result (`isError`).
    Refused(Raw),
    /// No result: the call failed.
    Failed(Arc<Fault>),
}

/// A completed call.
#[derive(Clone)]
pub struct CallRecord {
    /// The request id.
    pub request_id: Arc<str>,
    /// Id of the conversation that the call belonged to.
    pub thread_id: Option<String>,
    /// The authenticated principal, if any.
    pub principal: Option<Arc<str>>,
    /// The interface that received the call.
    pub via: &'static str,
    /// The tool's shown name, or the requested name if no such tool exists.
    pub tool: String,
    /// The tool's name on the wire, if the tool exists.
    pub wire_name: Option<Arc<str>>,
    /// The source, if the tool was resolved.
    pub source: Option<Arc<str>>,
    /// The arguments as the caller sent them.
    pub arguments: Option<Raw>,
    /// Start time.
    pub started: SystemTime,
    /// Duration.
    pub took: Duration,
    /// How long the stages before the request took.
    pub stages: Stages,
    /// The complete outcome, neither truncated nor redacted.
    pub outcome: Outcome,
    /// The handle that the caller gets instead of the result, if the result is stored.
    pub handle: Option<Box<ResultHandle>>,
    /// Stored results that were passed to the tool.
    pub passed: Vec<PassedResult>,
    /// Reason why the arguments were not checked against the tool's schema, if they were not.
    pub unchecked: Option<&'static str>,
    /// The trace span of this call.
    pub trace: Option<Trace>,
    pub(crate) limit: Option<usize>,
    pub(crate) redactor: Arc<Redactor>,
}

/// Durations of the stages of a call before its request was sent. The rest of the call's time is the request itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Until the circuit breaker admitted the call, including waiting for a source that was starting.
    pub queue: Duration,
    /// Waiting for a session, which may include starting the server.
    pub connect: Duration,
}

/// Status of a completed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The tool returned a result.
    Success,
    /// The tool returned an error, or the call failed.
    Failure,
    /// The call timed out.
    Timeout,
}

impl Call {
    /// Creates a call of `tool` without arguments.
    pub fn new(tool: impl Into<String>) -> Call {
        Call { tool: tool.into(), ..Call::default() }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: impl Into<Raw>) -> Call {
        self.arguments = Some(arguments.into());
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Call {
        self.timeout = Some(timeout);
        self
    }
}

impl Outcome {
    /// Classifies a result by its `isError` member. A byte search first avoids parsing large results a second time.
    pub(crate) fn of(result: Raw) -> Outcome {
        // Most results say `false`, so the value is looked for before the result is parsed.
        let says_true = |rest: &[u8]| {
            let value = rest.trim_ascii_start().strip_prefix(b":");
            value.is_some_and(|it| it.trim_ascii_start().starts_with(b"true"))
        };
        let (bytes, key) = (result.as_bytes(), b"\"isError\"");
        let refused = memchr::memmem::find_iter(bytes, key).any(|at| says_true(&bytes[at + key.len()..]))
            && result.member("isError").is_some_and(|it| it.as_bytes() == b"true");
        if refused { Outcome::Refused(result) } else { Outcome::Answered(result) }
    }
}

impl CallRecord {
    /// Returns the status.
    pub fn status(&self) -> Status {
        match &self.outcome {
            Outcome::Answered(_) => Status::Success,
            Outcome::Failed(fault) if fault.kind == FaultKind::Timeout => Status::Timeout,
            Outcome::Refused(_) | Outcome::Failed(_) => Status::Failure,
        }
    }

    /// Returns the tool's name on the wire, or the requested name if no such tool exists.
    pub fn tool_name(&self) -> &str {
        self.wire_name.as_deref().unwrap_or(&self.tool)
    }

    /// Returns the result for the caller: a handle if the result is stored, else the result, truncated to the source's
    /// size limit. The record itself keeps all of it.
    pub fn result(&self) -> Option<Raw> {
        let (Outcome::Answered(result) | Outcome::Refused(result)) = &self.outcome else { return None };
        if let Some(handle) = &self.handle {
            return Some(handle.shown.clone());
        }
        let truncated = self.limit.and_then(|limit| truncate::result(result, limit));
        Some(truncated.unwrap_or_else(|| result.clone()))
    }

    /// Returns the fault of a failed call.
    pub fn fault(&self) -> Option<&Arc<Fault>> {
        match &self.outcome {
            Outcome::Failed(fault) => Some(fault),
            Outcome::Answered(_) | Outcome::Refused(_) => None,
        }
    }

    /// Returns the id of the tool, `source:tool`, if the tool exists.
    pub fn tool_id(&self) -> Option<String> {
        self.source.as_deref().zip(self.wire_name.as_ref()).map(|(source, name)| format!("{source}:{name}"))
    }

    /// Returns the name of the error: `ToolError` for the tool's own error, otherwise the kind of the fault.
    pub fn error_type(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::Answered(_) => None,
            Outcome::Refused(_) => Some("ToolError"),
            Outcome::Failed(fault) => Some(fault.kind.as_str()),
        }
    }

    /// Returns whether the request was sent to the server: `no`, `yes` or `unknown`.
    pub fn sent(&self) -> &'static str {
        self.fault().map_or("yes", |it| sent_word(it.sent))
    }

    /// Returns the size of the result in bytes, if there is one.
    pub fn result_bytes(&self) -> Option<usize> {
        match &self.outcome {
            Outcome::Answered(result) | Outcome::Refused(result) => Some(result.as_bytes().len()),
            Outcome::Failed(_) => None,
        }
    }

    /// Returns whether the caller disconnected before the result.
    pub fn is_abandoned(&self) -> bool {
        self.fault().is_some_and(|it| it.kind == FaultKind::Abandoned)
    }

    /// Returns the error as redacted text: the tool's own message, or the fault's.
    pub fn error_text(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Answered(_) => None,
            Outcome::Refused(result) => Some(self.redactor.redact(&text_of(result))),
            Outcome::Failed(fault) => Some(fault.to_string()),
        }
    }

    /// Returns the redacted arguments.
    pub fn parameters(&self) -> Option<Raw> {
        self.arguments.as_ref().map(|it| self.redacted(it))
    }

    /// Returns about the first `length` bytes of some JSON, redacted.
    pub fn beginning(&self, raw: &Raw, length: usize) -> String {
        self.redactor.beginning(raw.as_bytes(), length)
    }

    /// Returns the document of a result, without secrets.
    pub(crate) fn document(&self, result: &Raw) -> Document {
        Document::redacted(result, &self.redactor)
    }

    /// Redacts JSON. Only the contents of strings are replaced, so the result is valid JSON; if it is not, the whole
    /// value is hidden.
    pub fn redacted(&self, raw: &Raw) -> Raw {
        self.redactor.redact_json(raw)
    }
}

/// Joins the text blocks of a result.
pub(crate) fn text_of(result: &Raw) -> String {
    let blocks = CallResult::read(result).content;
    let words = blocks.iter().filter_map(|it| match it {
        Item::Valid(Block::Text(text)) => Some(text.as_str()),
        Item::Valid(_) | Item::Invalid(..) => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

impl Status {
    /// Returns the lower-case name of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Failure => "failure",
            Status::Timeout => "timeout",
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("tool", &self.tool)
            .field("timeout", &self.timeout)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

// Arguments and results may contain anything, including secrets, so `Debug` omits them.
impl fmt::Debug for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRecord")
            .field("request_id", &self.request_id)
            .field("tool", &self.tool)
            .field("source", &self.source)
            .field("took", &self.took)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_is_error_member_that_is_true_refuses_a_call() {
        for (result, refuses) in [
            (r#"{"isError":true}"#, true),
            ("{\"content\":[],\"isError\" :\n true}", true),
            (r#"{"isError":false,"structuredContent":{"isError":true}}"#, false),
            (r#"{"content":[{"text":"\"isError\":true"}]}"#, false),
            ("{}", false),
        ] {
            let outcome = Outcome::of(Raw::parse(result).expect("JSON"));
            assert_eq!(matches!(outcome, Outcome::Refused(_)), refuses, "{result}");
        }
    }
}
