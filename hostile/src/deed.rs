//! What a hostile server does: one thing after the other, instead of answering.

use std::time::Duration;

/// One thing that it does.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Says a message, framed as its transport frames messages.
    Say(Vec<u8>),
    /// Says a message of this many bytes in all: a beginning, the same byte again and again, an end.
    Long {
        /// The beginning.
        head: Vec<u8>,
        /// How much comes between.
        size: u64,
        /// The end.
        tail: Vec<u8>,
    },
    /// Writes bytes past all framing; over HTTP they are the whole response.
    Raw(Vec<u8>),
    /// Writes the same bytes again and again, past all framing, until this many bytes were written.
    Endless(Vec<u8>, u64),
    /// Writes bytes one by one, with pauses.
    Drip(Vec<u8>, Duration),
    /// Answers a POST with these bytes, where messages go another way.
    Reply(Vec<u8>),
    /// Does this many times, with pauses.
    Repeat(Box<Deed>, u64, Duration),
    /// Writes the same bytes to stderr until this many were written.
    Talk(Vec<u8>, u64),
    /// Does nothing for a while.
    Wait(Duration),
    /// Does nothing more about this request, for ever.
    Hang,
    /// Does nothing more at all, and reads nothing more.
    Freeze,
    /// Reads nothing more, and lets whoever writes to it know.
    Deafen,
    /// Closes its side of the connection.
    Close,
    /// Breaks the connection.
    Reset,
    /// Ends with this code.
    Exit(i32),
    /// Ends itself by this signal.
    Signal(i32),
    /// Starts a process by a shell, which outlives its parent as best it can.
    Spawn(&'static str),
    /// Takes no notice of TERM from now on.
    IgnoreTerm,
    /// Notes something in the ledger.
    Note(&'static str),
}

impl Deed {
    pub(crate) fn say(text: impl Into<Vec<u8>>) -> Deed {
        Deed::Say(text.into())
    }

    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Deed {
        Deed::Raw(bytes.into())
    }

    pub(crate) fn wait(milliseconds: u64) -> Deed {
        Deed::Wait(Duration::from_millis(milliseconds))
    }

    /// Whether it writes something.
    pub(crate) fn speaks(&self) -> bool {
        self.is_message() || matches!(self, Deed::Raw(_) | Deed::Endless(..) | Deed::Drip(..))
    }

    /// Whether it is one message, so that an HTTP response can be plain JSON.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self, Deed::Say(_) | Deed::Long { .. })
    }
}
