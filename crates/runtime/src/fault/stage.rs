//! How far a call had got when it failed.

use wharf_mcp::{Phase, Sent};

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Finding the tool.
    Resolve,
    /// Checking the arguments.
    Check,
    /// Asking whether the source may be called.
    Admit,
    /// Starting or reaching the server.
    Open,
    /// Agreeing on a protocol version.
    Handshake,
    /// Reading a list.
    Listing,
    /// Waiting for the answer.
    Call,
}

impl Stage {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Resolve => "resolve",
            Stage::Check => "check",
            Stage::Admit => "admit",
            Stage::Open => "open",
            Stage::Handshake => "handshake",
            Stage::Listing => "listing",
            Stage::Call => "call",
        }
    }
}

impl From<Phase> for Stage {
    fn from(phase: Phase) -> Stage {
        match phase {
            Phase::Open => Stage::Open,
            Phase::Handshake => Stage::Handshake,
            Phase::Listing => Stage::Listing,
            Phase::Request => Stage::Call,
        }
    }
}

/// Whether the tool may have been run, in one word.
pub fn sent_word(sent: Sent) -> &'static str {
    match sent {
        Sent::No => "no",
        Sent::Unknown => "unknown",
        Sent::Yes => "yes",
    }
}
