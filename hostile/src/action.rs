//! The actions of a hostile server. A mode is a list of them, performed in order instead of a good response.

use std::time::Duration;

/// One action.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends a message in the framing of the transport.
    Send(Vec<u8>),
    /// Sends a message of `size` bytes: a beginning, one byte repeated, and an end.
    Long {
        /// Beginning of the message.
        head: Vec<u8>,
        /// Total size of the message, in bytes.
        size: u64,
        /// End of the message.
        tail: Vec<u8>,
    },
    /// Writes bytes without framing. Over HTTP they are the complete response.
    Raw(Vec<u8>),
    /// Writes the same bytes repeatedly, without framing, up to this total.
    Endless(Vec<u8>, u64),
    /// Writes bytes one at a time, with a pause after each.
    Drip(Vec<u8>, Duration),
    /// Responds to a POST with these bytes, on a transport where messages travel on another connection.
    Reply(Vec<u8>),
    /// Repeats an action this many times, with pauses.
    Repeat(Box<Action>, u64, Duration),
    /// Writes the same bytes to stderr repeatedly, up to this total.
    Stderr(Vec<u8>, u64),
    /// Waits.
    Wait(Duration),
    /// Never finishes this request.
    Hang,
    /// Stops all activity, including reading.
    Freeze,
    /// Closes the input, so that the client's writes fail.
    CloseInput,
    /// Closes the sending side of the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// Exits with this code.
    Exit(i32),
    /// Kills this process with this signal.
    Signal(i32),
    /// Runs a shell script whose processes try to outlive the server.
    Spawn(&'static str),
    /// Ignores SIGTERM from now on.
    IgnoreTerm,
    /// Writes an entry to the action log.
    Note(&'static str),
}

impl Action {
    pub(crate) fn send(text: impl Into<Vec<u8>>) -> Action {
        Action::Send(text.into())
    }

    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Action {
        Action::Raw(bytes.into())
    }

    pub(crate) fn wait(milliseconds: u64) -> Action {
        Action::Wait(Duration::from_millis(milliseconds))
    }

    /// Returns whether the action writes to the client.
    pub(crate) fn writes_to_client(&self) -> bool {
        self.is_message() || matches!(self, Action::Raw(_) | Action::Endless(..) | Action::Drip(..))
    }

    /// Returns whether the action is one message, which an HTTP response can send as plain JSON.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self, Action::Send(_) | Action::Long { .. })
    }
}
