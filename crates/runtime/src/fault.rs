//! Describes the failure of a server for users: what failed, which server, which command or URL, why, and what to do.

mod excerpt;
mod hint;
mod stage;

use crate::{argument_schema::ArgumentError, redact::Redactor};
pub use hint::{KnownCause, known_causes};
pub use stage::{Stage, sent_word};
use std::{fmt, time::Duration};
use wharf_config::{Endpoint, Program, Source};
use wharf_mcp::{Class, Exit, Failure, Phase, RpcError, Sent};

/// Delay before a retry when the process limit is reached.
const PROCESS_LIMIT_RETRY_DELAY: Duration = Duration::from_secs(5);

/// A failed call or connection.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Kind of the error.
    pub kind: FaultKind,
    /// Name of the source.
    pub source: String,
    /// Command or URL, in the form that may be shown.
    pub target: String,
    /// Immediate cause.
    pub cause: String,
    /// Relevant lines of the server's stderr, with secrets redacted.
    pub stderr: String,
    /// Advice for fixing the problem.
    pub hint: Option<String>,
    /// Stage in which the failure occurred.
    pub phase: Stage,
    /// Whether the request was sent and may have had an effect.
    pub sent: Sent,
    /// Exit status of the server's process, if it ended.
    pub exit: Option<Exit>,
    /// JSON-RPC error from the server, unchanged.
    pub rpc: Option<RpcError>,
    /// HTTP status from the server, if it explains the failure.
    pub status: Option<u16>,
    /// Delay before a retry, if known.
    pub retry_after: Option<Duration>,
    /// Every error in the arguments, if the kind is [`FaultKind::Arguments`].
    pub argument_errors: Vec<ArgumentError>,
}

/// Kinds of error. [`FaultKind::as_str`] returns their public names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The server could not be started or reached, or it disconnected.
    Connection,
    /// No response arrived within the timeout.
    Timeout,
    /// The server violated the protocol or returned an error.
    Protocol,
    /// The tool does not exist.
    ToolNotFound,
    /// The tool is quarantined and must not be called.
    Quarantined,
    /// An operator disabled the tool.
    Disabled,
    /// The tool or its package differs from the lock.
    LockMismatch,
    /// There is no such stored result, or it belongs to another principal.
    ResultNotFound,
    /// The call is not in the recording that answers in place of the server.
    NotRecorded,
    /// The arguments do not match the tool's schema.
    Arguments,
    /// The circuit breaker of the source is open after too many failures.
    BreakerOpen,
    /// The process limit is reached, so the server cannot be started.
    ProcessLimitReached,
    /// The source is registered but cannot be used in its current state.
    NotReady,
    /// wharf is shutting down.
    Closing,
    /// The caller disconnected before the response arrived.
    Abandoned,
}

impl Fault {
    pub(crate) fn of(source: &Source, failure: &Failure, redactor: &Redactor) -> Fault {
        let stderr = failure.disconnect.as_ref().map(|it| excerpt::excerpt(&it.stderr)).unwrap_or_default();
        Fault {
            kind: match failure.class {
                Class::Connect | Class::Closed => FaultKind::Connection,
                Class::Timeout => FaultKind::Timeout,
                Class::Protocol | Class::Rpc => FaultKind::Protocol,
            },
            source: source.name.shown().to_owned(),
            target: target(source),
            cause: redactor.redact(&failure.what),
            hint: hint::hint(source, failure, redactor),
            stderr: redactor.redact(&stderr),
            phase: failure.phase.into(),
            // Only a request counts as sent. The messages of a handshake or a listing have no effect that the caller
            // asked for.
            sent: if failure.phase == Phase::Request { failure.sent } else { Sent::No },
            exit: failure.disconnect.as_ref().and_then(|it| it.exit),
            rpc: failure.rpc.clone(),
            status: failure.status,
            retry_after: failure.retry_after,
            argument_errors: Vec::new(),
        }
    }

    /// Creates a fault that no server is involved in.
    pub(crate) fn local(
        kind: FaultKind,
        phase: Stage,
        cause: impl Into<String>,
        hint: Option<String>,
    ) -> Fault {
        Fault {
            kind,
            source: String::new(),
            target: String::new(),
            cause: cause.into(),
            stderr: String::new(),
            hint,
            phase,
            sent: Sent::No,
            exit: None,
            rpc: None,
            status: None,
            retry_after: None,
            argument_errors: Vec::new(),
        }
    }

    /// Creates the fault for a registered source that cannot be used. No server is started or contacted.
    pub fn not_ready(source: &str, cause: impl Into<String>, hint: impl Into<String>) -> Fault {
        let fault = Fault::local(FaultKind::NotReady, Stage::Resolve, cause, Some(hint.into()));
        Fault { source: source.to_owned(), ..fault }
    }

