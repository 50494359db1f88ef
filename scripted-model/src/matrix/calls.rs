//! Tool calls: indexes, ids, names and arguments that differ from the documentation.

use super::{
    FINISHED, JSON_ARGUMENTS, LIMIT, MatrixRow, ONE_REFUSED, TEXT_ARGUMENTS, TWO_CALLS,
    edit::{
        TOOL, changed_calls, create, creates, done, edit, ended, with_arguments, with_calls, with_indexes,
    },
    row,
};
use crate::{Finish, Reply, Wire, call};

pub(super) const ROWS: &[MatrixRow] = &[
    row("calls", "no index", |it| with_indexes(it, |_| None), "2 calls", TWO_CALLS, FINISHED),
    row("calls", "same index", |it| with_indexes(it, |_| Some(0)), "2 calls", TWO_CALLS, FINISHED),
    row("calls", "index from 1", |it| with_indexes(it, |at| Some(at + 1)), "2 calls", TWO_CALLS, FINISHED),
    row(
        "calls",
        "gapped index",
        |it| with_indexes(it, |at| Some(3 + 67 * at)),
        "2 calls",
        TWO_CALLS,
        FINISHED,
    ),
    row(
        "calls",
        "huge index",
        |it| with_indexes(it, |at| Some(u64::MAX - at)),
        "2 calls",
        TWO_CALLS,
        FINISHED,
    ),
    row("calls", "duplicate ids", |it| with_ids(it, "x"), "2 calls", TWO_CALLS, FINISHED),
    row("calls", "empty ids", |it| with_ids(it, ""), "2 calls", TWO_CALLS, FINISHED),
    row("calls", "missing ids", no_ids, "2 calls", TWO_CALLS, FINISHED),
    row("calls", "unknown name", |it| with_name(it, "no_such_tool"), "2 calls", ONE_REFUSED, FINISHED),
    row("calls", "near name", |it| with_name(it, "todo__create_tod"), "2 calls", ONE_REFUSED, FINISHED),
    row("calls", "array arguments", |it| with_arguments(it, "[1]"), "2 calls", ONE_REFUSED, FINISHED),
    row("calls", "string arguments", |it| with_arguments(it, "\"t\""), "2 calls", ONE_REFUSED, FINISHED),
    row(
        "calls",
        "wrong arguments",
        |it| with_arguments(it, "{\"title\":1}"),
        "2 calls",
        ONE_MISFIT,
        FINISHED,
    ),
    row("calls", "2 MiB arguments", |it| with_arguments(it, &long()), "2 calls", ONE_REFUSED, FINISHED),
    row("calls", "deep arguments", |it| with_arguments(it, &deep()), "2 calls", ONE_REFUSED, FINISHED),
    row("calls", "empty arguments", empty_arguments, "1 calls", LISTED, FINISHED),
    row(
        "calls",
        "double-encoded arguments",
        |it| with_arguments(it, ENCODED),
        "2 calls",
        TWO_CALLS,
        FINISHED,
    ),
    row("calls", "truncated arguments", |it| with_arguments(it, TRUNCATED), "2 calls", ONE_REFUSED, FINISHED)
        .only(TEXT_ARGUMENTS),
    row(
        "calls",
        "truncated arguments in JSON",
        |it| with_arguments(it, TRUNCATED),
        "Garbled",
        GARBLED_ONCE,
        FINISHED,
    )
    .only(JSON_ARGUMENTS),
    row("calls", "stop with calls", |it| finished_by(it, Finish::Stop), "2 calls", TWO_CALLS, FINISHED),
    row("calls", "length with calls", |it| finished_by(it, Finish::Length), "Length", TOLD, FINISHED),
    row("calls", "length with calls twice", always_cut, "Length", "usage*2", LIMIT),
];

/// An object inside a JSON string.
const ENCODED: &str = r#""{\"title\":\"encoded\"}""#;
const TRUNCATED: &str = r#"{"title":"t"#;
/// Events of an event that is not JSON, and of the next try.
const GARBLED_ONCE: &str = "error:model_protocol_error response_delta usage";
/// Events of a call without arguments, and of the answer after it.
const LISTED: &str = "usage tool_call(completed 1) response_delta usage";
/// Events of a call whose arguments do not fit the schema, one that can be made, and of the answer after them.
const ONE_MISFIT: &str =
    "usage tool_call(completed 1, failed 1, invalid_tool_arguments 1) response_delta usage";
/// Events of an answer whose calls are not made, and of the answer after the model is told.
const TOLD: &str = "usage response_delta usage";

fn with_ids(wire: Wire, id: &str) -> Vec<Reply> {
    with_calls(wire, &[create(id, r#"{"title":"a"}"#), create(id, r#"{"title":"b"}"#)])
}

fn no_ids(wire: Wire) -> Vec<Reply> {
    changed_calls(wire, |object| ["id", "call_id"].iter().for_each(|it| drop(object.remove(*it))))
}

fn with_name(wire: Wire, name: &str) -> Vec<Reply> {
    with_calls(wire, &[call("x", name, r#"{"title":"a"}"#), create("y", r#"{"title":"b"}"#)])
}

fn long() -> String {
    format!(r#"{{"title":"{}"}}"#, "x".repeat(2 << 20))
}

fn deep() -> String {
    r#"{"title":"#.repeat(140) + "1" + &"}".repeat(140)
}

/// A call without arguments: an empty text, or no member where arguments are JSON.
fn empty_arguments(wire: Wire) -> Vec<Reply> {
    let is_json = JSON_ARGUMENTS.contains(&wire);
    let list = call("x", "todo__list_todos", if is_json { "{}" } else { "" });
    let stream = ended(wire, &[list], Finish::ToolCalls);
    let stream = edit(&stream, &|object| {
        if is_json && object.contains_key("name") {
            object.retain(|key, _| !matches!(key.as_str(), "args" | "arguments"));
        }
    });
    vec![Reply::stream(stream), done(wire)]
}

fn finished_by(wire: Wire, finish: Finish) -> Vec<Reply> {
    vec![Reply::stream(ended(wire, &creates(2), finish)), done(wire)]
}

fn always_cut(wire: Wire) -> Vec<Reply> {
    vec![Reply::stream(ended(wire, &[call("x", TOOL, "{}")], Finish::Length))]
}
