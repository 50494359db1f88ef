//! What client and server have agreed on.

use crate::{Raw, Routing};
use std::borrow::Cow;

/// The version of the stateless era.
pub const MODERN: &str = "2026-07-28";

/// The version we offer in `initialize`; never one of the stateless era.
pub const LATEST_LEGACY: &str = "2025-11-25";

/// The versions with a handshake, newest first.
pub(crate) const LEGACY: [&str; 4] = [LATEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// The only version in which several messages may share a frame.
pub(crate) const BATCHING: &str = "2025-03-26";

/// Which of the two protocols is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize`, then a stateful session.
    Legacy,
    /// No handshake; every request says all about itself.
    Modern,
}

/// What is known about a server's era before connecting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraHint {
    /// Nothing: find out.
    #[default]
    Auto,
    /// It was this one before: try it first.
    Cached(Era),
    /// It has to be this one.
    Only(Era),
}

/// The outcome of the handshake.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The era.
    pub era: Era,
    /// The protocol version.
    pub version: Cow<'static, str>,
    /// What the server can do, as it said it.
    pub capabilities: Raw,
    /// Who the server says it is.
    pub server: Option<Raw>,
    /// How the server wants to be used.
    pub instructions: Option<String>,
}

impl Terms {
    /// Whether the server declared this capability, such as `tools`, or `tools` and `listChanged`.
    pub fn offers(&self, capability: &str, feature: Option<&str>) -> bool {
        let Some(declared) = self.capabilities.member(capability) else { return false };
        match feature {
            None => true,
            Some(feature) => declared.member(feature).is_some_and(|value| value.as_bytes() != b"false"),
        }
    }

    pub(crate) fn allows_batches(&self) -> bool {
        self.version == BATCHING
    }

    pub(crate) fn routing(&self, name: Option<String>, params: Vec<(String, String)>) -> Routing {
        let modern = self.era == Era::Modern;
        Routing { version: Some(self.version.clone()), modern, name, params }
    }
}
