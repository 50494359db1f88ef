//! Compares pairs of definitions, written by hand and generated.

use super::*;
use crate::argument_schema::{Check, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};
use wharf_config::{
    LockedDependencies, LockedIdentity, LockedItem, LockedPackage, LockedServer, PackageKind,
};

/// Compares two tools. Returns each difference as `severity kind path`.
fn compared(before: Value, after: Value) -> Vec<String> {
    let found = compare_tools(Some(&before), Some(&after));
    let line = |it: &Difference| format!("{} {} {}", it.kind.severity().as_str(), it.kind.as_str(), it.path);
    found.iter().map(line).collect()
}

/// Compares two schemas of arguments.
fn schemas(before: Value, after: Value) -> Vec<String> {
    let tool = |schema: Value| json!({ "name": "t", "inputSchema": schema });
    compared(tool(before), tool(after))
}

#[test]
fn schema_changes_are_classified() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let with = |schema: Value| object(json!({ "a": schema }));
    for (before, after, expected) in [
        (with(json!({})), object(json!({ "a": {}, "b": {} })), vec!["risky argument_added /b"]),
        (object(json!({ "a": {}, "b": {} })), with(json!({})), vec!["breaking argument_removed /b"]),
        (
            with(json!({})),
            json!({ "type": "object", "properties": { "a": {}, "b": {} }, "required": ["b"] }),
            vec!["breaking required_argument_added /b"],
        ),
        (
            json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] }),
            with(json!({})),
            vec!["compatible bound_loosened /a"],
        ),
        (
            with(json!({ "type": "number" })),
            with(json!({ "type": "integer" })),
            vec!["breaking type_tightened /a"],
        ),
        (
            with(json!({ "type": "integer" })),
            with(json!({ "type": ["number", "null"] })),
            vec!["compatible type_loosened /a"],
        ),
        (
            with(json!({ "enum": [1, 2] })),
            with(json!({ "enum": [2, 3] })),
            vec!["breaking enum_value_removed /a", "compatible enum_value_added /a"],
        ),
        (with(json!({ "maximum": 5 })), with(json!({ "maximum": 6 })), vec!["compatible bound_loosened /a"]),
        (with(json!({})), with(json!({ "minLength": 1 })), vec!["breaking bound_tightened /a"]),
        (with(json!({ "default": 1 })), with(json!({ "default": 2 })), vec!["risky default_changed /a"]),
        (
            with(json!({ "description": "x" })),
            with(json!({ "description": "y" })),
            vec!["risky text_changed /a/description"],
        ),
        (
            with(json!({ "pattern": "a" })),
            with(json!({ "pattern": "b" })),
            vec!["risky schema_changed /a/pattern"],
        ),
        (
            with(json!({ "items": { "type": "string" } })),
            with(json!({ "items": { "type": "string", "maxLength": 4 } })),
            vec!["breaking bound_tightened /a/*"],
        ),
    ] {
        assert_eq!(schemas(before.clone(), after.clone()), expected, "{before} and {after}");
    }
}

#[test]
fn moved_definitions_are_compared_where_they_are_used() {
    let used = json!({ "type": "object", "properties": { "a": { "type": "string", "maxLength": 3 } } });
    let moved = json!({
        "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "type": "string", "maxLength": 2 } },
    });
    assert_eq!(schemas(used, moved), ["breaking bound_tightened /a"]);
    let recursive =
        |kind: &str| json!({ "properties": { "next": { "$ref": "#" }, "value": { "type": kind } } });
    let found = schemas(recursive("string"), recursive("number"));
    assert!(found.contains(&"breaking type_tightened /value".to_owned()), "{found:?}");
}

#[test]
fn texts_hints_and_results_are_classified() {
    let tool = |more: Value| {
        let mut tool = json!({ "name": "t", "inputSchema": {} });
        tool.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        tool
    };
    for (before, after, expected) in [
        (
            json!({ "description": "a" }),
            json!({ "description": "a\u{e0041}" }),
            vec!["risky text_changed description", "risky hidden_characters description"],
        ),
        (
            json!({}),
            json!({ "annotations": { "destructiveHint": true, "readOnlyHint": true } }),
            vec!["risky hint_worse destructiveHint", "compatible hint_better readOnlyHint"],
        ),
        (
            json!({ "annotations": { "readOnlyHint": true } }),
            json!({}),
            vec!["risky hint_worse readOnlyHint"],
        ),
        (json!({}), json!({ "outputSchema": {} }), vec!["compatible output_added result:"]),
        (
            json!({ "outputSchema": { "properties": { "a": {}, "b": {} } } }),
            json!({ "outputSchema": { "properties": { "b": {}, "c": {} } } }),
            vec!["breaking output_removed result:/a", "compatible output_added result:/c"],
        ),
        (
            json!({ "execution": { "taskSupport": "optional" } }),
            json!({ "execution": { "taskSupport": "required" } }),
            vec!["risky schema_changed execution/taskSupport"],
        ),
    ] {
        assert_eq!(compared(tool(before), tool(after)), expected);
    }
    assert_eq!(compare_tools(None, Some(&json!({ "name": "t" })))[0].kind, DifferenceKind::ToolAdded);
    assert_eq!(compare_tools(Some(&json!({})), None)[0].kind, DifferenceKind::ToolRemoved);
}

