//! One tool of a server: as the server lists it, and as agent.yaml shows it.

use super::shown_definition::{ArgumentMapping, ShownDefinition};
use crate::{argument_schema::Schema, lock::locked_item};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};
use wharf_config::{LockedItem, Overrides};
use wharf_mcp::{
    Raw,
    model::{Item, Tool},
};

/// Maximum length of a shown description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;

/// The `_meta` key under which a tool declares aliases of its arguments: `{"alias": "name"}`.
const ALIASES: &str = "wharf/aliases";

/// A tool of a server, without a shown name. The definition is the server's, changed by the `overrides` of agent.yaml.
#[derive(Debug)]
pub struct OfferedTool {
    /// The name on the wire.
    pub wire_name: Arc<str>,
    /// The name that replaces the wire name in the shown name, if agent.yaml sets one.
    pub renamed: Option<String>,
    /// Whether agent.yaml lets clients use the tool.
    pub is_enabled: bool,
    /// The description, truncated if it is too long.
    pub description: Option<String>,
    /// The parsed tool, unless quarantined.
    pub tool: Option<Tool>,
    /// The complete definition that clients see.
    pub raw: Raw,
    /// The complete definition as the server sent it.
    pub listed: Raw,
    /// SHA-256 of the canonical JSON of the server's definition.
    pub definition_hash: String,
    /// Reason why the tool cannot be called, if quarantined.
    pub quarantined: Option<Quarantine>,
    /// Translation of a client's arguments to those of the server, if agent.yaml changes any.
    pub(crate) mapping: Option<ArgumentMapping>,
    pub(crate) schema: Option<Schema>,
    /// The locked form of the server's definition. Computed at first use, because most catalogs have no lock.
    locked: OnceLock<LockedItem>,
    /// Aliases of arguments, each with the real name.
    aliases: BTreeMap<String, String>,
}

/// Reason why a tool cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Kind of the reason.
    pub cause: QuarantineCause,
    /// Description of the reason.
    pub reason: String,
}

/// Kinds of reasons why a tool cannot be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineCause {
    /// The definition or its schema is invalid.
    Schema,
    /// The header annotations are invalid.
    Header,
    /// The server lists several different tools with this name.
    Duplicate,
    /// An override of agent.yaml does not fit the tool.
    Override,
}

impl QuarantineCause {
    /// Returns the name of the cause.
    pub fn as_str(self) -> &'static str {
        match self {
            QuarantineCause::Schema => "schema",
            QuarantineCause::Header => "header",
            QuarantineCause::Duplicate => "duplicate",
            QuarantineCause::Override => "override",
        }
    }

    /// Returns the cause with this name.
    pub fn parse(name: &str) -> Option<QuarantineCause> {
        use QuarantineCause::{Duplicate, Header, Override, Schema};
        [Schema, Header, Duplicate, Override].into_iter().find(|it| it.as_str() == name)
    }
}

impl OfferedTool {
    pub(super) fn read(raw: &Raw, overrides: &Overrides) -> OfferedTool {
        let raw = raw.detached();
        let quarantine = |cause, reason| Quarantine { cause, reason };
        let read = match Item::<Tool>::read(&raw) {
            Item::Invalid(_, why) => Err(quarantine(QuarantineCause::Schema, why)),
            Item::Valid(tool) => match tool.header_flaw() {
                Some(flaw) => Err(quarantine(QuarantineCause::Header, flaw.to_owned())),
                None => match Schema::compile(&tool.input_schema) {
                    Ok(schema) => Ok((tool, schema)),
                    Err(why) => Err(quarantine(QuarantineCause::Schema, why)),
                },
            },
        };
        let (tool, schema, quarantined) = match read {
            Ok((tool, schema)) => (Some(tool), Some(schema), None),
            Err(why) => (None, None, Some(why)),
        };
        let wire_name = text(&raw, "name").filter(|it| !it.is_empty());
        let listed = OfferedTool {
            wire_name: wire_name.map_or_else(|| "unnamed".into(), Arc::from),
            renamed: None,
            is_enabled: true,
            description: text(&raw, "description").map(truncate_description),
            definition_hash: definition_hash(&raw),
            tool,
            schema,
            quarantined,
            mapping: None,
            locked: OnceLock::new(),
            aliases: aliases(&raw),
            listed: raw.clone(),
            raw,
        };
        listed.with_override(overrides)
    }

