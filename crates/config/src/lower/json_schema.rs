//! Checks that a value is a JSON Schema of an object: the shape of its keywords, not what they mean.

use serde_json::{Map, Value};

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// Keywords whose value is a schema.
const SCHEMAS: [&str; 9] = [
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
];
/// Keywords whose value is a mapping of schemas.
const SCHEMA_MAPS: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose value is a list of schemas.
const SCHEMA_LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Why a value is not a schema, and the JSON pointer of the error.
#[derive(Debug, PartialEq)]
pub(super) struct SchemaError {
    pub(super) why: String,
    pub(super) path: String,
}

/// Checks the JSON Schema of a final answer. The error says what is wrong and where.
pub fn check_answer_schema(schema: &Value) -> Result<(), String> {
    check_schema(schema).map_err(|SchemaError { why, path }| format!("{why} at {path}"))
}

/// Checks a schema whose values must be objects.
pub(super) fn check_schema(schema: &Value) -> Result<(), SchemaError> {
    check(schema, "")?;
    match schema.get("type") {
        None => Ok(()),
        Some(Value::String(kind)) if kind == "object" => Ok(()),
        Some(_) => Err(error("the answer must be an 'object'", "/type")),
    }
}

fn check(schema: &Value, path: &str) -> Result<(), SchemaError> {
    let keywords = match schema {
        Value::Bool(_) if !path.is_empty() => return Ok(()),
        Value::Object(keywords) => keywords,
        _ => return Err(error("not a mapping", path)),
    };
    check_shapes(keywords, path)?;
    for (keyword, value) in keywords {
        let path = format!("{path}/{}", escape(keyword));
        match keyword.as_str() {
            it if SCHEMAS.contains(&it) && !(it == "items" && value.is_array()) => check(value, &path)?,
            it if SCHEMA_MAPS.contains(&it) => {
                let schemas = value.as_object().ok_or_else(|| error("not a mapping", &path))?;
                for (name, schema) in schemas {
                    check(schema, &format!("{path}/{}", escape(name)))?;
                }
            }
            it if SCHEMA_LISTS.contains(&it) || it == "items" => {
                let schemas = value.as_array().ok_or_else(|| error("not a list", &path))?;
                for (index, schema) in schemas.iter().enumerate() {
                    check(schema, &format!("{path}/{index}"))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks the keywords that contain no schemas.
fn check_shapes(keywords: &Map<String, Value>, path: &str) -> Result<(), SchemaError> {
    let is_type = |it: &Value| it.as_str().is_some_and(|it| TYPES.contains(&it));
    let are_texts = |it: &Value| it.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    for (keyword, value) in keywords {
        let expected = match keyword.as_str() {
            "type" if is_type(value) || value.as_array().is_some_and(|it| it.iter().all(is_type)) => None,
            "type" => Some("not a type"),
            "required" if !are_texts(value) => Some("not a list of strings"),
            "enum" if !value.is_array() => Some("not a list"),
            "pattern" | "format" | "description" | "title" | "$ref" if !value.is_string() => {
                Some("not a string")
            }
            "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "multipleOf"
                if !value.is_number() =>
            {
                Some("not a number")
            }
            _ => None,
        };
        if let Some(why) = expected {
            return Err(error(why, &format!("{path}/{}", escape(keyword))));
        }
    }
    Ok(())
}

fn error(why: &str, path: &str) -> SchemaError {
    SchemaError { why: why.to_owned(), path: if path.is_empty() { "/" } else { path }.to_owned() }
}

/// Escapes a key for a JSON pointer.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
