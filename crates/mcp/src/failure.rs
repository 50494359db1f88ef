//! How a request or a connection fails, and what is known about it.
//!
//! The reader of a failure wants four things: whose fault it is ([`Class`]), how far things got ([`Phase`]), whether
//! the request can have had an effect ([`Sent`]), and what the server said before it went ([`Goodbye`]).

use crate::RpcError;
use std::{fmt, ops::Deref, sync::Arc, time::Duration};

/// A failed request or connection. Reads as its [`Detail`].
#[derive(Clone, Debug)]
pub struct Failure(Box<Detail>);

/// What is known about a failure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detail {
    /// What kind of failure it is.
    pub class: Class,
    /// What was being done.
    pub phase: Phase,
    /// Whether the request reached the server.
    pub sent: Sent,
    /// One level of explanation, in small letters.
    pub what: String,
    /// The error the server answered with, for [`Class::Rpc`].
    pub rpc: Option<RpcError>,
    /// The HTTP status the server answered with, where it was one that explains the failure.
    pub status: Option<u16>,
    /// The `WWW-Authenticate` header that came with the status.
    pub challenge: Option<String>,
    /// How long the server wants to be left alone, where it says so.
    pub retry_after: Option<Duration>,
    /// How the connection ended, where it did.
    pub goodbye: Option<Arc<Goodbye>>,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The server could not be started or reached.
    Connect,
    /// There was no answer in time.
    Timeout,
    /// The server said something that is not MCP, or broke a limit.
    Protocol,
    /// The connection ended.
    Closed,
    /// The server answered with an error.
    Rpc,
}

/// What was being done when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Starting or reaching the server.
    Open,
    /// Agreeing on a protocol version.
    Handshake,
    /// Reading a list.
    Listing,
    /// Any other request.
    Request,
}

/// Whether a request reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It certainly did not: repeating it is safe.
    No,
    /// It was written; whether it had an effect cannot be known.
    Unknown,
    /// The server answered it.
    Yes,
}

/// How a connection ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goodbye {
    /// The cause, in small letters.
    pub cause: String,
    /// Whether the server broke the protocol, so that we hung up.
    pub protocol: bool,
    /// How the process ended, if there was one and it did.
    pub exit: Option<Exit>,
    /// The last of what it wrote to stderr.
    pub stderr: String,
    /// How many lines of its output were no messages.
    pub noise: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Failure {
    /// A failure of which only this much is known.
    pub fn new(class: Class, phase: Phase, sent: Sent, what: impl Into<String>) -> Failure {
        let what = what.into();
        let (rpc, status, challenge, retry_after, goodbye) = (None, None, None, None, None);
        Failure(Box::new(Detail { class, phase, sent, what, rpc, status, challenge, retry_after, goodbye }))
    }

    /// The server could not be started or reached.
    pub fn connect(what: impl Into<String>) -> Failure {
        Failure::new(Class::Connect, Phase::Open, Sent::No, what)
    }

    /// A request was answered, but not by the server that it was meant for.
    pub fn unreached(what: impl Into<String>) -> Failure {
        Failure::new(Class::Connect, Phase::Request, Sent::Unknown, what)
    }

    /// The server broke the protocol while answering.
    pub fn protocol(what: impl Into<String>) -> Failure {
        Failure::new(Class::Protocol, Phase::Request, Sent::Unknown, what)
    }

    /// There was no answer in time.
    pub fn timeout(sent: Sent) -> Failure {
        Failure::new(Class::Timeout, Phase::Request, sent, "no answer in time")
    }

    /// The connection ended before the answer.
    pub fn closed(sent: Sent, goodbye: Arc<Goodbye>) -> Failure {
        let class = if goodbye.protocol { Class::Protocol } else { Class::Closed };
        let what = goodbye.to_string();
        let mut failure = Failure::new(class, Phase::Request, sent, what);
        failure.0.goodbye = Some(goodbye);
        failure
    }

    /// The server answered with an error.
    pub fn rpc(error: RpcError) -> Failure {
        let what = format!("the server answered with an error: {error}");
        let mut failure = Failure::new(Class::Rpc, Phase::Request, Sent::Yes, what);
        failure.0.rpc = Some(error);
        failure
    }

    /// The same failure, met while doing something else than a plain request.
    #[must_use]
    pub fn during(mut self, phase: Phase) -> Failure {
        self.0.phase = phase;
        self
    }

    /// The same failure, explained by an HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Failure {
        self.0.status = Some(status);
        self
    }

    /// The same failure, with what the server says about credentials.
    #[must_use]
    pub fn with_challenge(mut self, challenge: Option<String>) -> Failure {
        self.0.challenge = challenge;
        self
    }

    /// The same failure, with how long the server wants to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Failure {
        self.0.retry_after = wait;
        self
    }

    /// The same failure, with the server's last words.
    #[must_use]
    pub fn with_goodbye(mut self, goodbye: Arc<Goodbye>) -> Failure {
        self.0.goodbye.get_or_insert(goodbye);
        self
    }

    /// The code of the error the server answered with.
    pub fn rpc_code(&self) -> Option<i64> {
        self.rpc.as_ref().map(|error| error.code)
    }
}

impl Deref for Failure {
    type Target = Detail;

    fn deref(&self) -> &Detail {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

impl Goodbye {
    /// An end with nothing but a cause.
    pub fn because(cause: impl Into<String>) -> Goodbye {
        Goodbye { cause: cause.into(), ..Goodbye::default() }
    }

    /// We hung up, because the server broke the protocol.
    pub fn breach(cause: impl Into<String>) -> Goodbye {
        Goodbye { protocol: true, ..Goodbye::because(cause) }
    }
}

impl fmt::Display for Goodbye {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match self.exit {
            Some(Exit::Code(code)) => write!(f, " (exit code {code})"),
            Some(Exit::Signal(signal)) => write!(f, " (signal {signal})"),
            None => Ok(()),
        }
    }
}
