//! A failure of a server in the user's words: what failed, which server, which command or address, why, what to do.

mod excerpt;
mod hint;
mod stage;

use crate::{
    config::{Endpoint, Program, Source},
    redact::Redactor,
};
pub use hint::{KnownCause, known_causes};
pub use stage::{Stage, sent_word};
use std::{fmt, time::Duration};
use wharf_mcp::{Class, Exit, Failure, Phase, RpcError, Sent};

/// When there may be room for one more process.
const CROWDED: Duration = Duration::from_secs(5);

/// What went wrong with a server.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind of error.
    pub kind: FaultKind,
    /// The source, as its entry names it.
    pub source: String,
    /// The command or address, in the form that may be shown.
    pub target: String,
    /// Why, one level deep.
    pub cause: String,
    /// The lines of the server's stderr that say why, without secrets.
    pub stderr: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What was being done.
    pub phase: Stage,
    /// Whether the request can have had an effect.
    pub sent: Sent,
    /// How the server's process ended, if it did.
    pub exit: Option<Exit>,
    /// The error that the server answered with, as it came.
    pub rpc: Option<RpcError>,
    /// The HTTP status that the server answered with, where that explains it.
    pub status: Option<u16>,
    /// How long to wait before another try, where that is known.
    pub retry_after: Option<Duration>,
}

/// The kinds of error, by the names they are known under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The server could not be started or reached, or went away.
    Connection,
    /// There was no answer in time.
    Timeout,
    /// The server broke the protocol, or answered with an error.
    Protocol,
    /// There is no such tool.
    ToolNotFound,
    /// The tool may not be called: it is quarantined.
    Quarantined,
    /// The tool may not be called: an operator has switched it off.
    Disabled,
    /// The arguments are not what the tool takes.
    Arguments,
    /// The source rests after too many failures.
    Resting,
    /// As many servers run as may: no process is started for this one.
    Crowded,
    /// The source is registered and cannot be used as it is.
    NotReady,
    /// We are shutting down.
    Closing,
    /// The caller went away before there was an answer.
    Abandoned,
}

impl Fault {
    pub(crate) fn of(source: &Source, failure: &Failure, redactor: &Redactor) -> Fault {
        let stderr = failure.goodbye.as_ref().map(|it| excerpt::excerpt(&it.stderr)).unwrap_or_default();
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
            // What was sent to begin a session, or to list, is not what the caller wants to have sent.
            sent: if failure.phase == Phase::Request { failure.sent } else { Sent::No },
            exit: failure.goodbye.as_ref().and_then(|it| it.exit),
            rpc: failure.rpc.clone(),
            status: failure.status,
            retry_after: failure.retry_after,
        }
    }

    /// A fault that no server has a part in.
    pub(crate) fn ours(
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
        }
    }

    /// A source that is registered and cannot be used: nothing is started or asked for it.
    pub fn not_ready(source: &str, cause: impl Into<String>, hint: impl Into<String>) -> Fault {
        let fault = Fault::ours(FaultKind::NotReady, Stage::Resolve, cause, Some(hint.into()));
        Fault { source: source.to_owned(), ..fault }
    }

    /// A process that may not be started beside so many others. That says nothing about the source.
    pub(crate) fn crowded(most: usize) -> Fault {
        let cause = format!("as many servers run as processes as may: {most}");
        let hint = "let those end that nobody uses (`idle_stop`), or allow more: `max_processes` in [calls] of wharf.toml";
        let fault = Fault::ours(FaultKind::Crowded, Stage::Open, cause, Some(hint.to_owned()));
        Fault { retry_after: Some(CROWDED), ..fault }
    }

    pub(crate) fn closing() -> Fault {
        Fault::ours(FaultKind::Closing, Stage::Admit, "wharf is shutting down", None)
    }

    /// A call that was under way when we gave up waiting for it.
    pub(crate) fn cut_off() -> Fault {
        Fault { phase: Stage::Call, sent: Sent::Unknown, ..Fault::closing() }
    }

    /// A caller whose time was up before anything was sent: that says nothing about the source.
    pub(crate) fn too_late() -> Fault {
        let hint = "give it more time; a server that is being started goes on starting".to_owned();
        Fault::ours(FaultKind::Timeout, Stage::Admit, "the server was not ready in time", Some(hint))
    }

    /// A call that never reached this source.
    pub(crate) fn before(source: &Source, fault: Fault) -> Fault {
        Fault { source: source.name.shown().to_owned(), target: target(source), ..fault }
    }

    /// What failed, on one line.
    pub fn message(&self) -> String {
        match self.doing() {
            Some(doing) => format!("{doing} `{}` ({}): {}", self.source, self.target, self.cause),
            None => self.cause.clone(),
        }
    }

    /// What was being done with a server, if it came to that.
    fn doing(&self) -> Option<&'static str> {
        match self.phase {
            Stage::Resolve | Stage::Check | Stage::Admit => None,
            _ if self.source.is_empty() => None,
            Stage::Open => Some("could not reach"),
            Stage::Handshake => Some("could not begin a session with"),
            Stage::Listing => Some("could not list what is offered by"),
            Stage::Call => Some("the request failed at"),
        }
    }
}

impl FaultKind {
    /// The name that users and programs know it by.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Connection => "MCPConnectionError",
            FaultKind::Timeout => "MCPTimeoutError",
            FaultKind::Protocol => "MCPProtocolError",
            FaultKind::ToolNotFound | FaultKind::Quarantined => "MCPToolNotFoundError",
            FaultKind::Resting | FaultKind::Crowded => "MCPConnectionError",
            FaultKind::NotReady => "MCPConfigError",
            FaultKind::Arguments | FaultKind::Closing | FaultKind::Abandoned | FaultKind::Disabled => {
                "MCPError"
            }
        }
    }
}

/// The command line or the address, as it may be shown.
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
