//! One call and what came of it: the vocabulary that every door shares.

mod caller;
mod deadline;

use crate::{Fault, FaultKind, Redactor, Trace, cut};
pub use caller::{Caller, WantedLogs};
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

/// Told how far a call has got; it must not block.
pub type OnProgress = Box<dyn FnMut(&Progress) + Send>;

/// A call to be made.
#[derive(Default)]
pub struct Call {
    /// The tool: its shown name, `source:tool`, or a bare name that is unique.
    pub tool: String,
    /// The arguments: an object.
    pub arguments: Option<Raw>,
    /// How long the caller waits, for the server to start included; if not, as long as the source allows.
    pub timeout: Option<Duration>,
    /// What the caller calls this call; made up where it says nothing.
    pub request_id: Option<String>,
    /// The conversation it is part of.
    pub thread_id: Option<String>,
    /// Who makes it, as the door knows them that they came in by.
    pub principal: Option<Arc<str>>,
    /// Told how far it has got.
    pub on_progress: Option<OnProgress>,
    /// Who it is made for, if that is somebody who has a say in it.
    pub caller: Option<Caller>,
    /// The span that it is, which the server is told of.
    pub trace: Option<Trace>,
}

/// What came of a call. A tool that answers "no" has worked; it is not a failure.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The tool's result.
    Answered(Raw),
    /// The tool's own error, in its own words.
    Refused(Raw),
    /// There is no answer.
    Failed(Arc<Fault>),
}

/// A call that is over.
#[derive(Clone)]
pub struct CallRecord {
    /// Which call.
    pub request_id: Arc<str>,
    /// The conversation it was part of.
    pub thread_id: Option<String>,
    /// Who made it, as far as that is known.
    pub principal: Option<Arc<str>>,
    /// The tool, under its shown name, or as it was asked for if there is none.
    pub tool: String,
    /// The tool's name on the wire, if there is such a tool.
    pub wire_name: Option<String>,
    /// The source, if it came to one.
    pub source: Option<Arc<str>>,
    /// The arguments, as they were given.
    pub arguments: Option<Raw>,
    /// When it began.
    pub started: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// What came of it, whole.
    pub outcome: Outcome,
    /// Why the arguments were not checked against the tool's schema, if they were not.
    pub unchecked: Option<&'static str>,
    /// The span that it was.
    pub trace: Option<Trace>,
    pub(crate) limit: Option<usize>,
    pub(crate) redactor: Arc<Redactor>,
}

/// How a call ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The tool did what it was asked.
    Success,
    /// It did not.
    Failure,
    /// There was no answer in time.
    Timeout,
}

impl Call {
    /// A call of `tool` without arguments.
    pub fn new(tool: impl Into<String>) -> Call {
        Call { tool: tool.into(), ..Call::default() }
    }

    /// With these arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: impl Into<Raw>) -> Call {
        self.arguments = Some(arguments.into());
        self
    }

    /// To be answered within this time.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Call {
        self.timeout = Some(timeout);
        self
    }
}

impl Outcome {
    /// What a result says about itself. Looking for the bytes first spares large results a second reading.
    pub(crate) fn of(result: Raw) -> Outcome {
        let refused = memchr::memmem::find(result.as_bytes(), b"isError").is_some()
            && result.member("isError").is_some_and(|it| it.as_bytes() == b"true");
        if refused { Outcome::Refused(result) } else { Outcome::Answered(result) }
    }
}

impl CallRecord {
    /// How it ended, in one word.
    pub fn status(&self) -> Status {
        match &self.outcome {
            Outcome::Answered(_) => Status::Success,
            Outcome::Failed(fault) if fault.kind == FaultKind::Timeout => Status::Timeout,
            Outcome::Refused(_) | Outcome::Failed(_) => Status::Failure,
        }
    }

    /// The result as it is passed on: cut to the source's limit, which the record itself is not.
    pub fn result(&self) -> Option<Raw> {
        let (Outcome::Answered(result) | Outcome::Refused(result)) = &self.outcome else { return None };
        let cut = self.limit.and_then(|limit| cut::result(result, limit));
        Some(cut.unwrap_or_else(|| result.clone()))
    }

    /// Why there is no result.
    pub fn fault(&self) -> Option<&Arc<Fault>> {
        match &self.outcome {
            Outcome::Failed(fault) => Some(fault),
            Outcome::Answered(_) | Outcome::Refused(_) => None,
        }
    }

    /// Whether its caller left before there was an answer.
    pub fn is_abandoned(&self) -> bool {
        self.fault().is_some_and(|it| it.kind == FaultKind::Abandoned)
    }

    /// What went wrong, in one line and without secrets: the tool's own words, or the fault's.
    pub fn error_text(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Answered(_) => None,
            Outcome::Refused(result) => Some(self.redactor.redact(&text_of(result))),
            Outcome::Failed(fault) => Some(fault.to_string()),
        }
    }

    /// The arguments without secrets.
    pub fn parameters(&self) -> Option<Raw> {
        self.arguments.as_ref().map(|it| self.redacted(it))
    }

    /// The beginning of some JSON, about so many bytes of it, without secrets.
    pub fn beginning(&self, raw: &Raw, length: usize) -> String {
        self.redactor.beginning(raw.as_bytes(), length)
    }

    /// JSON without secrets. Striking out happens inside strings, so what comes out is JSON again; should it not be,
    /// nothing of it is shown.
    pub fn redacted(&self, raw: &Raw) -> Raw {
        match self.redactor.struck_bytes(raw.as_bytes()) {
            None => raw.clone(),
            Some(text) => Raw::parse(text).unwrap_or_else(|_| Raw::from(serde_json::Value::from("***"))),
        }
    }
}

/// What a result says in words.
pub(crate) fn text_of(result: &Raw) -> String {
    let blocks = CallResult::read(result).content;
    let words = blocks.iter().filter_map(|it| match it {
        Item::Good(Block::Text(text)) => Some(text.as_str()),
        Item::Good(_) | Item::Odd(..) => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

impl Status {
    /// Its name.
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

// Arguments and results may hold anything, so they are not printed in passing.
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
