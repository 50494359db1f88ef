//! Arbitrary settings that are passed on: to a server, or to the provider of a model.

use crate::{
    json_tree::json_tree,
    masked_string::MaskedString,
    node::{Node, Value},
};
use std::fmt;

/// Arbitrary settings, as two JSON trees: one to send and one to show.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    pub(crate) value: serde_json::Value,
    pub(crate) shown: serde_json::Value,
    secrets: Vec<MaskedString>,
}

impl ServerConfig {
    /// Creates settings from a part of a file. JSON must be able to represent it.
    pub(crate) fn of(node: &Node) -> ServerConfig {
        let mut secrets = Vec::new();
        collect_secrets(node, &mut secrets);
        let (value, shown) = (json_tree(node, MaskedString::expose), json_tree(node, MaskedString::shown));
        ServerConfig { value, shown, secrets }
    }

    /// Returns the real settings. Use only to pass them on.
    pub fn expose(&self) -> &serde_json::Value {
        &self.value
    }

    /// Returns whether any part of the settings is from a variable or an env file.
    pub fn is_secret(&self) -> bool {
        self.value != self.shown
    }

    /// Returns the strings that contain the value of a variable or of an env file.
    pub fn secrets(&self) -> &[MaskedString] {
        &self.secrets
    }

    /// Returns the settings in the form that may be shown.
    pub fn shown(&self) -> &serde_json::Value {
        &self.shown
    }
}

/// Collects the strings that contain the value of a variable or of an env file.
fn collect_secrets(node: &Node, secrets: &mut Vec<MaskedString>) {
    match &node.value {
        Value::Str(text) if text.text.is_secret() => secrets.push(text.text.clone()),
        Value::Seq(items) => items.iter().for_each(|it| collect_secrets(it, secrets)),
        Value::Map(pairs) => pairs.iter().for_each(|it| collect_secrets(&it.node, secrets)),
        _ => {}
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown)
    }
}
