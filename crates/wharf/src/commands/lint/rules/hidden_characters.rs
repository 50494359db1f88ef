//! Finds characters that people do not see, and suggests the texts without them.

use serde_json::{Map, Value, json};
use wharf_config::is_invisible;

/// Returns whether a text or a name in this definition has characters that people do not see.
pub(super) fn has_hidden_characters(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().any(is_hidden),
        Value::Array(items) => items.iter().any(has_hidden_characters),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key.chars().any(is_hidden) || has_hidden_characters(value))
        }
        _ => false,
    }
}

/// Suggests an override with the same texts without such characters. If they are elsewhere too, in names or schemas, no
/// text helps, and the override switches the tool off.
pub(super) fn suggest_clean_texts(wire_name: &str, definition: &Value) -> String {
    let mut rest = definition.clone();
    let mut changes = Map::new();
    for key in ["title", "description"] {
        changes.extend(take_text(&mut rest, key).map(|text| (key.to_owned(), text)));
    }
    let properties = rest.pointer_mut("/inputSchema/properties").and_then(Value::as_object_mut);
    let arguments = properties.into_iter().flatten().filter_map(|(name, schema)| {
        Some((name.clone(), json!({ "description": take_text(schema, "description")? })))
    });
    let arguments: Map<String, Value> = arguments.collect();
    if !arguments.is_empty() {
        changes.insert("arguments".to_owned(), arguments.into());
    }
    match has_hidden_characters(&rest) {
        true => json!({ wire_name: { "enabled": false } }).to_string(),
        false => json!({ wire_name: changes }).to_string(),
    }
}

/// Takes a text that has such characters out of a definition. Returns it without them.
fn take_text(definition: &mut Value, key: &str) -> Option<Value> {
    let text = definition.get(key).filter(|it| it.is_string() && has_hidden_characters(it))?;
    let clean: String = text.as_str()?.chars().filter(|it| !is_hidden(*it)).collect();
    definition.as_object_mut()?.shift_remove(key);
    Some(clean.into())
}

fn is_hidden(c: char) -> bool {
    is_invisible(c) && !matches!(c, '\n' | '\r' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_has_the_texts_without_hidden_characters() {
        let properties = json!({ "path": { "type": "string", "description": "A\u{200b} path" }, "n": {} });
        let tool = json!({ "name": "t", "title": "T\u{202e}", "description": "d", "inputSchema": { "properties": properties } });
        let expected = json!({ "t": { "title": "T", "arguments": { "path": { "description": "A path" } } } });
        assert_eq!(suggest_clean_texts("t", &tool), expected.to_string());
        let tool =
            json!({ "name": "t", "description": "a\u{200b}", "inputSchema": { "enum": ["\u{200b}"] } });
        assert_eq!(suggest_clean_texts("t", &tool), r#"{"t":{"enabled":false}}"#);
    }
}
