//! Tool calls as real servers send them: indexes, ids, names and arguments that differ from the documentation.

use super::{
    check,
    script::{Step, call, chat_delta, chat_end, render, sse},
};
use crate::dialect::Dialect;
use scripted_model::Finish::*;
use serde_json::{Value, json};

fn chat_calls(fragments: &[Value], reason: &str) -> String {
    let deltas: Vec<String> = fragments.iter().map(|it| chat_delta(json!({ "tool_calls": [it] }))).collect();
    deltas.concat() + &chat_end(reason)
}

/// Builds a fragment from `index id name arguments`, where `-` leaves a field out.
pub(super) fn fragment(line: &str) -> Value {
    let fields: Vec<&str> = line.splitn(4, ' ').collect();
    let mut fragment = json!({ "function": { "arguments": fields[3] } });
    if let Ok(index) = fields[0].parse::<u64>() {
        fragment["index"] = index.into();
    }
    if fields[1] != "-" {
        fragment["id"] = fields[1].into();
    }
    if fields[2] != "-" {
        fragment["function"]["name"] = fields[2].into();
    }
    fragment
}

fn check_fragments(row: &str, lines: &[&str], expected: &str) {
    let fragments: Vec<Value> = lines.iter().map(|line| fragment(line)).collect();
    check(Dialect::Chat, row, chat_calls(&fragments, "tool_calls"), &format!("{expected} ToolCalls"));
}

