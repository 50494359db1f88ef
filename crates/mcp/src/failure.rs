//! Describes how a request or a connection failed.
//!
//! A [`Failure`] answers four questions: the kind of failure ([`Class`]), how far things got ([`Phase`]), whether the
//! request can have had an effect ([`Sent`]), and how the connection ended ([`Disconnect`]).

use crate::RpcError;
use std::{fmt, ops::Deref, sync::Arc, time::Duration};

/// Failed request or connection. Dereferences to its [`Detail`].
#[derive(Clone, Debug)]
pub struct Failure(Box<Detail>);

/// Details of a failure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detail {
    /// Kind of failure.
    pub class: Class,
    /// Operation that failed.
    pub phase: Phase,
    /// Whether the request reached the server.
    pub sent: Sent,
    /// Explanation of one sentence, starting in lower case.
    pub what: String,
    /// Error response of the server, for [`Class::Rpc`].
    pub rpc: Option<RpcError>,
    /// HTTP status of the response, if it explains the failure.
    pub status: Option<u16>,
    /// `WWW-Authenticate` header of the response.
    pub challenge: Option<String>,
    /// Delay that the server asked for before a retry.
    pub retry_after: Option<Duration>,
    /// End of the connection, if it ended.
    pub disconnect: Option<Arc<Disconnect>>,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The server could not be started or reached.
    Connect,
    /// The response did not arrive in time.
    Timeout,
    /// The server violated the protocol or exceeded a limit.
    Protocol,
    /// The connection ended.
    Closed,
    /// The server responded with an error.
    Rpc,
}

/// Operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Starting or connecting to the server.
    Open,
    /// Negotiating the protocol version.
    Handshake,
    /// Reading a list.
    Listing,
    /// Any other request.
    Request,
}

/// Whether a request reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Certainly not: a retry is safe.
    No,
    /// Possibly: it is unknown whether it had an effect.
    Unknown,
    /// The server responded to it.
    Yes,
}

/// Describes how a connection ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disconnect {
    /// Cause, starting in lower case.
    pub cause: String,
    /// Whether we closed the connection because the server violated the protocol.
    pub protocol: bool,
    /// Exit of the process, if there was one and it has exited.
    pub exit: Option<Exit>,
    /// Last part of its stderr.
    pub stderr: String,
    /// Number of output lines that were not messages.
    pub noise: u64,
}

/// Exit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Exited with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Failure {
    /// Creates a failure without further details.
    pub fn new(class: Class, phase: Phase, sent: Sent, what: impl Into<String>) -> Failure {
        let what = what.into();
        let (rpc, status, challenge, retry_after, disconnect) = (None, None, None, None, None);
        Failure(Box::new(Detail {
            class,
            phase,
            sent,
            what,
            rpc,
            status,
            challenge,
            retry_after,
            disconnect,
        }))
    }

    /// Creates the failure of a server that could not be started or reached.
    pub fn connect(what: impl Into<String>) -> Failure {
        Failure::new(Class::Connect, Phase::Open, Sent::No, what)
    }

    /// Creates the failure of a request that something other than the intended server answered.
    pub fn unreached(what: impl Into<String>) -> Failure {
        Failure::new(Class::Connect, Phase::Request, Sent::Unknown, what)
    }

    /// Creates a failure for a protocol violation in a response.
    pub fn protocol(what: impl Into<String>) -> Failure {
        Failure::new(Class::Protocol, Phase::Request, Sent::Unknown, what)
    }

    /// Creates the failure of a request that timed out.
    pub fn timeout(sent: Sent) -> Failure {
        Failure::new(Class::Timeout, Phase::Request, sent, "no answer in time")
    }

    /// Creates the failure of a request whose connection ended before the response.
    pub fn closed(sent: Sent, disconnect: Arc<Disconnect>) -> Failure {
        let class = if disconnect.protocol { Class::Protocol } else { Class::Closed };
        let what = disconnect.to_string();
        let mut failure = Failure::new(class, Phase::Request, sent, what);
        failure.0.disconnect = Some(disconnect);
        failure
    }

    /// Creates the failure of a request that the server answered with an error.
    pub fn rpc(error: RpcError) -> Failure {
        let what = format!("the server answered with an error: {error}");
        let mut failure = Failure::new(Class::Rpc, Phase::Request, Sent::Yes, what);
        failure.0.rpc = Some(error);
        failure
    }

    /// Sets the operation that failed.
    #[must_use]
    pub fn during(mut self, phase: Phase) -> Failure {
        self.0.phase = phase;
        self
    }

    /// Marks a later step of a request that had already reached the server: repeating the request is not safe.
    #[must_use]
    pub(crate) fn after_sending(mut self) -> Failure {
        if self.0.sent == Sent::No {
            self.0.sent = Sent::Unknown;
        }
        self
    }

    /// Sets the HTTP status that explains the failure.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Failure {
        self.0.status = Some(status);
        self
    }

    /// Sets the `WWW-Authenticate` challenge.
    #[must_use]
    pub fn with_challenge(mut self, challenge: Option<String>) -> Failure {
        self.0.challenge = challenge;
        self
    }

    /// Sets the delay that the server asked for before a retry.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Failure {
        self.0.retry_after = wait;
        self
    }

    /// Adds how the connection ended, unless that is already set.
    #[must_use]
    pub fn with_disconnect(mut self, disconnect: Arc<Disconnect>) -> Failure {
        self.0.disconnect.get_or_insert(disconnect);
        self
    }

    /// Returns the code of the server's error response.
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

impl Disconnect {
    /// Creates an end with only a cause.
    pub fn because(cause: impl Into<String>) -> Disconnect {
        Disconnect { cause: cause.into(), ..Disconnect::default() }
    }

    /// Creates the end of a connection that we closed after a protocol violation.
    pub fn protocol_violation(cause: impl Into<String>) -> Disconnect {
        Disconnect { protocol: true, ..Disconnect::because(cause) }
    }
}

impl fmt::Display for Disconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match self.exit {
            Some(Exit::Code(code)) => write!(f, " (exit code {code})"),
            Some(Exit::Signal(signal)) => write!(f, " (signal {signal})"),
            None => Ok(()),
        }
    }
}
