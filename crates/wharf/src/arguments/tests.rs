//! Tests the conversion of typed arguments to the arguments of a call.

use super::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn schema() -> Value {
    json!({
        "type": "object",
        "$defs": { "Priority": { "type": "integer", "minimum": 1, "maximum": 5 } },
        "properties": {
            "title": { "type": "string" },
            "priority": { "$ref": "#/$defs/Priority" },
            "done": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "size": { "type": "number" },
        },
        "required": ["title"],
    })
}

fn typed(whole: Option<&str>, pairs: &[&str], schema: &Value) -> Result<String, Vec<ArgumentError>> {
    let pairs: Vec<String> = pairs.iter().map(|it| (*it).to_owned()).collect();
    let aliases = BTreeMap::from([("prio".to_owned(), "priority".to_owned())]);
    let typed = TypedArguments::read(whole, &pairs).map_err(|it| vec![it])?;
    typed.to_object("create", &Parameters::of(schema, aliases)).map(|it| it.as_str().to_owned())
}

#[test]
fn values_are_converted_by_the_schema() {
    for (whole, pairs, expected) in [
        (None, &["title=2", "priority=2", "done=true"][..], r#"{"title":"2","priority":2,"done":true}"#),
        (None, &["tags=a,b"], r#"{"tags":["a","b"]}"#),
        (None, &["tags=a", "tags=b"], r#"{"tags":["a","b"]}"#),
        (None, &["tags=a", "title=x", "tags=b,c"], r#"{"tags":["a","b","c"],"title":"x"}"#),
        (None, &["prio=2"], r#"{"prio":2}"#),
        (None, &["size=12345678901234567890123"], r#"{"size":12345678901234567890123}"#),
        (None, &["size:=1e99999"], r#"{"size":1e99999}"#),
        (None, &["title:=2", "other:=[1]"], r#"{"title":2,"other":[1]}"#),
        (None, &["title=x=y"], r#"{"title":"x=y"}"#),
        (Some(r#"{"title": 1.10, "size": 2}"#), &["size=3"], r#"{"title":1.10,"size":3}"#),
        (Some(r#"{"a": 1, "a": 2}"#), &[], r#"{"a":2}"#),
    ] {
        assert_eq!(typed(whole, pairs, &schema()).as_deref(), Ok(expected), "{pairs:?}");
    }
}

#[test]
fn without_a_schema_text_stays_text() {
    for schema in [Value::Null, json!({ "type": "object" }), json!(true)] {
        assert_eq!(typed(None, &["a=1", "b:=1"], &schema).as_deref(), Ok(r#"{"a":"1","b":1}"#), "{schema}");
    }
    let open = json!({ "properties": {}, "additionalProperties": true });
    assert_eq!(typed(None, &["a=1"], &open).as_deref(), Ok(r#"{"a":"1"}"#));
}

#[test]
fn errors_name_the_expected_type() {
    for (pairs, message, hint) in [
        (
            &["priority=high"][..],
            "'high' does not fit `priority`: expected a whole number from 1 to 5",
            "for example priority:=2 (`:=` takes the value as JSON)",
        ),
        (
            &["done=yes"],
            "'yes' does not fit `done`: expected true or false",
            "for example done:=true (`:=` takes the value as JSON)",
        ),
        (&["titel=x"], "`create` has no argument `titel`", "did you mean `title`?"),
        (&["colour=red"], "`create` has no argument `colour`", "it takes title, priority, done, tags, size"),
        (
            &["title=a", "title=b"],
            "the argument `title` is given twice",
            "only a list can be given item by item",
        ),
        (
            &["tags=a", "tags:=[]"],
            "the argument `tags` is given twice",
            "only a list can be given item by item",
        ),
    ] {
        let errors = typed(None, pairs, &schema()).expect_err("an error");
        let found: Vec<_> = errors.iter().map(|it| (it.message.as_str(), it.hint.as_deref())).collect();
        assert_eq!(found, [(message, Some(hint))], "{pairs:?}");
    }
    let both = typed(None, &["priority=x", "nope=1"], &schema()).expect_err("two errors");
    assert_eq!(both.len(), 2, "{both:?}");
    let none = typed(None, &["a=1"], &json!({ "properties": {} })).expect_err("an error");
    assert_eq!(none[0].hint.as_deref(), Some("it takes no arguments"));
}

#[test]
fn malformed_arguments_are_refused() {
    for (whole, pair) in [
        (None, "a"),
        (None, "=1"),
        (None, ":=1"),
        (None, "a:={"),
        (Some("[]"), "a=1"),
        (Some("{"), "a=1"),
        (Some("@/nope"), "a=1"),
    ] {
        assert!(typed(whole, &[pair], &Value::Null).is_err(), "{whole:?} {pair}");
    }
}
