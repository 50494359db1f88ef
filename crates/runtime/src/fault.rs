//! A failure of a server in the user's words: what failed, which server, which command or address, why, what to do.

mod hint;

use crate::{
    config::{Endpoint, Program, Source},
    redact::Redactor,
};
use std::fmt;
use wharf_mcp::{Class, Failure, Phase, Sent};

/// How much of a server's last words is repeated.
const TAIL_LINES: usize = 12;

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
    /// The last of what the server wrote to stderr, without secrets.
    pub stderr: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What was being done.
    pub phase: Phase,
    /// Whether the request can have had an effect.
    pub sent: Sent,
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
    /// The server has no such tool.
    ToolNotFound,
}

impl Fault {
    pub(crate) fn of(source: &Source, failure: &Failure, redactor: &Redactor) -> Fault {
        let stderr = failure.goodbye.as_ref().map(|it| tail(&it.stderr)).unwrap_or_default();
        Fault {
            kind: match failure.class {
                Class::Connect | Class::Closed => FaultKind::Connection,
                Class::Timeout => FaultKind::Timeout,
                Class::Protocol | Class::Rpc => FaultKind::Protocol,
            },
            source: source.name.shown().to_owned(),
            target: target(source),
            cause: redactor.redact(&failure.what),
            hint: hint::hint(source, failure, &stderr),
            stderr: redactor.redact(&stderr),
            phase: failure.phase,
            sent: failure.sent,
        }
    }

    /// What failed, on one line.
    pub fn message(&self) -> String {
        format!("{} `{}` ({}): {}", self.doing(), self.source, self.target, self.cause)
    }

    fn doing(&self) -> &'static str {
        match self.phase {
            Phase::Open => "could not reach",
            Phase::Handshake => "could not begin a session with",
            Phase::Listing => "could not list what is offered by",
            Phase::Request => "the request failed at",
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
            FaultKind::ToolNotFound => "MCPToolNotFoundError",
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

/// The last lines that say something.
fn tail(stderr: &str) -> String {
    // What npm warns of is not why it failed.
    let npm_failed = stderr.lines().any(|it| it.starts_with("npm error"));
    let says_something = |it: &&str| !(it.is_empty() || npm_failed && it.starts_with("npm warn"));
    let lines: Vec<&str> = stderr.lines().map(str::trim_end).filter(says_something).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message())
    }
}

impl std::error::Error for Fault {}
