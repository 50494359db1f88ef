//! Arbitrary settings that are passed on: to a server, or to the provider of a model.

use std::fmt;

/// Arbitrary settings, as two JSON trees: one to send and one to show.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    pub(crate) value: serde_json::Value,
    pub(crate) shown: serde_json::Value,
}

impl ServerConfig {
    /// Returns the real settings. Use only to pass them on.
    pub fn expose(&self) -> &serde_json::Value {
        &self.value
    }

    /// Returns the settings in the form that may be shown.
    pub fn shown(&self) -> &serde_json::Value {
        &self.shown
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown)
    }
}
