//! Generates values for the suite's JSON schemas.

use serde_json::{Map, Value, json};

/// Generates an object with all properties of the schema.
pub(crate) fn object(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, schema)| (name.clone(), value(schema))).collect::<Map<_, _>>().into()
}

fn value(schema: &Value) -> Value {
    if let Some(given) = schema.get("default").or_else(|| schema["enum"].get(0)) {
        return given.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(5),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => object(schema),
        Some("null") => Value::Null,
        _ => json!("sample"),
    }
}
