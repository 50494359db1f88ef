//! Tool calls: indexes, ids, names and arguments that differ from the documentation.

use super::{super::calls::fragment, Behaviour, TEXT_ARGUMENTS};
use crate::{arguments::MAX_ARGUMENT_BYTES, dialect::Dialect};
use scripted_model::{Finish::*, Step, call, chat_delta, chat_end, sse, text};
use serde_json::{Value, json};

const APART: &str = "makes two calls, each with its own arguments";
const WORDS: &str = "refuses this call in words, and makes the others";

pub(super) fn all() -> Vec<Behaviour> {
    [fragments(), identities(), arguments(), ends_with_calls(), places()].into_iter().flatten().collect()
}

/// The fragments of an answer of chat completions, each in its own chunk.
fn chat(lines: &[&str]) -> String {
    let chunks = lines.iter().map(|it| chat_delta(json!({ "tool_calls": [fragment(it)] })));
    chunks.collect::<String>() + &chat_end("tool_calls")
}

fn fragments() -> Vec<Behaviour> {
    let rows: [(&str, &[&str]); 8] = [
        ("calls have no index", &["- x f ", r#"- - - {"a":1}"#, r#"- y g {"b""#, "- - - :2}"]),
        ("every call has index 0", &["0 x f ", r#"0 - - {"a":1}"#, "0 y g ", r#"0 - - {"b":2}"#]),
        ("indexes begin at 1", &["1 x f ", r#"1 - - {"a":1}"#, r#"2 y g {"b":2}"#]),
        ("indexes have gaps", &[r#"3 x f {"a":1}"#, r#"70 y g {"b":2}"#]),
        ("an index is huge", &[r#"18446744073709551615 x f {"a":1}"#, r#"0 y g {"b":2}"#]),
        ("indexes go down", &[r#"9 x f {"a":1}"#, r#"8 y g {"b":2}"#]),
        (
            "only the first fragment of a call has its index",
            &["5 x f ", r#"- - - {"a":1}"#, "6 y g ", r#"- - - {"b":2}"#],
        ),
        ("fragments of two calls alternate", &[r#"0 x f {"a""#, r#"1 y g {"b""#, "0 - - :1}", "1 - - :2}"]),
    ];
    let expected = r#"x:f({"a":1}) y:g({"b":2}) Stop"#;
    let row = |(name, lines): (&'static str, &[&str])| {
        Behaviour::new("calls", name, APART).sends(Dialect::Chat, chat(lines), expected)
    };
    rows.into_iter().map(row).collect()
}

fn identities() -> Vec<Behaviour> {
    let apart = r#"x:f({"a":1}) y:g({"b":2}) Stop"#;
    let same = r#"c_r_1:f({"a":1}) c_r_2:f({"b":2}) Stop"#;
    let rows: [(&str, &[&str], &str); 5] = [
        ("every fragment has another id", &["0 x f ", r#"0 z - {"a":1}"#, r#"1 y g {"b":2}"#], apart),
        ("every fragment has the name", &[r#"0 - f {"a""#, "0 - f :1}", r#"0 - f {"b":2}"#], same),
        ("every fragment has name and id", &[r#"0 x f {"a""#, "0 x f :1}", r#"1 y g {"b":2}"#], apart),
        ("two calls of one name have no id", &[r#"- - f {"a":1}"#, r#"- - f {"b":2}"#], same),
        ("the name comes after the id", &["0 x - ", r#"0 - f {"a":1}"#, r#"1 y g {"b":2}"#], apart),
    ];
    let row = |(name, lines, expected): (&'static str, &[&str], &str)| {
        Behaviour::new("calls", name, APART).sends(Dialect::Chat, chat(lines), expected)
    };
    let steps = |first: &str, second: &str| {
        [call(first, "f", r#"{"a":1}"#), call(second, "g", r#"{"b":2}"#), Step::End(Stop)]
    };
    let ids = "gives the calls ids of its own, in the answer and in the results";
    let mut rows: Vec<Behaviour> = rows.into_iter().map(row).collect();
    rows.push(Behaviour::new("calls", "two calls have the same id", ids).says(
        &Dialect::ALL,
        &steps("x", "x"),
        r#"x:f({"a":1}) c_r_1:g({"b":2}) Stop"#,
    ));
    rows.push(Behaviour::new("calls", "ids are empty", ids).says(
        &Dialect::ALL,
        &steps("", ""),
        r#"c_r_1:f({"a":1}) c_r_2:g({"b":2}) Stop"#,
    ));
    rows.push(two_calls_in_one_chunk());
    rows
}

fn two_calls_in_one_chunk() -> Behaviour {
    let expected = "c_r_1:f({}) c_r_2:f({}) Stop";
    let chunk = chat_delta(json!({ "tool_calls": [fragment("- - f {}"), fragment("- - f {}")] }));
    let part = json!({ "functionCall": { "name": "f" } });
    let candidate = json!({ "content": { "parts": [part, part] }, "finishReason": "STOP" });
    let tool_call = json!({ "function": { "name": "f" } });
    let line = json!({ "message": { "tool_calls": [tool_call, tool_call] }, "done": true });
    Behaviour::new("calls", "two calls without ids are in one chunk", APART)
        .sends(Dialect::Chat, chunk + &chat_end("stop"), expected)
        .sends(Dialect::Gemini, sse(json!({ "candidates": [candidate] })), expected)
        .sends(Dialect::Ollama, line.to_string(), expected)
}

fn arguments() -> Vec<Behaviour> {
    let with = |arguments: &str| [call("x", "f", arguments), call("y", "g", "{}"), Step::End(Stop)];
    let row = |name, reaction| Behaviour::new("arguments", name, reaction);
    let every = &Dialect::ALL;
    let deep = r#"{"a":"#.repeat(140) + "1" + &"}".repeat(140);
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(2 * MAX_ARGUMENT_BYTES));
    let refused = |why: &str| format!("x:f({why}) y:g({{}}) Stop");
    let object = json!({ "id": "x", "function": { "name": "f", "arguments": { "a": 1 } } });
    let nulls = json!({ "index": null, "id": null, "function": { "name": "f", "arguments": null } });
    let one = |call: Value| chat_delta(json!({ "tool_calls": [call] })) + &chat_end("tool_calls");
    vec![
        row("arguments are empty", "calls with `{}`").says(&TEXT_ARGUMENTS, &with(""), &refused("{}")),
        row("arguments are `null`", "calls with `{}`").sends(Dialect::Chat, one(nulls), "c_r_1:f({}) Stop"),
        row("arguments are an object in a JSON string", "takes the object out, once").says(
            every,
            &with(r#""{\"a\": 1}""#),
            &refused(r#"{"a": 1}"#),
        ),
        row("arguments are an object where the documentation has text", "takes the object").sends(
            Dialect::Chat,
            one(object),
            r#"x:f({"a":1}) Stop"#,
        ),
        row("arguments are an array", WORDS).says(every, &with("[1]"), &refused("NotAnObject")),
        row("arguments are a text", WORDS).says(every, &with(r#""text""#), &refused("NotAnObject")),
        row("arguments end in the middle", WORDS).says(
            &TEXT_ARGUMENTS,
            &with(r#"{"a":1"#),
            &refused("NotAnObject"),
        ),
        row("arguments have 2 MiB", WORDS).says(every, &with(&long), &refused("TooLong")),
        row("arguments are 140 levels deep", WORDS).says(every, &with(&deep), &refused("TooDeep")),
    ]
}

fn ends_with_calls() -> Vec<Behaviour> {
    let every = &Dialect::ALL;
    let row = |name, reaction| Behaviour::new("calls", name, reaction);
    let one = call("x", "f", "{}");
    let many = |count: usize| -> Vec<Step> {
        let calls = (0..count).map(|it| call(&format!("c{it}"), "f", "{}"));
        calls.chain([Step::End(ToolCalls)]).collect()
    };
    let sixty_four: String = (0..64).map(|it| format!("c{it}:f({{}}) ")).collect();
    vec![
        row("an answer with calls ends with `stop`", "makes the calls").says(
            every,
            &[one.clone(), Step::End(Stop)],
            "x:f({}) Stop",
        ),
        row("an answer with calls ends by its length", "makes none of the calls, and tells the model").says(
            every,
            &[text("a"), one.clone(), Step::End(Length)],
            r#""a" Length"#,
        ),
        row("an answer with calls is filtered", "makes none of the calls").says(
            &[Dialect::Responses, Dialect::Chat, Dialect::Gemini],
            &[text("a"), one, Step::End(Filtered)],
            r#""a" Filtered"#,
        ),
        row("an answer has 64 calls", "makes them all, a few at a time").says(
            every,
            &many(64),
            &format!("{sixty_four}Stop"),
        ),
        row("an answer has 65 calls", "ends the run with `model_protocol_error`").says(
            every,
            &many(65),
            r#"TooMuch { what: "tool calls", limit: 64 }"#,
        ),
        row("a call names a tool that does not exist", "refuses it in words, with the nearest name").says(
            every,
            &[call("x", "no_such_tool", "{}"), Step::End(Stop)],
            "x:no_such_tool({}) Stop",
        ),
    ]
}

/// Calls in places that only one dialect has.
fn places() -> Vec<Behaviour> {
    let legacy = chat_delta(json!({ "function_call": { "name": "f", "arguments": "{" } }))
        + &chat_delta(json!({ "function_call": { "arguments": "}" } }))
        + &chat_end("function_call");
    let item = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" });
    let done = |index: u64, id: &str| {
        sse(json!({ "type": "response.output_item.done", "output_index": index, "item": item(id) }))
    };
    let completed = |output: Value| {
        sse(json!({ "type": "response.completed", "response": { "status": "completed", "output": output } }))
    };
    let block = json!({ "type": "tool_use", "id": "x", "name": "f", "input": { "a": 1 } });
    let start = sse(json!({ "type": "content_block_start", "index": 0, "content_block": block }));
    let end = scripted_model::render(scripted_model::Wire::Anthropic, &[Step::End(ToolCalls)]);
    vec![
        Behaviour::new("calls", "a call is a `function_call` of the old API", "makes the call").sends(
            Dialect::Chat,
            legacy,
            "c_r_1:f({}) Stop",
        ),
        Behaviour::new("calls", "calls are only in the list at the end", APART).sends(
            Dialect::Responses,
            completed(json!([item("a"), item("b")])),
            "a:f({}) b:f({}) Stop",
        ),
        Behaviour::new("calls", "calls are in events and in the list at the end", "makes each call once")
            .sends(
                Dialect::Responses,
                done(0, "a") + &done(1, "b") + &completed(json!([item("a"), item("b")])),
                "a:f({}) b:f({}) Stop",
            ),
        Behaviour::new("calls", "an event is sent twice", "makes each call once").sends(
            Dialect::Responses,
            done(0, "a") + &done(0, "a") + &completed(json!([item("a")])),
            "a:f({}) Stop",
        ),
        Behaviour::new("calls", "the start of a block has all arguments", "makes the call with them").sends(
            Dialect::Anthropic,
            start + &end,
            r#"x:f({"a":1}) Stop"#,
        ),
    ]
}
