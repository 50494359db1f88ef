//! Compares the schema check with an independent validator, for the keywords that are checked. It never rejects a value
//! that the other accepts, and accepts none that the other rejects. Only patterns against text outside of ASCII are
//! skipped.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use wharf_mcp::Raw;
use wharf_runtime::argument_schema::{Check, Schema};

/// Few names, few strings and small numbers, because unrelated schemas and values would test little.
fn name() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "ab", "x-a"])
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..8).prop_map(Value::from),
        (-6i64..16).prop_map(|it| json!(it as f64 / 2.0)),
        select(vec!["", "a", "b", "ab", "abc", "äö", "x-a", "1", "12 "]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            2 => vec((name(), inner.clone()), 0..4).prop_map(object),
            1 => vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

fn object(members: Vec<(&'static str, Value)>) -> Value {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

fn names() -> impl Strategy<Value = Value> {
    vec(name(), 0..3).prop_map(|mut names| {
        names.sort_unstable();
        names.dedup();
        json!(names)
    })
}

fn types() -> impl Strategy<Value = Value> {
    let one = select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let two = (one.clone(), one.clone()).prop_map(|(a, b)| if a == b { json!([a]) } else { json!([a, b]) });
    prop_oneof![3 => one.prop_map(Value::from), 1 => two]
}

fn pattern() -> impl Strategy<Value = Value> {
    let known = vec!["^a", "b$", "^[a-b]+$", r"^\d+$", "^x-", r"\s", r"^\w{1,2}$", "a|1", "^.{2}$", "[^a]"];
    select(known).prop_map(Value::from)
}

/// Generates one keyword that contains no schema.
fn plain() -> impl Strategy<Value = (&'static str, Value)> {
    let count = || (0u64..4).prop_map(Value::from);
    let number = || (-3i64..8).prop_map(Value::from);
    prop_oneof![
        4 => types().prop_map(|it| ("type", it)),
        1 => vec(scalar(), 1..4).prop_map(|it| ("enum", unique(it))),
        1 => value().prop_map(|it| ("const", it)),
        2 => (select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), number()),
        1 => select(vec![json!(1), json!(2), json!(0.5), json!(1.5)]).prop_map(|it| ("multipleOf", it)),
        2 => (select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]), count()),
        1 => pattern().prop_map(|it| ("pattern", it)),
        1 => any::<bool>().prop_map(|it| ("uniqueItems", it.into())),
        2 => names().prop_map(|it| ("required", it)),
        1 => select(vec![json!({"$ref": "#/$defs/a"}), json!({"$ref": "#/$defs/b"})]).prop_map(|it| ("not", it)),
    ]
}

fn unique(values: Vec<Value>) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for value in values {
        if !all.iter().any(|it| *it == value || (it.is_number() && value.is_number())) {
            all.push(value);
        }
    }
    all.into()
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => vec(plain(), 0..3).prop_map(object),
        1 => any::<bool>().prop_map(Value::from),
        1 => select(vec!["#/$defs/a", "#/$defs/b"]).prop_map(|it| json!({"$ref": it})),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let single = select(vec!["items", "not", "additionalProperties", "propertyNames"]);
        let lists = select(vec!["allOf", "anyOf", "oneOf"]);
        let holder = prop_oneof![
            3 => vec((name(), inner.clone()), 0..3).prop_map(|it| ("properties", object(it))),
            1 => (pattern(), inner.clone()).prop_map(|(pattern, it)| {
                ("patternProperties", json!({pattern.as_str().expect("a string"): it}))
            }),
            3 => (single, inner.clone()),
            3 => (lists, vec(inner, 1..4).prop_map(Value::from)),
        ];
        (vec(plain(), 0..2), vec(holder, 1..3)).prop_map(|(plain, holders)| object([plain, holders].concat()))
    })
}

/// Generates a schema with two definitions. The definitions contain no references, because the other validator may
/// loop on cycles.
fn whole() -> impl Strategy<Value = Value> {
    let definition = || vec(plain(), 0..2).prop_map(object).prop_map(without_references);
    (schema(), definition(), definition())
        .prop_map(|(schema, a, b)| json!({"allOf": [schema], "$defs": {"a": a, "b": b}}))
}

fn without_references(mut schema: Value) -> Value {
    if let Value::Object(members) = &mut schema {
        members.remove("not");
    }
    schema
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_check_agrees_with_another_validator(schema in whole(), values in vec(value(), 1..6)) {
        let oracle = jsonschema::draft202012::new(&schema).expect("the oracle reads the schema");
        let ours = Schema::compile(&Raw::from(schema.clone())).expect("we read the schema");
        for value in values {
            let fits = oracle.is_valid(&value);
            match ours.check(&Raw::from(value.clone())) {
                Check::Valid => prop_assert!(fits, "{value} passes {schema}, but {:?}", oracle.validate(&value)),
                Check::Invalid(wrong) => prop_assert!(!fits, "{value} fits {schema}, but {wrong:?}"),
                Check::Skipped(why) => {
                    prop_assert!(!value.to_string().is_ascii(), "{value} is not checked by {schema}: {why}");
                }
            }
        }
    }
}
