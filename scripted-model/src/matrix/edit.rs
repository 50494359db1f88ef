//! Replies that are like those of a well-behaved provider, but for a part.

use crate::{Finish, Reply, Step, Wire, call, render, text};
use serde_json::{Map, Value};

/// Name of a tool without side effects that matter.
pub(super) const TOOL: &str = "todo__create_todo";

/// Returns a call with these arguments.
pub(super) fn create(id: &str, arguments: &str) -> Step {
    call(id, TOOL, arguments)
}

/// Returns this many calls that differ.
pub(super) fn creates(count: usize) -> Vec<Step> {
    (0..count).map(|at| create(&format!("c{at}"), &format!(r#"{{"title":"t{at}"}}"#))).collect()
}

/// Renders these steps with their end and their usage.
pub(super) fn ended(wire: Wire, steps: &[Step], finish: Finish) -> String {
    render(wire, &[steps, &[Step::End(finish), Step::Usage]].concat())
}

/// Returns the answer after calls.
pub(super) fn done(wire: Wire) -> Reply {
    Reply::text(wire, "Done")
}

/// Returns an answer with these calls, and the answer after it.
pub(super) fn with_calls(wire: Wire, calls: &[Step]) -> Vec<Reply> {
    vec![Reply::stream(ended(wire, calls, Finish::ToolCalls)), done(wire)]
}

/// Returns an answer with one call that has these arguments and one that can be made, and the answer after it.
pub(super) fn with_arguments(wire: Wire, arguments: &str) -> Vec<Reply> {
    with_calls(wire, &[create("x", arguments), create("y", r#"{"title":"t"}"#)])
}

/// Returns an answer of text.
pub(super) fn answer(wire: Wire) -> String {
    ended(wire, &[text("Hé"), text("llo 🦀")], Finish::Stop)
}

/// Returns an answer with two calls after a change of every object in its events.
pub(super) fn changed_calls(wire: Wire, change: impl Fn(&mut Map<String, Value>)) -> Vec<Reply> {
    let stream = ended(wire, &creates(2), Finish::ToolCalls);
    vec![Reply::stream(edit(&stream, &change)), done(wire)]
}

/// Changes the index of the calls: `None` removes it.
pub(super) fn with_indexes(wire: Wire, index: impl Fn(u64) -> Option<u64>) -> Vec<Reply> {
    changed_calls(wire, |object| {
        let is_block = object.get("type").is_some_and(|it| it.to_string().contains("content_block"));
        let key = if object.contains_key("output_index") { "output_index" } else { "index" };
        let is_call = key == "output_index" || is_block || object.contains_key("function");
        let Some(old) = object.get(key).and_then(Value::as_u64).filter(|_| is_call) else { return };
        match index(old) {
            Some(new) => object.insert(key.to_owned(), new.into()),
            None => object.remove(key),
        };
    })
}

/// Removes the usage.
pub(super) fn without_usage(stream: &str) -> String {
    let keys = ["usage", "usageMetadata", "prompt_eval_count", "eval_count"];
    edit(stream, &|object| keys.iter().for_each(|it| drop(object.remove(*it))))
}

/// Changes every object in the events of a stream.
pub(super) fn edit(stream: &str, change: &impl Fn(&mut Map<String, Value>)) -> String {
    let line = |line: &str| {
        let (field, data) = line.split_once("data: ").map_or(("", line), |(_, data)| ("data: ", data));
        let Ok(mut event) = serde_json::from_str(data) else { return line.to_owned() };
        visit(&mut event, change);
        format!("{field}{event}")
    };
    stream.lines().map(|it| line(it) + "\n").collect()
}

fn visit(value: &mut Value, change: &impl Fn(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            change(object);
            object.values_mut().for_each(|it| visit(it, change));
        }
        Value::Array(values) => values.iter_mut().for_each(|it| visit(it, change)),
        _ => {}
    }
}
