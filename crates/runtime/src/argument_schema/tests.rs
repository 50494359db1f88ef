//! Tests of accepted and rejected arguments, messages and costs. A schema is that of the tool or, for tests of a
//! single value, that of the argument `v`.

mod error_messages;
mod hostile_schemas;
mod keywords;

use super::*;
use serde_json::json;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap_or_else(|error| panic!("{text} is no JSON: {error}"))
}

fn compiled(schema: &str) -> Schema {
    Schema::compile(&raw(schema)).unwrap_or_else(|why| panic!("{schema}: {why}"))
}

/// Returns the result as one line: `fine`, `skipped`, or the errors.
fn outcome(schema: &str, arguments: &str) -> String {
    match compiled(schema).check(&raw(arguments)) {
        Check::Valid => "fine".to_owned(),
        Check::Skipped(_) => "skipped".to_owned(),
        Check::Invalid(all) => {
            let all: Vec<String> = all.iter().map(|it| format!("{} {}", it.path, it.message)).collect();
            all.join("; ")
        }
    }
}

#[test]
fn unusable_schemas_are_rejected() {
    for (schema, why) in [
        ("[]", "the schema is not an object"),
        ("true", "the schema is not an object"),
        (r#"{"type": 5}"#, "`type` is 5 in the schema, which is not a type"),
        (r#"{"type": ["string", null]}"#, "`type` is null in the schema, which is not a type"),
        (r#"{"properties": {"a": 5}}"#, "the schema has 5 where a schema is expected"),
        (r#"{"properties": "a"}"#, "`properties` is \"a\" in the schema, but an object is expected"),
        (r#"{"maximum": 1e999}"#, "the schema has a number that is too large"),
    ] {
        assert_eq!(Schema::compile(&raw(schema)).map(drop), Err(why.to_owned()), "{schema}");
    }
}

#[test]
fn odd_schemas_are_accepted_or_skipped() {
    for (schema, arguments, expected) in [
        // Some languages serialize an empty map as a list and an empty list as null.
        (r#"{"type": "object", "properties": []}"#, r#"{"a": 1}"#, "fine"),
        (r#"{"type": "object", "properties": null, "required": null}"#, "{}", "fine"),
        (r#"{"properties": {"a": {"type": "string", "required": true}}}"#, r#"{"a": "x"}"#, "fine"),
        (r#"{"type": "any"}"#, "5", "skipped"),
        (r#"{"type": []}"#, "5", "skipped"),
        (r#"{"enum": []}"#, "5", "skipped"),
        (r#"{"minimum": "5"}"#, "1", "skipped"),
        (r#"{"minLength": -1}"#, r#""a""#, "skipped"),
        (r##"{"$ref": "#%zz"}"##, "1", "skipped"),
        (r##"{"$ref": "#/definitions/missing"}"##, "1", "skipped"),
        // Nothing outside of the document is fetched, and identifiers in it are not followed.
        (r#"{"properties": {"a": {"$ref": "https://example.com/a.json"}}}"#, r#"{"a": 1}"#, "skipped"),
        (r#"{"items": {"$ref": "other.json#/a"}}"#, "[1]", "skipped"),
        (r#"{"$defs": {"unused": {"$ref": "file:///etc/passwd"}}}"#, "1", "fine"),
        (
            r#"{"properties": {"a": {"$ref": "file:///etc/passwd"}}, "required": ["b"]}"#,
            r#"{"a": 1}"#,
            "arguments.b is missing",
        ),
        (r#"{"$schema": "https://example.com/mine", "type": "string"}"#, "1", "skipped"),
        (r#"{"type": "string", "nullable": true}"#, "null", "fine"),
        (r#"{"minimum": 5, "exclusiveMinimum": true}"#, "5", "skipped"),
        (r#"{"minimum": 5, "exclusiveMinimum": true}"#, "4", "arguments is 4, but at least 5 is required"),
    ] {
        assert_eq!(outcome(schema, arguments), expected, "{schema} against {arguments}");
    }
}

#[test]
fn undecodable_arguments_are_skipped() {
    let schema = compiled(r#"{"type": "object"}"#);
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for arguments in [deep.as_str(), "1e999"] {
        let arguments = raw(arguments);
        assert!(matches!(schema.check(&arguments), Check::Skipped(_)));
    }
}
