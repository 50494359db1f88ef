//! Arguments of tool calls: kept as the model wrote them, or refused in words.

use super::{
    check, read_chunks,
    script::{Step, call, render},
    summary,
};
use crate::{
    arguments::{ArgumentsError, MAX_ARGUMENT_BYTES, check_arguments},
    dialect::Dialect,
    model::AnswerLimits,
};
use scripted_model::Finish::Stop;

fn nested(depth: usize) -> String {
    format!("{}{}", r#"{"a":"#.repeat(depth - 1) + "{}", "}".repeat(depth - 1))
}

#[test]
fn arguments_are_one_object_or_refused() {
    let deep = nested(128);
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_ARGUMENT_BYTES - 8));
    let rows: [(&str, Result<&str, ArgumentsError>); 13] = [
        ("", Ok("{}")),
        (" \n", Ok("{}")),
        (r#" {"a": 1.0} "#, Ok(r#"{"a": 1.0}"#)),
        (&deep, Ok(&deep)),
        (&nested(129), Err(ArgumentsError::TooDeep)),
        (&"[".repeat(500_000), Err(ArgumentsError::TooDeep)),
        (&long, Ok(&long)),
        (&" ".repeat(5), Ok("{}")),
        (&"x".repeat(MAX_ARGUMENT_BYTES + 1), Err(ArgumentsError::TooLong)),
        ("[1]", Err(ArgumentsError::NotAnObject)),
        ("null", Err(ArgumentsError::NotAnObject)),
        (r#"{"a":1"#, Err(ArgumentsError::NotAnObject)),
        (r#"{"a":1}{"b":2}"#, Err(ArgumentsError::NotAnObject)),
    ];
    for (text, expected) in rows {
        assert_eq!(check_arguments(text), expected, "{}", &text[..text.len().min(40)]);
    }
}

#[test]
fn unusable_arguments_refuse_the_call_and_not_the_answer() {
    // These dialects send arguments as text. The others send JSON, which is whole or makes the event unreadable.
    for dialect in [Dialect::Responses, Dialect::Chat, Dialect::Anthropic] {
        let rows = [
            (r#"{"a":1"#, "NotAnObject"),
            ("[]", "NotAnObject"),
            ("nonsense", "NotAnObject"),
            ("", "{}"),
            (r#""{\"a\": 1}""#, r#"{"a": 1}"#),
            (r#""text""#, "NotAnObject"),
        ];
        for (arguments, expected) in rows {
            let steps = [call("x", "f", arguments), call("y", "g", "{}"), Step::End(Stop)];
            let expected = format!("x:f({expected}) y:g({{}}) Stop");
            check(dialect, arguments, render(dialect, &steps), &expected);
        }
    }
}

#[test]
fn arguments_in_json_are_kept_as_text() {
    let deep = nested(140);
    for dialect in [Dialect::Gemini, Dialect::Ollama] {
        let rows = [
            (r#"{"a": 1.50, "b": 10000000000000000000001}"#, r#"{"a": 1.50, "b": 10000000000000000000001}"#),
            (r#""{\"a\": 1}""#, r#"{"a": 1}"#),
            ("[1]", "NotAnObject"),
            ("null", "{}"),
            (&deep, "TooDeep"),
        ];
        for (arguments, expected) in rows {
            let steps = [call("x", "f", arguments), Step::End(Stop)];
            check(dialect, arguments, render(dialect, &steps), &format!("x:f({expected}) Stop"));
        }
    }
}

#[test]
fn long_arguments_refuse_the_call_and_not_the_answer() {
    let long = format!(r#"{{"a":"{}"}}"#, "ü".repeat(MAX_ARGUMENT_BYTES));
    for dialect in Dialect::ALL {
        let steps = [call("x", "f", &long), call("y", "g", "{}"), Step::End(Stop)];
        let result =
            read_chunks(dialect, &AnswerLimits::default(), render(dialect, &steps).as_bytes(), &[4096]);
        assert_eq!(summary(&result), "x:f(TooLong) y:g({}) Stop", "{dialect:?}");
    }
}
