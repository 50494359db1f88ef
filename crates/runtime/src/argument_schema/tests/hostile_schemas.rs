//! Tests with hostile schemas. Each is rejected, or checked within the budget. The tests count steps, not time.

use super::*;
use serde_json::Value;

/// Checks the arguments and asserts that two passes stay within the budget.
#[track_caller]
fn check(schema: Value, arguments: &Value) -> Check {
    let schema = Schema::compile(&Raw::from(schema)).expect("a schema");
    let (check, steps) = schema.check_counted(&Raw::from(arguments.clone()));
    assert!(steps <= 2 * STEP_BUDGET, "{steps} steps");
    check
}

const TOO_MANY_STEPS: Check = Check::Skipped("validation takes too many steps");
const TOO_DEEP: Check = Check::Skipped("the schema is nested too deeply or refers to itself");

#[test]
fn reference_cycles_are_skipped() {
    assert_eq!(check(json!({"$ref": "#"}), &json!({})), TOO_DEEP);
    let schema =
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    assert_eq!(check(schema, &json!({})), TOO_DEEP);
    let schema = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "maximum": 5});
    assert!(matches!(check(schema, &json!(1)), Check::Skipped(_)));
    let schema = json!({"not": {"$ref": "#"}});
    assert_eq!(check(schema, &json!(1)), TOO_DEEP);
}

#[test]
fn exponential_references_exceed_the_step_budget() {
    // Two to the power of forty leaves, in forty definitions.
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        let rule = json!({"anyOf": [{"allOf": [next, next, false]}, {"allOf": [next, next, false]}]});
        definitions.insert(level.to_string(), rule);
    }
    definitions.insert("40".to_owned(), json!({}));
    assert_eq!(check(json!({"$ref": "#/$defs/0", "$defs": definitions}), &json!(1)), TOO_MANY_STEPS);
}

#[test]
fn errors_found_before_the_steps_run_out_count() {
    let schema = json!({"type": "object", "$ref": "#/$defs/a",
        "$defs": {"a": {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}});
    let Check::Invalid(wrong) = check(schema, &json!(1)) else { panic!("it passed") };
    assert_eq!(wrong[0].message, "is 1, but an object is expected");
}

#[test]
fn deep_schemas_are_rejected_and_deep_values_checked() {
    let deep = format!("{}{{}}{}", r#"{"not":"#.repeat(5000), "}".repeat(5000));
    assert_eq!(Schema::compile(&raw(&deep)).map(drop), Err("the schema is nested too deeply".to_owned()));
    // Nesting as deep as the JSON parser allows, through a recursive reference at each level.
    let (mut schema, mut value) = (json!({"$ref": "#"}), json!(1));
    for _ in 0..50 {
        schema = json!({"items": schema});
    }
    for _ in 0..120 {
        value = json!([value]);
    }
    assert_eq!(check(schema, &value), Check::Valid);
}

#[test]
fn wide_schemas_are_rejected() {
    let many: Vec<Value> = (0..25_000).map(|at| json!({"const": at})).collect();
    let why = Schema::compile(&Raw::from(json!({"anyOf": many}))).map(drop);
    assert_eq!(why, Err("the schema is too large: it has more than 20000 parts".to_owned()));
    let long = json!({"description": "x".repeat(1024 * 1024)});
    let why = Schema::compile(&Raw::from(long)).map(drop).expect_err("it is too large");
    assert!(why.starts_with("the schema is too large"), "{why}");
}

#[test]
fn long_names_stay_within_the_step_budget() {
    let name = "n".repeat(900_000);
    let arguments = json!(vec![json!({"a": 1, "b": 2, "c": 3}); 20]);
    for rule in [json!({"required": [name]}), json!({"enum": [{&name: 1}]})] {
        let twice = json!({"not": {"not": {"$ref": "#/$defs/rule"}}});
        let several = json!({"items": {"oneOf": vec![twice; 20]}, "$defs": {"rule": rule}});
        assert!(!matches!(check(several, &arguments), Check::Valid));
    }
}

#[test]
fn huge_enums_stay_within_the_step_budget() {
    let strings: Vec<Value> = (0..60_000).map(|at| json!(at.to_string())).collect();
    assert_eq!(check(json!({"enum": strings}), &json!("59999")), Check::Valid);
    assert!(matches!(check(json!({"enum": strings}), &json!("x")), Check::Invalid(_)));
    let numbers: Vec<Value> = (0..60_000).map(Value::from).collect();
    assert_eq!(check(json!({"enum": numbers}), &json!(-1)), TOO_MANY_STEPS);
    assert!(matches!(check(json!({"items": {"enum": numbers}}), &json!([-1, -1])), Check::Skipped(_)));
}

#[test]
fn expensive_patterns_stay_within_the_step_budget() {
    let text = "a".repeat(100_000);
    for pattern in ["^(a+)+$", "^(a|a)*b$", "(.*)*c", "((a{50}){50}){50}", "(a?){200}a{200}", "(?=(a+)+)b"] {
        check(json!({"pattern": pattern}), &json!(text));
    }
    let many: serde_json::Map<String, Value> =
        (0..5000).map(|at| (format!("^{at}[a-z]{{1,9}}$"), json!(false))).collect();
    assert!(matches!(check(json!({"patternProperties": many}), &json!({"x": 1})), Check::Skipped(_)));
}

#[test]
fn large_arguments_stay_within_the_step_budget() {
    let numbers: Vec<Value> = (0..200_000).map(Value::from).collect();
    assert!(matches!(check(json!({"uniqueItems": true}), &json!(numbers)), Check::Skipped(_)));
    assert_eq!(check(json!({"uniqueItems": true}), &json!(numbers[..300])), Check::Valid);
    assert_eq!(check(json!({"items": {"type": "integer"}}), &json!(numbers)), TOO_MANY_STEPS);
    let text = "x".repeat(2_000_000);
    let lengths = vec![json!({"maxLength": 5, "minLength": 2_000_001}); 1000];
    assert!(!matches!(check(json!({"oneOf": lengths}), &json!(text)), Check::Valid));
    let equals = vec![json!(text[..900_000]); 3];
    assert!(matches!(check(json!({"uniqueItems": true}), &json!(equals)), Check::Invalid(_)));
}
