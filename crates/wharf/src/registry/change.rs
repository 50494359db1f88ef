//! A change to a registered source: the body of a PATCH request.

use super::{
    Refusal,
    vault::{Secrets, Vault, VaultError},
};
use serde_json::Value;
use wharf_config::{self, Env, Lifecycle};
use wharf_store::SourceRow;

/// Maximum length of a description, in characters.
const LONGEST: usize = 1_000;

/// A change to a source. Missing members keep their value.
#[derive(Debug, Default)]
pub(crate) struct Change {
    enabled: Option<bool>,
    description: Option<String>,
    lifecycle: Option<Lifecycle>,
    given: Vec<Given>,
    /// Expected epoch of the source. The change is refused if the source has another one.
    pub(crate) epoch: Option<i64>,
}

/// A variable or header to set or remove.
struct Given {
    /// The member of the definition that contains it.
    section: &'static str,
    name: String,
    /// New value; `None` removes it.
    value: Option<String>,
}

impl Change {
    /// Hint that lists the valid members.
    pub(crate) const HINT: &'static str = "there are enabled, description, lifecycle (`singleton`, `transient`), \
        env and headers (each {NAME: value, or null}) and epoch";

    /// Parses the body of a request.
    pub(crate) fn read(body: &Value) -> Result<Change, String> {
        let mut change = Change::default();
        for (key, value) in body.as_object().into_iter().flatten() {
            let wrong = || format!("`{key}` cannot be that");
            match key.as_str() {
                "enabled" => change.enabled = Some(value.as_bool().ok_or_else(wrong)?),
                "description" => change.description = Some(text(value).ok_or_else(wrong)?),
                "lifecycle" | "mcp_lifecycle_mode" => {
                    change.lifecycle = Some(value.as_str().and_then(Lifecycle::parse).ok_or_else(wrong)?);
                }
                "env" | "mcp_env_vars" => change.given.extend(given("env", value).ok_or_else(wrong)?),
                "headers" => change.given.extend(given("headers", value).ok_or_else(wrong)?),
                "epoch" => change.epoch = Some(value.as_i64().ok_or_else(wrong)?),
                _ => return Err("a key means nothing here".to_owned()),
            }
        }
        let Change { enabled, description, lifecycle, given, .. } = &change;
        let nothing = enabled.is_none() && description.is_none() && lifecycle.is_none() && given.is_empty();
        if nothing { Err("there is nothing to change".to_owned()) } else { Ok(change) }
    }

    /// Applies the change to a row and validates the result.
    pub(super) fn made(self, mut row: SourceRow, vault: &Vault, env: &Env) -> Result<SourceRow, Refusal> {
        row.enabled = self.enabled.unwrap_or(row.enabled);
        if let Some(lifecycle) = self.lifecycle {
            row.lifecycle = lifecycle.as_str().to_owned();
        }
        if self.description.is_none() && self.given.is_empty() {
            return Ok(row);
        }
        let mut definition: Value = serde_json::from_str(&row.definition).unwrap_or_default();
        if let Some(description) = self.description {
            definition["description"] = Value::from(description);
        }
        let mut secrets = match vault.open(&row.id, row.secrets.as_deref()) {
            // The stored secrets can no longer be opened, so the new ones replace them.
            Err(VaultError::NoKey | VaultError::NotOurs) => Secrets::new(),
            known => known?,
        };
        self.given.into_iter().for_each(|it| it.put(&mut definition, &mut secrets));
        row.definition = definition.to_string();
        row.secrets = vault.seal(&row.id, &secrets)?;
        let (restored, diagnostics) = wharf_config::restore(&row.definition, &secrets, env);
        restored.map(|_| row).ok_or(Refusal::Wrong(diagnostics))
    }
}

impl Given {
    /// Adds the name to the definition and the value to the secrets, or removes both.
    fn put(self, definition: &mut Value, secrets: &mut Secrets) {
        let in_provider_words = definition
            .as_object()
            .is_some_and(|it| it.keys().any(|it| it == "source_type" || it.starts_with("mcp_")));
        let section = &mut definition[if in_provider_words { "mcp_env_vars" } else { self.section }];
        match self.value {
            Some(value) => {
                section[&self.name] = Value::Null;
                secrets.insert(self.name, value);
            }
            None => {
                _ = section.as_object_mut().and_then(|it| it.remove(&self.name));
                secrets.remove(&self.name);
            }
        }
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let fits = text.chars().count() <= LONGEST && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

fn given(section: &'static str, value: &Value) -> Option<Vec<Given>> {
    let one = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => return None,
        };
        Some(Given { section, name: name.clone(), value })
    };
    value.as_object()?.iter().map(one).collect()
}

// Omits the value, which is a secret.
impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.section, self.name)
    }
}
