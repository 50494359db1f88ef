//! Stages of a call, to report how far it got before it failed.

use wharf_mcp::{Phase, Sent};

/// Stage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Looking up the tool.
    Resolve,
    /// Validating the arguments.
    Check,
    /// Waiting for permission to call the source, for example from its circuit breaker.
    Admit,
    /// Starting the server or connecting to it.
    Open,
    /// Negotiating the protocol version.
    Handshake,
    /// Listing tools, prompts or resources.
    Listing,
    /// Waiting for the response.
    Call,
}

impl Stage {
    /// Returns the name of the stage.
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

/// Returns in one word whether the tool may have run.
pub fn sent_word(sent: Sent) -> &'static str {
    match sent {
        Sent::No => "no",
        Sent::Unknown => "unknown",
        Sent::Yes => "yes",
    }
}
