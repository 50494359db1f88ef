//! Writes the list of tools for each dialect.

use super::Dialect;
use crate::tool_list::{ToolList, ToolSpec};
use serde_json::{Map, Value, json};

/// Keywords of a schema that combine several schemas.
const UNION_KEYWORDS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Writes the tools for a dialect, in the given order.
pub(super) fn write_tools(dialect: Dialect, tools: &[ToolSpec]) -> ToolList {
    let mut tools: Vec<Value> = tools.iter().map(|tool| write_tool(dialect, tool)).collect();
    if dialect == Dialect::Anthropic
        && let Some(last) = tools.last_mut()
    {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    ToolList::new(tools)
}

fn write_tool(dialect: Dialect, tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, schema } = tool;
    let mut schema = clean_schema(schema);
    match dialect {
        // Functions of this API are strict unless the request says otherwise.
        Dialect::Responses => json!({
            "type": "function", "name": name, "description": description, "parameters": schema, "strict": false,
        }),
        Dialect::Chat | Dialect::Ollama => json!({
            "type": "function",
            "function": { "name": name, "description": description, "parameters": schema },
        }),
        Dialect::Anthropic => {
            flatten_union(&mut schema);
            json!({ "name": name, "description": description, "input_schema": schema })
        }
        Dialect::Gemini => json!({
            "name": escape_name(name), "description": description, "parametersJsonSchema": schema,
        }),
    }
}

/// Returns the schema as all providers accept it: without `$schema` and `$id`, and with an object at its root.
fn clean_schema(schema: &Value) -> Map<String, Value> {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.shift_remove("$schema");
    schema.shift_remove("$id");
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// Replaces a union at the root, which Anthropic refuses, by the object of all its properties. The executor checks
/// the true schema.
fn flatten_union(schema: &mut Map<String, Value>) {
    let unions = UNION_KEYWORDS.map(|keyword| schema.shift_remove(keyword));
    let branches = unions.iter().flatten().filter_map(Value::as_array).flatten();
    let properties: Vec<(String, Value)> = branches
        .filter_map(|branch| branch["properties"].as_object())
        .flatten()
        .map(|(name, property)| (name.clone(), property.clone()))
        .collect();
    let Some(own) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, property) in properties {
        own.entry(name).or_insert(property);
    }
}

/// Returns the name of a tool for Gemini, where a name begins with a letter or `_`.
pub(super) fn escape_name(name: &str) -> String {
    if needs_escape(name) { format!("_{name}") } else { name.to_owned() }
}

/// Returns the name that [`escape_name`] was given.
pub(super) fn unescape_name(name: &str) -> &str {
    match name.strip_prefix('_') {
        Some(inner) if needs_escape(inner) => inner,
        _ => name,
    }
}

/// Returns whether the first character that is not `_` is not a letter. Names that look like escaped ones are
/// escaped too, so that two tools never get one name.
fn needs_escape(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|it: char| !it.is_ascii_alphabetic())
}
