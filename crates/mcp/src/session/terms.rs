//! Negotiated protocol version and server capabilities.

use crate::{Raw, Routing};
use std::borrow::Cow;

/// Protocol version of the stateless era.
pub const MODERN: &str = "2026-07-28";

/// Protocol version offered in `initialize`; never 2026-07-28.
pub const LATEST_LEGACY: &str = "2025-11-25";

/// Protocol versions with a handshake, newest first.
pub(crate) const LEGACY: [&str; 4] = [LATEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// Only protocol version with JSON-RPC batches.
pub(crate) const BATCHING: &str = "2025-03-26";

/// Protocol era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Handshake era: `initialize`, then a stateful session.
    Legacy,
    /// 2026-07-28 era: no handshake; every request is self-contained.
    Modern,
}

impl Era {
    /// Returns the name of the era.
    pub fn as_str(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }
}

/// Prior knowledge about a server's era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraHint {
    /// No hint: detect the era.
    #[default]
    Auto,
    /// Era of the previous connection: try it first.
    Cached(Era),
    /// Required era.
    Only(Era),
}

/// Result of the handshake.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Protocol era.
    pub era: Era,
    /// Protocol version.
    pub version: Cow<'static, str>,
    /// Declared capabilities of the server, as raw JSON.
    pub capabilities: Raw,
    /// Name and version of the server (`serverInfo`).
    pub server: Option<Raw>,
    /// Usage instructions from the server.
    pub instructions: Option<String>,
}

/// Returns whether declared capabilities include this one, such as `tools`, or a feature of it, such as `listChanged`.
pub fn offers(capabilities: &Raw, capability: &str, feature: Option<&str>) -> bool {
    let Some(declared) = capabilities.member(capability) else { return false };
    match feature {
        None => true,
        Some(feature) => declared.member(feature).is_some_and(|value| value.as_bytes() != b"false"),
    }
}

impl Terms {
    /// Returns whether the server declared a capability, such as `tools`, or a feature of it, such as `listChanged`.
    pub fn offers(&self, capability: &str, feature: Option<&str>) -> bool {
        offers(&self.capabilities, capability, feature)
    }

    pub(crate) fn allows_batches(&self) -> bool {
        self.version == BATCHING
    }

    /// Returns the header values for a message of this session.
    pub(crate) fn routing(&self, name: Option<String>, params: Vec<(String, String)>) -> Routing {
        let modern = self.era == Era::Modern;
        Routing { version: Some(self.version.clone()), modern, name, params }
    }
}
