//! Reads the parameters of a tool from its input schema.

use super::value_type::{SchemaReader, ValueType};
use crate::content::printable;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of parameters to read per tool.
const MAX_PARAMETERS: usize = 1_000;

/// Schema keywords that contain subschemas for the same object.
const COMPOSITION_KEYWORDS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Schema keywords that can allow properties that are not in `properties`.
const OPEN_KEYWORDS: [&str; 6] =
    ["patternProperties", "if", "dependentSchemas", "dependencies", "unevaluatedProperties", "$dynamicRef"];

/// The parameters of a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    pub(crate) list: Vec<Parameter>,
    /// Other accepted names, each mapped to the name of a parameter in the list.
    aliases: BTreeMap<String, String>,
    /// Whether names that are not listed may be accepted.
    pub(super) is_open: bool,
}

/// One parameter.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) is_required: bool,
    pub(crate) value_type: ValueType,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<Value>,
}

impl Parameters {
    /// Reads the input schema of a tool. Without a schema, every name is accepted.
    pub(crate) fn of(schema: &Value, aliases: BTreeMap<String, String>) -> Parameters {
        let mut reader = SchemaReader::new(schema);
        let root = reader.resolve(schema);
        let parts: Vec<&Value> = [root].into_iter().chain(composed_schemas(root, &reader)).collect();
        let mut properties: Vec<(&String, &Value)> = Vec::new();
        for (name, property) in parts.iter().filter_map(|it| it["properties"].as_object()).flatten() {
            if properties.len() < MAX_PARAMETERS && properties.iter().all(|(known, _)| *known != name) {
                properties.push((name, property));
            }
        }
        let list = properties.into_iter().map(|(name, property)| {
            let resolved = reader.resolve(property);
            let either = |key: &str| property.get(key).or_else(|| resolved.get(key));
            Parameter {
                name: name.clone(),
                is_required: is_required(root, name),
                value_type: reader.read(property),
                description: either("description").and_then(Value::as_str).map(str::to_owned),
                default: either("default").cloned(),
            }
        });
        Parameters { list: list.collect(), aliases, is_open: is_open(root) }
    }

    /// Finds a parameter by its name or alias.
    pub(super) fn find(&self, name: &str) -> Option<&Parameter> {
        let meant = self.aliases.get(name).map_or(name, String::as_str);
        self.list.iter().find(|it| it.name == meant)
    }
}

impl Parameter {
    /// Formats a valid example argument for a shell: `priority=2`.
    pub(crate) fn example(&self) -> String {
        let json = self.value_type.example();
        let name = printable(&self.name);
        match serde_json::from_str(&json) {
            Ok(Value::String(text)) => quote_for_shell(&format!("{name}={}", printable(&text))),
            Ok(Value::Array(_) | Value::Object(_)) => self.json_example(),
            _ => quote_for_shell(&format!("{name}={json}")),
        }
    }

    /// Formats a valid example argument as JSON, for a shell: `priority:=2`.
    pub(super) fn json_example(&self) -> String {
        quote_for_shell(&format!("{}:={}", printable(&self.name), printable(&self.value_type.example())))
    }
}

/// Quotes a word for a shell.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Returns the subschemas of `allOf`, `anyOf` and `oneOf` in the root.
fn composed_schemas<'a>(root: &'a Value, reader: &SchemaReader<'a>) -> Vec<&'a Value> {
    let members = COMPOSITION_KEYWORDS.iter().filter_map(|it| root[*it].as_array()).flatten();
    members.map(|it| reader.resolve(it)).collect()
}

fn is_required(root: &Value, name: &str) -> bool {
    root["required"].as_array().is_some_and(|it| it.iter().any(|it| it == name))
}

fn is_open(root: &Value) -> bool {
    let Some(root) = root.as_object().filter(|it| it.get("properties").is_some_and(Value::is_object)) else {
        return true;
    };
    let has = |key: &&str| Map::contains_key(root, *key);
    let additional = root.get("additionalProperties").is_some_and(|it| it != &Value::Bool(false));
    additional || OPEN_KEYWORDS.iter().any(has) || COMPOSITION_KEYWORDS.iter().any(has)
}
