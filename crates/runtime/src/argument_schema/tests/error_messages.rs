//! Tests of the exact messages for invalid arguments.

use super::*;

const TOOL: &str = r#"{
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3},
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "state": {"enum": ["open", "done"]},
        "due": {"anyOf": [{"type": "string", "pattern": "^\\d{4}$"}, {"type": "null"}]},
        "items": {"type": "array", "maxItems": 3, "items": {
            "type": "object",
            "properties": {"due_date": {"type": "string"}, "a b": {"type": "boolean"}},
            "required": ["due_date"],
            "additionalProperties": false
        }},
        "shape": {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
            {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
        ]}
    },
    "required": ["title"],
    "additionalProperties": false
}"#;

#[test]
fn messages_for_the_arguments_of_a_tool() {
    for (arguments, expected) in [
        (r#"{"title": "abc", "priority": 5}"#, "fine"),
        ("{}", "arguments.title is missing"),
        (r#"{"title": "abc", "priority": 7}"#, "arguments.priority is 7, but at most 5 is allowed"),
        (r#"{"title": "abc", "priority": 0}"#, "arguments.priority is 0, but at least 1 is required"),
        (
            r#"{"title": "abc", "priority": "5"}"#,
            "arguments.priority is a string, but an integer is expected",
        ),
        (r#"{"title": "abc", "priority": 1.5}"#, "arguments.priority is 1.5, but an integer is expected"),
        (r#"{"title": "ab"}"#, "arguments.title has 2 characters, but at least 3 are required"),
        (
            r#"{"titel": "abc"}"#,
            "arguments.title is missing; \
             arguments.titel is not a property of this tool; did you mean `title`?",
        ),
        (r#"{"title": "abc", "wings": 2}"#, "arguments.wings is not a property of this tool"),
        (
            r#"{"title": "abc", "state": "shut"}"#,
            r#"arguments.state is "shut", but one of "open", "done" is expected"#,
        ),
        (r#"{"title": "abc", "due": 5}"#, "arguments.due is 5, but a string or null is expected"),
        (
            r#"{"title": "abc", "due": "x"}"#,
            r#"arguments.due is "x", which does not match the pattern `^\d{4}$`"#,
        ),
        (r#"{"title": "abc", "items": [{"due_date": ""}, {}]}"#, "arguments.items[1].due_date is missing"),
        (
            r#"{"title": "abc", "items": [{"due_date": "", "a b": 1, "due_dat": 2}]}"#,
            "arguments.items[0][\"a b\"] is 1, but a boolean is expected; \
             arguments.items[0].due_dat is not a property here; did you mean `due_date`?",
        ),
        (
            r#"{"title": "abc", "items": [1, 2, 3, 4]}"#,
            "arguments.items has 4 items, but at most 3 are allowed; \
          arguments.items[0] is 1, but an object is expected; arguments.items[1] is 2, but an object is expected; \
          arguments.items[2] is 3, but an object is expected; arguments.items[3] is 4, but an object is expected",
        ),
        (r#"{"title": "abc", "shape": {"kind": "square"}}"#, "arguments.shape.side is missing"),
        (r#"{"title": "abc", "shape": []}"#, "arguments.shape is an array, but an object is expected"),
        ("[]", "arguments is an array, but an object is expected"),
    ] {
        assert_eq!(outcome(TOOL, arguments), expected, "{arguments}");
    }
}

#[test]
fn messages_for_single_keywords() {
    for (schema, value, expected) in [
        (r#"{"const": 5}"#, "7", "is 7, but 5 is expected"),
        (r#"{"enum": [1,2,3,4,5,6,7,8]}"#, "9", "is 9, but one of 1, 2, 3, 4, 5, 6 and 2 more is expected"),
        (r#"{"exclusiveMinimum": 0.5}"#, "0.5", "is 0.5, but more than 0.5 is required"),
        (r#"{"exclusiveMaximum": 0}"#, "0", "is 0, but less than 0 is required"),
        (r#"{"multipleOf": 5}"#, "7", "is 7, but a multiple of 5 is expected"),
        (r#"{"minItems": 1}"#, "[]", "has 0 items, but at least 1 is required"),
        (r#"{"maxProperties": 0}"#, r#"{"a": 1}"#, "has 1 property, but at most 0 are allowed"),
        (r#"{"uniqueItems": true}"#, "[1, 2, 1]", "has the same item twice, at 0 and at 2"),
        (r#"{"not": {"const": 1}}"#, "1", "matches a schema that is not allowed"),
        (
            r#"{"oneOf": [{"minimum": 1}, {"maximum": 3}]}"#,
            "2",
            "matches 2 of the alternatives, but exactly one is allowed",
        ),
        (r#"{"anyOf": []}"#, "2", "matches none of the allowed alternatives"),
        (r#"{"not": {}}"#, "2", "matches a schema that is not allowed"),
    ] {
        let schema = format!(r#"{{"properties": {{"v": {schema}}}}}"#);
        let arguments = format!(r#"{{"v": {value}}}"#);
        assert_eq!(outcome(&schema, &arguments), format!("arguments.v {expected}"), "{schema}");
    }
}

#[test]
fn messages_for_object_members() {
    for (schema, arguments, expected) in [
        (r#"{"properties": {"a": false}}"#, r#"{"a": 1}"#, "arguments.a is not allowed"),
        (
            r#"{"propertyNames": {"maxLength": 2}}"#,
            r#"{"abc": 1}"#,
            "arguments.abc has a name that has 3 characters, but at most 2 are allowed",
        ),
    ] {
        assert_eq!(outcome(schema, arguments), expected);
    }
}

#[test]
fn pointers_lead_to_the_value() {
    let schema = compiled(
        r#"{"properties": {"a/b": {"items": {"properties": {"c~d": {"type": "string"}}}}}, "required": ["e"]}"#,
    );
    let arguments = json!({ "a/b": [{}, { "c~d": 1 }] });
    let Check::Invalid(wrong) = schema.check(&arguments.clone().into()) else { panic!("it passed") };
    let pointers: Vec<&str> = wrong.iter().map(|it| it.pointer.as_str()).collect();
    assert_eq!(pointers, ["/e", "/a~1b/1/c~0d"]);
    assert_eq!(arguments.pointer(pointers[1]), Some(&json!(1)));
}

#[test]
fn long_values_and_lists_are_shortened() {
    let long = "s3cret ".repeat(1000);
    let arguments: serde_json::Map<String, Value> =
        (0..50).map(|at| (format!("{at}{long}"), json!(long))).collect();
    let schema = compiled(r#"{"additionalProperties": {"pattern": "^x$", "const": 1}}"#);
    let Check::Invalid(wrong) = schema.check(&Raw::from(json!(arguments))) else { panic!("it passed") };
    assert_eq!(wrong.len(), 10);
    for ArgumentError { path, pointer, message } in wrong {
        assert!(path.chars().count() < 80, "{path}");
        assert!(pointer.len() <= 1024, "{pointer}");
        assert!(message.chars().count() < 150, "{message}");
    }
}
