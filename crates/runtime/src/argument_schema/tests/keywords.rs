//! Tests of every keyword: accepted and rejected values.

use super::*;

/// A schema, valid values, invalid values, and values whose check is skipped.
type Case = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

#[track_caller]
fn check(cases: &[Case]) {
    for (schema, fine, wrong, skipped) in cases {
        let schema = compiled(schema);
        let found = |value: &&str| match schema.check(&raw(value)) {
            Check::Valid => 'f',
            Check::Invalid(_) => 'w',
            Check::Skipped(_) => 's',
        };
        for (values, expected) in [(fine, 'f'), (wrong, 'w'), (skipped, 's')] {
            for value in *values {
                assert_eq!(found(value), expected, "{value} against {schema:?}");
            }
        }
    }
}

#[test]
fn keywords_for_any_value() {
    check(&[
        ("{}", &["1", "null", "{}"], &[], &[]),
        (
            r#"{"type": "integer"}"#,
            &["1", "1.0", "-3", "1e3", "18446744073709551616"],
            &["1.5", "\"1\"", "null"],
            &[],
        ),
        (r#"{"type": "number"}"#, &["1", "1.5"], &["\"1\"", "true"], &[]),
        (r#"{"type": ["string", "null"]}"#, &["\"\"", "null"], &["0", "[]"], &[]),
        (r#"{"type": "boolean"}"#, &["true"], &["0", "\"true\""], &[]),
        (
            r#"{"enum": [1, "a", null, {"b": [1]}]}"#,
            &["1.0", "\"a\"", "null", r#"{"b": [1.0]}"#],
            &["2", "\"b\"", "{}"],
            &[],
        ),
        (r#"{"const": null}"#, &["null"], &["0", "false"], &[]),
        (r#"{"const": 100000000000000000000}"#, &[], &["1", "1e21"], &["100000000000000000001"]),
        (r#"{"format": "date"}"#, &["\"no date\"", "5"], &[], &[]),
    ]);
}

#[test]
fn keywords_for_numbers() {
    check(&[
        (r#"{"minimum": 5}"#, &["5", "5.0", "6", "\"a\""], &["4", "4.9", "-1e300"], &[]),
        (r#"{"maximum": 5}"#, &["5", "-7"], &["6", "5.1", "18446744073709551615"], &[]),
        (r#"{"exclusiveMinimum": 5}"#, &["5.1"], &["5", "5.0"], &[]),
        (r#"{"exclusiveMaximum": 5}"#, &["4"], &["5"], &[]),
        (r#"{"exclusiveMaximum": 100000000000000000001}"#, &["1"], &["1e30"], &["100000000000000000000"]),
        (r#"{"multipleOf": 5}"#, &["10", "0", "-5", "10.0"], &["7"], &[]),
        (r#"{"multipleOf": 0.01}"#, &["0.29", "1", "4.35"], &["0.295"], &[]),
        (r#"{"multipleOf": 0}"#, &[], &[], &["7"]),
    ]);
}

#[test]
fn keywords_for_strings() {
    check(&[
        (r#"{"minLength": 2}"#, &["\"ab\"", "\"äö\"", "1"], &["\"ä\"", "\"\""], &[]),
        (r#"{"maxLength": 2.0}"#, &["\"ab\"", "\"äö\"", "\"💣💣\""], &["\"abc\""], &[]),
        (r#"{"pattern": "^a"}"#, &["\"ab\"", "1"], &["\"ba\""], &["\"äb\""]),
        (r#"{"pattern": "^(?!a)"}"#, &["1"], &[], &["\"ab\"", "\"b\""]),
        (r#"{"pattern": "^\\d+$"}"#, &["\"12\""], &["\"x\""], &["\"١٢\""]),
    ]);
}

#[test]
fn keywords_for_objects() {
    check(&[
        (
            r#"{"properties": {"a": {"type": "string"}}}"#,
            &["{}", r#"{"a": "x", "b": 1}"#, "[]"],
            &[r#"{"a": 1}"#],
            &[],
        ),
        (r#"{"properties": {"a": false}}"#, &["{}"], &[r#"{"a": 1}"#], &[]),
        (r#"{"required": ["a", "b"]}"#, &[r#"{"a": 1, "b": null}"#, "5"], &[r#"{"a": 1}"#, "{}"], &[]),
        (
            r#"{"properties": {"a": true}, "additionalProperties": false}"#,
            &[r#"{"a": 1}"#, "{}"],
            &[r#"{"b": 1}"#],
            &[],
        ),
        (r#"{"additionalProperties": {"type": "string"}}"#, &[r#"{"b": "x"}"#], &[r#"{"b": 1}"#], &[]),
        (
            r#"{"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false}"#,
            &[r#"{"x-a": "x"}"#],
            &[r#"{"x-a": 1}"#, r#"{"y": 1}"#],
            &[],
        ),
        (
            r#"{"patternProperties": {"^(?=x)": false}, "additionalProperties": false}"#,
            &["{}"],
            &[],
            &[r#"{"a": 1}"#],
        ),
        (r#"{"propertyNames": {"maxLength": 2}}"#, &[r#"{"ab": 1}"#], &[r#"{"abc": 1}"#], &[]),
        (
            r#"{"minProperties": 1, "maxProperties": 2}"#,
            &[r#"{"a": 1}"#],
            &["{}", r#"{"a":1,"b":1,"c":1}"#],
            &[],
        ),
        (r#"{"dependentRequired": {"a": ["b"]}}"#, &["1"], &[], &[r#"{"a": 1}"#]),
        (r#"{"dependencies": {"a": ["b"]}}"#, &["1"], &[], &[r#"{"a": 1}"#]),
        (r#"{"dependentSchemas": {"a": false}}"#, &["1"], &[], &[r#"{"a": 1}"#]),
        (r#"{"unevaluatedProperties": false}"#, &["[]"], &[], &[r#"{"a": 1}"#]),
    ]);
}

#[test]
fn keywords_for_arrays() {
    check(&[
        (r#"{"items": {"type": "integer"}}"#, &["[]", "[1, 2]", "{}"], &["[1, \"a\"]"], &[]),
        (r#"{"prefixItems": [{"type": "integer"}], "items": false}"#, &["1"], &[], &["[1]", "[1, 2]"]),
        (r#"{"items": [{"type": "integer"}]}"#, &["1"], &[], &["[1]", "[\"a\"]"]),
        (r#"{"contains": {"const": 1}, "minItems": 1}"#, &["{}"], &["[]"], &["[0]", "[1]"]),
        (r#"{"minItems": 1, "maxItems": 2}"#, &["[1]"], &["[]", "[1, 2, 3]"], &[]),
        (
            r#"{"uniqueItems": true}"#,
            &["[1, 2]", "[1, true]", "[{\"a\":1},{\"a\":2}]"],
            &["[1, 1.0]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#],
            &[],
        ),
        (r#"{"unevaluatedItems": false}"#, &["{}"], &[], &["[1]"]),
    ]);
}

#[test]
fn keywords_for_combinations() {
    check(&[
        (r#"{"allOf": [{"minimum": 1}, {"maximum": 3}]}"#, &["2"], &["0", "4"], &[]),
        (r#"{"anyOf": [{"type": "string"}, {"minimum": 5}]}"#, &["\"a\"", "5"], &["1"], &[]),
        (r#"{"anyOf": [{"pattern": "(?=a)"}, {"type": "integer"}]}"#, &["1", "null"], &[], &["\"a\""]),
        (r#"{"oneOf": [{"minimum": 1}, {"maximum": 3}]}"#, &["0", "4"], &["2"], &[]),
        (
            r#"{"oneOf": [{"pattern": "(?=a)"}, {"minLength": 1}, {"type": "string"}]}"#,
            &[],
            &[],
            &["\"a\"", "\"\""],
        ),
        // A server that enforces `format` would accept exactly one alternative.
        (r#"{"oneOf": [{"format": "date"}, {"format": "time"}]}"#, &[], &["true"], &["\"12:00:00Z\""]),
        (
            r#"{"oneOf": [{"type": "string", "format": "date"}, {"type": "null"}]}"#,
            &["\"2026-11-16\"", "null"],
            &["1"],
            &[],
        ),
        (r#"{"not": {"type": "string"}}"#, &["1"], &["\"a\""], &[]),
        (r#"{"not": {"pattern": "(?=a)"}}"#, &[], &["1"], &["\"a\""]),
        (r#"{"not": {"format": "date"}}"#, &[], &[], &["\"a\""]),
        (r#"{"if": {"type": "string"}, "then": false, "maximum": 5}"#, &[], &["6"], &["\"a\"", "1"]),
        (r#"{"then": false, "else": false}"#, &["1"], &[], &[]),
    ]);
}

#[test]
fn keywords_for_references() {
    check(&[
        (
            r##"{"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}"##,
            &[r#"{"a":1}"#],
            &[r#"{"a":"x"}"#],
            &[],
        ),
        (r##"{"items": {"$ref": "#"}, "type": "array"}"##, &["[[], [[]]]"], &["[[1]]"], &[]),
        (
            r##"{"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "integer"}}}"##,
            &["1"],
            &["\"\""],
            &[],
        ),
        // Anchors, identifiers and escapes are not followed.
        (r##"{"$ref": "#here", "$defs": {"x": {"$anchor": "here"}}}"##, &[], &[], &["1"]),
        (r##"{"$ref": "#/$defs/%78", "$defs": {"x": {}}}"##, &[], &[], &["1"]),
        (r##"{"$id": "https://example.com/t", "$ref": "t#/$defs/x", "$defs": {"x": {}}}"##, &[], &[], &["1"]),
        (
            r##"{"$id": "https://example.com/t", "$ref": "#/$defs/x", "$defs": {"x": false}}"##,
            &[],
            &["1"],
            &[],
        ),
        // A local reference inside a schema with its own `$id` does not refer to the whole document.
        (r##"{"not": {"$id": "n", "$ref": "#/$defs/x"}, "$defs": {"x": {}}}"##, &[], &[], &["1"]),
        (
            r##"{"$ref": "#/$defs/a/$defs/b", "$defs": {"x": false, "a": {"$id": "a", "$defs": {"b": {"$ref": "#/$defs/x"}, "x": {}}}}}"##,
            &[],
            &[],
            &["1"],
        ),
        // Keywords beside `$ref` apply, but not before 2019-09.
        (r##"{"$ref": "#/$defs/n", "maximum": 5, "$defs": {"n": {}}}"##, &["5"], &["6"], &[]),
        (
            r##"{"$schema": "http://json-schema.org/draft-07/schema#",
                 "$ref": "#/definitions/n", "maximum": 5, "definitions": {"n": {}}}"##,
            &["5", "6"],
            &[],
            &[],
        ),
        // A `$ref` inside a plain value, or as the name of a property, is not a keyword.
        (
            r##"{"const": {"$ref": "https://example.com/"}}"##,
            &[r#"{"$ref": "https://example.com/"}"#],
            &["1"],
            &[],
        ),
        (
            r##"{"properties": {"$ref": {"type": "integer"}}}"##,
            &[r#"{"$ref": 1}"#],
            &[r#"{"$ref": "a"}"#],
            &[],
        ),
        (
            r##"{"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a", "type": "integer"}}}"##,
            &[],
            &[],
            &["1", "\"\""],
        ),
    ]);
}