#[test]
fn chat_calls_with_any_index_stay_apart() {
    let rows: [(&str, &[&str]); 11] = [
        ("as documented", &["0 x f ", r#"0 - - {"a":1}"#, "1 y g ", r#"1 - - {"b":2}"#]),
        ("no index", &[r#"- x f {"a":1}"#, r#"- y g {"b":2}"#]),
        ("no index, fragments", &["- x f ", r#"- - - {"a":1}"#, r#"- y g {"b""#, "- - - :2}"]),
        ("index 0 twice", &[r#"0 x f {"a":1}"#, r#"0 y g {"b":2}"#]),
        ("index 0 twice, fragments", &["0 x f ", r#"0 - - {"a":1}"#, "0 y g ", r#"0 - - {"b":2}"#]),
        ("index from 1", &[r#"1 x f {"a":1}"#, r#"2 y g {"b":2}"#]),
        ("gapped index", &[r#"3 x f {"a":1}"#, r#"70 y g {"b":2}"#]),
        ("huge index", &[r#"18446744073709551615 x f {"a":1}"#, r#"0 y g {"b":2}"#]),
        ("index only in the first fragment", &["5 x f ", r#"- - - {"a":1}"#, "6 y g ", r#"- - - {"b":2}"#]),
        ("interleaved", &[r#"0 x f {"a""#, r#"1 y g {"b""#, "0 - - :1}", "1 - - :2}"]),
        ("downwards", &[r#"9 x f {"a":1}"#, r#"8 y g {"b":2}"#]),
    ];
    for (row, lines) in rows {
        check_fragments(row, lines, r#"x:f({"a":1}) y:g({"b":2})"#);
    }
}

#[test]
fn chat_calls_with_any_ids_and_names_stay_apart() {
    let both = r#"x:f({"a":1}) y:g({"b":2})"#;
    let same = r#"c_r_1:f({"a":1}) c_r_2:f({"b":2})"#;
    let rows: [(&str, &[&str], &str); 12] = [
        ("a new id in every fragment", &["0 x f ", r#"0 z - {"a":1}"#, r#"1 y g {"b":2}"#], both),
        ("the name and id in every fragment", &[r#"0 x f {"a""#, "0 x f :1}", r#"1 y g {"b":2}"#], both),
        ("the name in every fragment", &[r#"0 - f {"a""#, "0 - f :1}", r#"0 - f {"b":2}"#], same),
        ("the same name, no ids", &[r#"- - f {"a":1}"#, r#"- - f {"b":2}"#], same),
        ("empty ids and names after the first", &["0 x f ", r#"0   {"a":1}"#, r#"1 y g {"b":2}"#], both),
        ("no ids, no index, no arguments", &["- - f ", "- - g "], "c_r_1:f({}) c_r_2:g({})"),
        ("the same id twice", &["0 x f {}", "1 x g {}"], "x:f({}) c_r_1:g({})"),
        ("missing and empty ids", &["0 - f {}", "1  g {}"], "c_r_1:f({}) c_r_2:g({})"),
        ("our id from the server", &["0 c_r_1 f {}", "1 - g {}"], "c_r_1:f({}) c_r_2:g({})"),
        ("the name after the id", &["0 x - ", "0 - f {}"], "x:f({})"),
        ("a brace inside a string", &[r#"- - f {"a":"}"#, r#"- - f "}"#], r#"c_r_1:f({"a":"}"})"#),
        ("an unknown name", &["0 x no_such_tool {}"], "x:no_such_tool({})"),
    ];
    for (row, lines, expected) in rows {
        check_fragments(row, lines, expected);
    }
    check(Dialect::Chat, "no name at all", chat_calls(&[fragment("0 x - {}")], "tool_calls"), "Garbled");
}

#[test]
fn chat_calls_may_differ_from_the_documented_types() {
    let object = json!({ "id": 7, "function": { "name": "f", "arguments": { "a": 1 } } });
    check(
        Dialect::Chat,
        "objects",
        chat_calls(&[object.clone(), object], "stop"),
        r#"7:f({"a":1}) c_r_1:f({"a":1}) Stop"#,
    );
    let nulls = json!({ "index": null, "id": null, "function": { "name": "f", "arguments": null } });
    check(Dialect::Chat, "nulls", chat_calls(&[nulls], "stop"), "c_r_1:f({}) Stop");
    let in_one = chat_delta(json!({ "tool_calls": [fragment("- - f {}"), fragment("- - f {}")] }));
    check(Dialect::Chat, "two in one chunk", in_one + &chat_end("stop"), "c_r_1:f({}) c_r_2:f({}) Stop");
    let legacy = chat_delta(json!({ "function_call": { "name": "f", "arguments": "{" } }))
        + &chat_delta(json!({ "function_call": { "arguments": "}" } }));
    check(Dialect::Chat, "function_call", legacy + &chat_end("function_call"), "c_r_1:f({}) ToolCalls");
    let other = sse(json!({ "choices": [{ "index": 1, "delta": { "content": "other" } }] }));
    check(
        Dialect::Chat,
        "second choice",
        other + &chat_delta(json!({ "content": "a" })) + &chat_end("stop"),
        r#""a" Stop"#,
    );
}

#[test]
fn ids_are_made_unique_in_every_dialect() {
    for dialect in Dialect::ALL {
        let steps = [call("x", "f", "{}"), call("x", "g", "{}"), call("", "h", "{}"), Step::End(ToolCalls)];
        let finish = if matches!(dialect, Dialect::Chat | Dialect::Anthropic) { "ToolCalls" } else { "Stop" };
        let expected = format!("x:f({{}}) c_r_1:g({{}}) c_r_2:h({{}}) {finish}");
        check(dialect, "ids", render(dialect, &steps), &expected);
    }
}

#[test]
fn calls_with_one_name_and_no_arguments_stay_apart() {
    let part = json!({ "functionCall": { "name": "f" } });
    let chunk = json!({ "candidates": [{ "content": { "parts": [part, part] }, "finishReason": "STOP" }] });
    check(Dialect::Gemini, "no args", sse(chunk), "c_r_1:f({}) c_r_2:f({}) Stop");
    let tool_call = json!({ "function": { "name": "f" } });
    let line = json!({ "message": { "tool_calls": [tool_call, tool_call] }, "done": true });
    check(Dialect::Ollama, "no arguments", line.to_string(), "c_r_1:f({}) c_r_2:f({}) Stop");
}

#[test]
fn responses_take_calls_from_events_and_from_the_final_list_once() {
    let item = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" });
    let done = |index: Option<u64>, id: &str| {
        let mut event = json!({ "type": "response.output_item.done", "item": item(id) });
        index.into_iter().for_each(|it| event["output_index"] = it.into());
        sse(event)
    };
    let completed = |ids: &[&str]| {
        let output: Vec<Value> = ids.iter().map(|id| item(id)).collect();
        sse(json!({ "type": "response.completed", "response": { "status": "completed", "output": output } }))
    };
    let both = "a:f({}) b:f({}) Stop";
    let rows = [
        ("in both", done(Some(0), "a") + &done(Some(1), "b") + &completed(&["a", "b"])),
        ("only in events", done(Some(0), "a") + &done(Some(1), "b") + &completed(&[])),
        ("only in the list", completed(&["a", "b"])),
        ("one event missing", done(Some(0), "a") + &completed(&["a", "b"])),
        ("no positions", done(None, "a") + &done(None, "b") + &completed(&["a", "b"])),
        ("position 0 twice", done(Some(0), "a") + &done(Some(0), "b") + &completed(&[])),
        (
            "an event twice",
            done(Some(0), "a") + &done(Some(0), "a") + &done(Some(1), "b") + &completed(&["a", "b"]),
        ),
    ];
    for (row, bytes) in rows {
        check(Dialect::Responses, row, bytes, both);
    }
    let output = json!([{ "type": "message", "content": [{ "type": "output_text", "text": "Hi" }] }]);
    let only =
        json!({ "type": "response.completed", "response": { "status": "completed", "output": output } });
    check(Dialect::Responses, "text only in the list", sse(only), r#""Hi" Stop"#);
}

#[test]
fn anthropic_and_gemini_names_and_inputs_are_read() {
    let start = json!({ "type": "content_block_start", "index": 0,
        "content_block": { "type": "tool_use", "id": "t", "name": "f", "input": { "a": 1 } } });
    let end = render(Dialect::Anthropic, &[Step::End(ToolCalls)]);
    check(Dialect::Anthropic, "input in the start", sse(start) + &end, r#"t:f({"a":1}) ToolCalls"#);
    for (shown, name) in [("_7zip", "7zip"), ("__7zip", "_7zip"), ("_a", "_a"), ("a7", "a7")] {
        let steps = [call("t", shown, "{}"), Step::End(Stop)];
        check(Dialect::Gemini, shown, render(Dialect::Gemini, &steps), &format!("t:{name}({{}}) Stop"));
    }
}