    /// Applies the override of this tool, if agent.yaml has one.
    fn with_override(self, overrides: &Overrides) -> OfferedTool {
        let Some(changes) = overrides.find(&self.wire_name) else { return self };
        let changed = OfferedTool { is_enabled: changes.enabled, renamed: changes.name.clone(), ..self };
        let Some(tool) = &changed.tool else { return changed };
        match ShownDefinition::new(tool, changes, &changed.aliases) {
            Ok(ShownDefinition { raw, tool, schema, mapping, aliases }) => OfferedTool {
                description: text(&raw, "description").map(truncate_description),
                tool: Some(tool),
                schema: Some(schema),
                mapping,
                aliases,
                raw,
                ..changed
            },
            Err(reason) => changed.quarantine(QuarantineCause::Override, reason),
        }
    }

    pub(super) fn is_duplicate(&self) -> bool {
        self.quarantined.as_ref().is_some_and(|it| it.cause == QuarantineCause::Duplicate)
    }

    /// Returns a quarantined copy of a tool whose name is ambiguous.
    pub(super) fn as_duplicate(&self) -> OfferedTool {
        let copy = OfferedTool {
            wire_name: self.wire_name.clone(),
            renamed: self.renamed.clone(),
            is_enabled: self.is_enabled,
            description: self.description.clone(),
            tool: None,
            raw: self.raw.clone(),
            listed: self.listed.clone(),
            definition_hash: self.definition_hash.clone(),
            quarantined: None,
            mapping: None,
            schema: None,
            locked: OnceLock::new(),
            aliases: BTreeMap::new(),
        };
        let reason = "the server lists several different tools with this name".to_owned();
        copy.quarantine(QuarantineCause::Duplicate, reason)
    }

    fn quarantine(self, cause: QuarantineCause, reason: String) -> OfferedTool {
        let quarantined = Some(Quarantine { cause, reason });
        OfferedTool { tool: None, schema: None, mapping: None, quarantined, ..self }
    }

    /// Returns the server's definition as a lock stores it.
    pub fn locked(&self) -> &LockedItem {
        self.locked.get_or_init(|| locked_item(&self.listed))
    }

    /// Returns the aliases of arguments, each with the name in the schema.
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// Returns the arguments with every alias replaced by the name in the schema.
    pub(crate) fn resolve_aliases(&self, arguments: &Raw) -> Option<Raw> {
        if self.aliases.is_empty() || !arguments.is_object() {
            return None;
        }
        let mut named = arguments.clone();
        for (alias, name) in self.aliases.iter().filter(|(_, name)| arguments.member(name).is_none()) {
            if let Some(value) = named.member(alias) {
                named = named.without(&[alias]).with(name, &value);
            }
        }
        Some(named)
    }

    /// Translates the arguments of a client to those of the server, if agent.yaml changes any.
    pub(crate) fn server_arguments(&self, arguments: Option<&Raw>) -> Option<Raw> {
        let mapping = self.mapping.as_ref()?;
        let named = arguments.and_then(|it| self.resolve_aliases(it));
        Some(mapping.to_server(named.as_ref().or(arguments)))
    }

    /// Returns the arguments that the request has to repeat as HTTP headers. They are named by the server's schema.
    pub(crate) fn header_params(&self, arguments: Option<&Raw>) -> Vec<(String, String)> {
        let listed = self.mapping.as_ref().map(ArgumentMapping::listed).or(self.tool.as_ref());
        listed.map(|it| it.header_params(arguments)).unwrap_or_default()
    }
}

fn text(raw: &Raw, key: &str) -> Option<String> {
    raw.member(key).and_then(|it| it.decode::<String>().ok())
}

/// Reads the aliases of arguments from a tool's `_meta`.
fn aliases(raw: &Raw) -> BTreeMap<String, String> {
    let declared = raw.member("_meta").and_then(|it| it.member(ALIASES));
    declared.map(|it| it.decode_or_default()).unwrap_or_default()
}

fn truncate_description(mut description: String) -> String {
    description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_BYTES));
    description
}

/// Hashes a definition independently of its JSON formatting.
fn definition_hash(raw: &Raw) -> String {
    let canonical = raw.decode::<Value>().ok().and_then(|it| serde_json_canonicalizer::to_vec(&it).ok());
    // JSON that has no canonical form, such as a number beyond double precision, is hashed as received.
    let canonical = canonical.unwrap_or_else(|| raw.as_bytes().to_vec());
    Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_hash_ignores_formatting() {
        let hash = |text: &str| definition_hash(&Raw::parse(text.to_owned()).expect("JSON"));
        assert_eq!(
            hash(r#"{"name":"a","inputSchema":{}}"#),
            hash(r#"{ "inputSchema": {}, "name": "\u0061" }"#)
        );
        assert_ne!(hash(r#"{"name":"a"}"#), hash(r#"{"name":"b"}"#));
        assert_ne!(hash(r#"{"name":"a","x":1e99999}"#), hash(r#"{"name":"b","x":1e99999}"#));
    }
}