    /// Creates the fault for reaching the process limit. It does not count against the source.
    pub(crate) fn process_limit_reached(limit: usize) -> Fault {
        let cause = format!("too many server processes (limit {limit})");
        let hint = "stop idle servers with `idle_stop`, or raise `max_processes` in [calls] of wharf.toml";
        let fault = Fault::local(FaultKind::ProcessLimitReached, Stage::Open, cause, Some(hint.to_owned()));
        Fault { retry_after: Some(PROCESS_LIMIT_RETRY_DELAY), ..fault }
    }

    /// Creates the fault for a stored result that is unknown, expired, or another principal's. They look the same.
    pub fn result_not_found(id: &str) -> Fault {
        let cause = format!("there is no result '{id}'");
        let hint = "results are kept for a limited time; call the tool again".to_owned();
        Fault::local(FaultKind::ResultNotFound, Stage::Resolve, cause, Some(hint))
    }

    pub(crate) fn closing() -> Fault {
        Fault::local(FaultKind::Closing, Stage::Admit, "wharf is shutting down", None)
    }

    /// Creates the fault for a call that was in flight when the grace period of the shutdown ended.
    pub(crate) fn aborted() -> Fault {
        Fault { phase: Stage::Call, sent: Sent::Unknown, ..Fault::closing() }
    }

    /// Creates the fault for a deadline that passed before anything was sent. It does not count against the source.
    pub(crate) fn deadline_exceeded() -> Fault {
        let hint = "allow more time; the server continues to start".to_owned();
        Fault::local(FaultKind::Timeout, Stage::Admit, "the server was not ready in time", Some(hint))
    }

    /// Adds the source to the fault of a call that never reached it.
    pub(crate) fn with_source(source: &Source, fault: Fault) -> Fault {
        Fault { source: source.name.shown().to_owned(), target: target(source), ..fault }
    }

    /// Returns a one-line description of the failure.
    pub fn message(&self) -> String {
        match self.failed_operation() {
            Some(failed_operation) => {
                format!("{failed_operation} `{}` ({}): {}", self.source, self.target, self.cause)
            }
            None => self.cause.clone(),
        }
    }

    /// Returns the failed operation on the server, or `None` if it did not get that far.
    fn failed_operation(&self) -> Option<&'static str> {
        match self.phase {
            Stage::Resolve | Stage::Check | Stage::Admit => None,
            _ if self.source.is_empty() => None,
            Stage::Open => Some("could not reach"),
            Stage::Handshake => Some("could not begin a session with"),
            Stage::Listing => Some("could not read the lists of"),
            Stage::Call => Some("the request failed at"),
        }
    }
}

impl FaultKind {
    /// Returns the public name of the error kind.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Connection => "MCPConnectionError",
            FaultKind::Timeout => "MCPTimeoutError",
            FaultKind::Protocol => "MCPProtocolError",
            FaultKind::ToolNotFound | FaultKind::Quarantined => "MCPToolNotFoundError",
            FaultKind::BreakerOpen | FaultKind::ProcessLimitReached => "MCPConnectionError",
            FaultKind::NotReady => "MCPConfigError",
            FaultKind::LockMismatch => "MCPToolChangedError",
            FaultKind::ResultNotFound => "MCPResultNotFoundError",
            FaultKind::NotRecorded => "MCPNotRecordedError",
            FaultKind::Abandoned => "MCPCancelledError",
            FaultKind::Arguments | FaultKind::Closing | FaultKind::Disabled => "MCPError",
        }
    }
}

/// Returns the command line or URL in the form that may be shown.
fn target(source: &Source) -> String {
    match &source.endpoint {
        Endpoint::Builtin(builtin) => builtin.as_str().to_owned(),
        Endpoint::Stdio(launch) => {
            let program = match &launch.program {
                Program::Launcher(launcher) => launcher.as_str().to_owned(),
                Program::Interpreter(interpreter) => interpreter.as_str().to_owned(),
                Program::Granted(path) => path.display().to_string(),
            };
            let args = launch.args.iter().map(|it| it.value.shown().to_owned());
            [program].into_iter().chain(args).collect::<Vec<_>>().join(" ")
        }
        Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => without_query(remote.shown_url.shown()),
        Endpoint::WebSocket(_, url) => without_query(url.shown()),
    }
}

fn without_query(url: &str) -> String {
    url.split('?').next().unwrap_or_default().to_owned()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message())
    }
}

impl std::error::Error for Fault {}
