//! A change to a registered source: the body of a PATCH request.

use super::{
    RegistryError,
    secret_sealer::{SealError, SecretSealer, Secrets},
};
use serde_json::Value;
use wharf_config::{self, Env, Lifecycle};
use wharf_store::SourceRow;

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// A change to a source. Missing members keep their value.
#[derive(Debug, Default)]
pub(crate) struct SourceChange {
    enabled: Option<bool>,
    description: Option<String>,
    lifecycle: Option<Lifecycle>,
    setting_changes: Vec<SettingChange>,
    /// Expected epoch of the source. The change is refused if the source has another one.
    pub(crate) epoch: Option<i64>,
}

/// A variable or header to set or remove.
struct SettingChange {
    /// The member of the definition that contains it.
    section: &'static str,
    name: String,
    /// New value; `None` removes it.
    value: Option<String>,
}

impl SourceChange {
    /// Hint that lists the valid members.
    pub(crate) const HINT: &'static str = "the keys are enabled, description, lifecycle (`singleton`, `transient`), \
        env and headers (each {NAME: value, or null}) and epoch";

    /// Parses the body of a request.
    pub(crate) fn read(body: &Value) -> Result<SourceChange, String> {
        let mut change = SourceChange::default();
        for (key, value) in body.as_object().into_iter().flatten() {
            let wrong = || format!("`{key}` has an invalid value");
            match key.as_str() {
                "enabled" => change.enabled = Some(value.as_bool().ok_or_else(wrong)?),
                "description" => change.description = Some(text(value).ok_or_else(wrong)?),
                "lifecycle" | "mcp_lifecycle_mode" => {
                    change.lifecycle = Some(value.as_str().and_then(Lifecycle::parse).ok_or_else(wrong)?);
                }
                "env" | "mcp_env_vars" => {
                    change.setting_changes.extend(setting_changes("env", value).ok_or_else(wrong)?)
                }
                "headers" => {
                    change.setting_changes.extend(setting_changes("headers", value).ok_or_else(wrong)?)
                }
                "epoch" => change.epoch = Some(value.as_i64().ok_or_else(wrong)?),
                _ => return Err(format!("unknown key `{}`", &key[..key.floor_char_boundary(200)])),
            }
        }
        let SourceChange { enabled, description, lifecycle, setting_changes, .. } = &change;
        let nothing =
            enabled.is_none() && description.is_none() && lifecycle.is_none() && setting_changes.is_empty();
        if nothing { Err("the change is empty".to_owned()) } else { Ok(change) }
    }

    /// Applies the change to a row and validates the result.
    pub(super) fn apply_to(
        self,
        mut row: SourceRow,
        sealer: &SecretSealer,
        env: &Env,
    ) -> Result<SourceRow, RegistryError> {
        row.enabled = self.enabled.unwrap_or(row.enabled);
        if let Some(lifecycle) = self.lifecycle {
            row.lifecycle = lifecycle.as_str().to_owned();
        }
        if self.description.is_none() && self.setting_changes.is_empty() {
            return Ok(row);
        }
        let mut definition: Value = serde_json::from_str(&row.definition).unwrap_or_default();
        if let Some(description) = self.description {
            definition["description"] = Value::from(description);
        }
        let mut secrets = match sealer.open(&row.id, row.secrets.as_deref()) {
            // The stored secrets can no longer be opened, so the new ones replace them.
            Err(SealError::NoKey | SealError::WrongKey) => Secrets::new(),
            known => known?,
        };
        self.setting_changes.into_iter().for_each(|it| it.apply(&mut definition, &mut secrets));
        row.definition = definition.to_string();
        row.secrets = sealer.seal(&row.id, &secrets)?;
        let (restored, diagnostics) = wharf_config::restore(&row.definition, &secrets, env);
        restored.map(|_| row).ok_or(RegistryError::Invalid(diagnostics))
    }
}

impl SettingChange {
    /// Adds the name to the definition and the value to the secrets, or removes both.
    fn apply(self, definition: &mut Value, secrets: &mut Secrets) {
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
    let fits = text.chars().count() <= MAX_DESCRIPTION_CHARS && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

fn setting_changes(section: &'static str, value: &Value) -> Option<Vec<SettingChange>> {
    let one = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => return None,
        };
        Some(SettingChange { section, name: name.clone(), value })
    };
    value.as_object()?.iter().map(one).collect()
}

// Omits the value, which is a secret.
impl std::fmt::Debug for SettingChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.section, self.name)
    }
}