#[test]
fn packages_servers_and_removed_tools_are_classified() {
    let package = |version: &str, integrity: &str, dependency: &str| LockedPackage {
        kind: PackageKind::Npm,
        spec: "a".to_owned(),
        is_local: false,
        version: Some(version.to_owned()),
        integrity: [("any".to_owned(), integrity.to_owned())].into(),
        dependencies: LockedDependencies {
            hash: Some((1, format!("sha256-{dependency}"))),
            ..LockedDependencies::default()
        },
    };
    let server = |package: LockedPackage, version: &str, tools: &[&str]| LockedServer {
        package: Some(package),
        identity: LockedIdentity { version: version.to_owned(), ..LockedIdentity::default() },
        tools: tools.iter().map(|it| ((*it).to_owned(), LockedItem::of(json!({ "name": it })))).collect(),
        ..LockedServer::default()
    };
    let before = server(package("1", "a", "x"), "1", &["kept", "removed"]);
    let kinds = |after: &LockedServer| -> Vec<String> {
        let all = compare_servers("s", &before, after);
        let differences = all.iter().flat_map(|it| it.differences.iter().map(|found| (it.id(), found)));
        differences.map(|(id, it)| format!("{id} {} {:?}", it.kind.as_str(), it.kind.severity())).collect()
    };
    assert_eq!(kinds(&before), Vec::<String>::new());
    assert_eq!(
        kinds(&server(package("1", "b", "x"), "1", &["kept", "removed"])),
        ["s integrity_changed Risky"]
    );
    assert_eq!(
        kinds(&server(package("1", "a", "y"), "2", &["kept", "removed"])),
        ["s dependencies_changed Note", "s server_changed Note"]
    );
    assert_eq!(kinds(&server(package("1", "a", "x"), "1", &["kept"])), ["s:removed tool_removed Breaking"]);
    let mut other_platform = package("1", "a", "x");
    other_platform.integrity.insert("macos".to_owned(), "c".to_owned());
    let after = server(other_platform, "1", &["kept", "removed"]);
    assert_eq!(kinds(&after), ["s version_changed Note"], "a tag that is missing from the lock is a note");
    assert_eq!(compare_servers("s", &before, &after)[0].differences[0].path, "package/integrity/macos");
    assert_eq!(compare_servers("s", &after, &before), [], "the lock keeps the hashes of other platforms");
}

/// Generates small schemas of the keywords that the comparison understands.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        prop::sample::subsequence(vec!["string", "integer", "number", "boolean", "null"], 1..3)
            .prop_map(|types| json!({ "type": types })),
        (0..4i64, 0..4i64).prop_map(|(low, more)| json!({ "minimum": low, "maximum": low + more })),
        (0..3u64).prop_map(|length| json!({ "type": "string", "maxLength": length })),
        prop::sample::subsequence(vec![json!("a"), json!(1), json!(null)], 1..3)
            .prop_map(|it| json!({ "enum": it })),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        let names = prop::sample::subsequence(vec!["a", "b", "c"], 0..3);
        prop_oneof![
            inner.clone().prop_map(|it| json!({ "type": "array", "items": it })),
            (prop::collection::btree_map("[abc]", inner, 0..3), names).prop_map(|(properties, required)| {
                json!({ "type": "object", "properties": properties, "required": required })
            }),
        ]
    })
}

/// Generates values that such schemas may accept.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|it| json!(it)),
        (-1..6i64).prop_map(|it| json!(it)),
        "[ab]{0,3}".prop_map(|it| json!(it)),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|it| json!(it)),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|it| json!(it)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn different_definitions_always_give_a_difference_that_is_not_a_note(before in schema(), after in schema()) {
        let tool = |schema: &Value| json!({ "name": "t", "inputSchema": schema });
        let (before, after) = (tool(&before), tool(&after));
        let same = LockedItem::of(before.clone()).hash == LockedItem::of(after.clone()).hash;
        let found = compare_tools(Some(&before), Some(&after));
        prop_assert_eq!(same, found.is_empty());
        prop_assert!(found.iter().all(|it| it.kind.severity() != DifferenceSeverity::Note));
    }

    #[test]
    fn compatible_arguments_stay_valid(before in schema(), after in schema(), values in prop::collection::vec(value(), 8)) {
        let tool = |schema: &Value| json!({ "name": "t", "inputSchema": schema });
        let found = compare_tools(Some(&tool(&before)), Some(&tool(&after)));
        let worst = DifferenceSeverity::worst(&found);
        if worst.is_none_or(|it| it <= DifferenceSeverity::Compatible) {
            let compiled = |schema: &Value| Schema::compile(&schema.clone().into()).expect("a schema");
            let (before, after) = (compiled(&before), compiled(&after));
            for value in values {
                let value: Raw = value.into();
                if before.check(&value) == Check::Valid {
                    prop_assert_eq!(after.check(&value), Check::Valid);
                }
            }
        }
    }
}
