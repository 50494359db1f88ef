//! Tests schemas with the text that fits them.

use super::*;
use serde_json::json;

fn read(schema: &Value) -> ValueType {
    SchemaReader::new(schema).read(schema)
}

#[test]
fn text_is_converted_by_the_schema() {
    for (schema, text, expected) in [
        (json!({ "type": "integer" }), "2", Some("2")),
        (json!({ "type": "integer" }), "-12345678901234567890123", Some("-12345678901234567890123")),
        (json!({ "type": "integer" }), "2.0", Some("2.0")),
        (json!({ "type": "integer" }), "2.5", None),
        (json!({ "type": "integer" }), "1e3", None),
        (json!({ "type": "integer" }), "007", None),
        (json!({ "type": "integer" }), "2 ", None),
        (json!({ "type": "integer" }), "two", None),
        (json!({ "type": "integer" }), "", None),
        (json!({ "type": "number" }), "1e99999", Some("1e99999")),
        (json!({ "type": "number" }), "0.10", Some("0.10")),
        (json!({ "type": "number" }), "true", None),
        (json!({ "type": "boolean" }), "true", Some("true")),
        (json!({ "type": "boolean" }), "yes", None),
        (json!({ "type": "string" }), "2", Some("\"2\"")),
        (json!({ "type": "string" }), "", Some("\"\"")),
        (json!({ "type": "string" }), "a\"b", Some("\"a\\\"b\"")),
        (json!({ "type": ["integer", "null"] }), "3", Some("3")),
        (json!({ "type": ["integer", "null"] }), "null", Some("null")),
        (json!({ "type": "integer", "nullable": true }), "null", Some("null")),
        (json!({ "type": ["string", "null"] }), "null", Some("\"null\"")),
        (json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }), "3", Some("3")),
        (json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }), "3", Some("\"3\"")),
        (json!({ "anyOf": [{ "type": "integer" }, {}] }), "3", Some("\"3\"")),
        (json!({ "type": "object", "anyOf": [{ "required": ["a"] }] }), "{\"a\":1}", Some("{\"a\":1}")),
        (json!({ "allOf": [{ "type": "boolean" }] }), "true", Some("true")),
        (json!({}), "3", Some("\"3\"")),
        (json!(true), "3", Some("\"3\"")),
        (json!({ "$ref": "https://example.com/x" }), "3", Some("\"3\"")),
        (json!({ "enum": ["low", "high"] }), "low", Some("\"low\"")),
        (json!({ "enum": ["low", "high"] }), "middle", None),
        (json!({ "enum": [1, 2, "3"] }), "2", Some("2")),
        (json!({ "enum": [1, 2, "3"] }), "3", Some("\"3\"")),
        (json!({ "const": true }), "true", Some("true")),
        (json!({ "type": "array", "items": { "type": "string" } }), "a, b", Some("[\"a\",\"b\"]")),
        (json!({ "type": "array", "items": { "type": "string" } }), "", Some("[]")),
        (json!({ "type": "array", "items": { "type": "string" } }), "[\"a,b\"]", Some("[\"a,b\"]")),
        (json!({ "type": "array", "items": { "type": "integer" } }), "1,2", Some("[1,2]")),
        (json!({ "type": "array", "items": { "type": "integer" } }), "1,x", None),
        (json!({ "type": "array" }), "a,1", Some("[\"a\",\"1\"]")),
        (
            json!({ "type": "array", "items": { "type": "object" } }),
            "{\"a\":1,\"b\":2}",
            Some("[{\"a\":1,\"b\":2}]"),
        ),
        (json!({ "type": "object" }), "{\"a\":1}", Some("{\"a\":1}")),
        (json!({ "type": "object" }), "a", None),
    ] {
        assert_eq!(read(&schema).convert(text).as_deref(), expected, "{text:?} for {schema}");
    }
}

#[test]
fn references_are_followed_within_the_document_up_to_a_limit() {
    let schema = json!({ "$defs": { "P": { "type": "integer" }, "L": { "$ref": "#/$defs/L" } } });
    let mut reader = SchemaReader::new(&schema);
    let found = json!({ "anyOf": [{ "$ref": "#/$defs/P" }, { "type": "null" }] });
    assert_eq!(reader.read(&found).convert("2").as_deref(), Some("2"));
    let endless = json!({ "$ref": "#/$defs/L" });
    assert_eq!(reader.read(&endless).convert("2").as_deref(), Some("\"2\""));
    let wide = json!({ "$defs": { "W": { "anyOf": vec![json!({ "$ref": "#/$defs/W" }); 100] } }, "$ref": "#/$defs/W" });
    assert_eq!(read(&wide).convert("2").as_deref(), Some("\"2\""));
}

#[test]
fn types_have_a_label_and_a_description() {
    for (schema, label, expected) in [
        (json!({ "type": "string" }), "string", "text"),
        (json!({ "type": "integer", "minimum": 1, "maximum": 5 }), "1..5", "a whole number from 1 to 5"),
        (
            json!({ "type": "integer", "minimum": 0, "maximum": 9007199254740991u64 }),
            "0..",
            "a whole number, at least 0",
        ),
        (json!({ "type": "number", "maximum": 1 }), "number ..1", "a number, at most 1"),
        (json!({ "type": "array", "items": { "type": "string" } }), "string[]", "a list (of text)"),
        (
            json!({ "type": "array", "items": { "type": ["string", "integer"] } }),
            "(string|integer)[]",
            "a list (of text, or a whole number)",
        ),
        (json!({ "type": "array" }), "any[]", "a list (of any value)"),
        (json!({ "enum": ["low", 2] }), "\"low\"|2", "one of low, 2"),
        (
            json!({ "anyOf": [{ "type": "boolean" }, { "type": "null" }] }),
            "boolean|null",
            "true or false, or null",
        ),
        (json!({ "type": "object" }), "object", "a JSON object"),
        (json!({}), "any", "any value"),
        (
            json!({ "enum": ["a", "b", "c", "d", "e", "f", "g", "h", "i"] }),
            "\"a\"|\"b\"|\"c\"|\"d\"|\"e\"|\"f\"|\"g\"|…",
            "one of a, b, c, d, e, f, g, …",
        ),
    ] {
        let found = read(&schema);
        assert_eq!((found.label().as_str(), found.expected().as_str()), (label, expected), "{schema}");
    }
}

#[test]
fn an_example_fits_its_own_type() {
    for (schema, example) in [
        (json!({ "type": "integer", "minimum": 1, "maximum": 5 }), "2"),
        (json!({ "type": "integer", "minimum": 10 }), "10"),
        (json!({ "type": "integer", "maximum": -3 }), "-3"),
        (json!({ "type": "array", "items": { "type": "string" } }), "[\"text\"]"),
        (json!({ "type": "boolean" }), "true"),
        (json!({ "enum": ["low"] }), "\"low\""),
    ] {
        assert_eq!(read(&schema).example(), example, "{schema}");
    }
}
