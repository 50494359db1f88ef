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

    /// Returns whether any part of the settings is from a variable or an env file.
    pub fn is_secret(&self) -> bool {
        self.value != self.shown
    }

    /// Returns the strings that contain the value of a variable or of an env file.
    pub fn secrets(&self) -> Vec<&str> {
        let mut secrets = Vec::new();
        collect_secrets(&self.value, &self.shown, &mut secrets);
        secrets
    }

    /// Returns the settings in the form that may be shown.
    pub fn shown(&self) -> &serde_json::Value {
        &self.shown
    }
}

/// Collects the strings that differ from their shown form.
fn collect_secrets<'a>(value: &'a serde_json::Value, shown: &serde_json::Value, secrets: &mut Vec<&'a str>) {
    use serde_json::Value;
    match (value, shown) {
        (Value::String(value), Value::String(shown)) if value != shown => secrets.push(value),
        (Value::Array(values), Value::Array(shown)) => {
            values.iter().zip(shown).for_each(|(value, shown)| collect_secrets(value, shown, secrets));
        }
        (Value::Object(values), Value::Object(shown)) => {
            let pairs = values.iter().filter_map(|(key, value)| Some((value, shown.get(key)?)));
            pairs.for_each(|(value, shown)| collect_secrets(value, shown, secrets));
        }
        _ => {}
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown)
    }
}
