//! Tests what arguments become, as data.

use super::*;
use crate::result_handle::DocumentKind;
use proptest::prelude::*;
use std::time::SystemTime;

fn documents() -> HashMap<String, (StoredResult, Document)> {
    let stored = |id: &str, source: &str, kind| StoredResult {
        id: id.into(),
        handle: None,
        conversation: None,
        source: source.into(),
        tool: "t".into(),
        kind,
        bytes: 0,
        sha256: String::new(),
        created_at: SystemTime::UNIX_EPOCH,
        expires_at: None,
    };
    let entry = |id: &str, source: &str, kind, text: &str| {
        (id.to_owned(), (stored(id, source, kind), Document { kind, text: text.into() }))
    };
    [
        entry("r-1", "files", DocumentKind::Text, "a \"b\"\n"),
        entry("r-2", "git", DocumentKind::Json, r#"{ "n": 1.50, "s": "x", "evil": "wharf://results/r-1" }"#),
        entry("r-3", "git", DocumentKind::Text, &"x".repeat(3 << 20)),
    ]
    .into()
}

fn check(rule: PassRule, arguments: &str, expected: Result<Option<&str>, &str>) {
    let schema = serde_json::json!({
        "properties": {
            "text": { "type": "string" },
            "list": { "items": { "type": ["string", "null"] } },
            "optional": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "one": { "oneOf": [{ "type": "null" }, { "$ref": "#/$defs/Text" }] },
            "ref": { "$ref": "#/$defs/Text" },
            "nested": { "anyOf": [{ "$ref": "#/$defs/Nested" }, { "type": "null" }] },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "nothing": { "anyOf": [{ "type": "null" }] },
            "any": { "anyOf": [{ "type": "string" }, {}] },
            "loop": { "$ref": "#/$defs/Loop" },
            "lost": { "$ref": "#/$defs/None" },
            "remote": { "$ref": "https://example.com/schema" },
        },
        "$defs": {
            "Text": { "type": "string" },
            "Nested": { "type": "object", "properties": { "note": { "$ref": "#/$defs/Text" } } },
            "Loop": { "anyOf": [{ "$ref": "#/$defs/Loop" }, { "$ref": "#/$defs/Loop" }] },
        },
    });
    let documents = documents();
    let mut substitutions = Substitutions { source: "git", rule, documents: &documents, passed: Vec::new() };
    let replaced = substitutions.apply(&Raw::parse(arguments.to_owned()).expect("JSON"), &schema);
    let replaced = replaced.as_ref().map(|it| it.as_ref().map(Raw::as_str));
    let expected = expected.map_err(str::to_owned);
    assert_eq!(replaced.map_err(|it| format!("{}: {}", it.pointer, it.message)), expected, "{arguments}");
}

#[test]
fn references_are_replaced_and_nothing_else() {
    use PassRule::{Any, Off, SameSource};
    let any = |arguments, expected| check(Any, arguments, expected);
    any(r#"{"a":"wharf://results/r-1"}"#, Ok(Some(r#"{"a":"a \"b\"\n"}"#)));
    any(r#"{"a":{"$result":"r-2","pointer":"/n"}}"#, Ok(Some(r#"{"a":1.50}"#)));
    any(r#"{"text":"wharf://results/r-2#/n"}"#, Ok(Some(r#"{"text":"1.50"}"#)));
    any(r#"{"text":"wharf://results/r-2#/s"}"#, Ok(Some(r#"{"text":"x"}"#)));
    any(r#"{"list":[1e2,"wharf://results/r-2#/n"]}"#, Ok(Some(r#"{"list":[1e2,"1.50"]}"#)));
    for name in ["optional", "one", "ref"] {
        let arguments = format!(r#"{{"{name}":"wharf://results/r-2#/n"}}"#);
        check(Any, &arguments, Ok(Some(&format!(r#"{{"{name}":"1.50"}}"#))));
    }
    for name in ["either", "nothing", "any", "loop", "lost", "remote"] {
        let arguments = format!(r#"{{"{name}":"wharf://results/r-2#/n"}}"#);
        check(Any, &arguments, Ok(Some(&format!(r#"{{"{name}":1.50}}"#))));
    }
    any(r#"{"nested":{"note":"wharf://results/r-2#/n"}}"#, Ok(Some(r#"{"nested":{"note":"1.50"}}"#)));
    any(r#"{"a":{"$$result":"r-2"}, "b":1e2}"#, Ok(Some(r#"{"a":{"$result":"r-2"},"b":1e2}"#)));
    any(r#"{"a":"wharf://results/r-2#/evil"}"#, Ok(Some(r#"{"a":"wharf://results/r-1"}"#)));
    any(r#"{"a":"see wharf://results/r-1"}"#, Ok(None));
    any(r#"{"a":"wharf://results/r-2#/n/0"}"#, Err("/a: wharf://results/r-2#/n/0 does not exist"));
    any(r#"{"x/y":["wharf://results/r-9"]}"#, Err("/x~1y/0: wharf://results/r-9 does not exist"));
    any(
        r#"{"a":"wharf://results/r-3","b":"wharf://results/r-3"}"#,
        Err("/b: more than 4194304 bytes of results in one call"),
    );
    check(Off, r#"{"a":"wharf://results/r-1"}"#, Ok(None));
    check(Off, r#"{"a":{"$result":"r-1"}}"#, Err("/a: passing results to this tool is switched off"));
    check(SameSource, r#"{"a":"wharf://results/r-2#/s"}"#, Ok(Some(r#"{"a":"x"}"#)));
    check(
        SameSource,
        r#"{"a":"wharf://results/r-1"}"#,
        Err("/a: only results of `git` may be passed to this tool"),
    );
}

#[test]
fn too_many_references_are_refused() {
    let many = format!("[{}]", vec![r#""wharf://results/r-1""#; MAX_REFERENCES + 1].join(","));
    let error = referenced_ids(&Raw::parse(many).expect("JSON")).expect_err("too many");
    assert_eq!(error.message, "more than 32 results in one call");
    let few = Raw::parse(r#"{"a":[{"$result":"r-2"},"wharf://results/r-1"],"b":"wharf://results/r-2"}"#);
    assert_eq!(referenced_ids(&few.expect("JSON")), Ok(vec!["r-1".to_owned(), "r-2".to_owned()]));
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<f64>().prop_map(Value::from),
        "[a-z:/#$]{0,12}".prop_map(Value::from),
        Just(Value::from("x wharf://results/r-1")),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let object = prop::collection::vec(("[a-z$]{0,6}", inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arguments_without_references_keep_their_bytes(value in json()) {
        let documents = documents();
        let mut substitutions =
            Substitutions { source: "git", rule: PassRule::Any, documents: &documents, passed: Vec::new() };
        let arguments: Raw = value.into();
        prop_assert_eq!(substitutions.apply(&arguments, &Value::Null), Ok(None));
        prop_assert!(referenced_ids(&arguments).is_ok_and(|it| it.is_empty()));
    }
}
