//! Models that do not come to an end by themselves.

use super::{
    DEADLINE, LIMIT, MatrixRow,
    edit::{create, creates, done, ended, with_calls, without_usage},
    row,
};
use crate::{Action, Finish, Reply, Wire, call, render, text};

pub(super) const ROWS: &[MatrixRow] = &[
    row("loop", "endless identical calls", identical, "1 calls", REPEATS, LIMIT),
    row("loop", "endless alternating calls", alternating, "2 calls", TURNS, LIMIT)
        .settings("limits: {max_turns: 3}\n"),
    row("loop", "too many calls", |it| with_calls(it, &creates(3)), "3 calls", CALLS, LIMIT)
        .settings("limits: {max_tool_calls: 2}\n"),
    row("loop", "too many tokens", endless, "1 calls", TOKENS, LIMIT)
        .settings("limits: {max_total_tokens: 1000}\n"),
    row("loop", "deadline before headers", |_| vec![Reply::silence()], "", "", DEADLINE)
        .settings("limits: {run_timeout: 1}\n"),
    row("loop", "deadline after text", hang, "", "response_delta", DEADLINE)
        .settings("limits: {run_timeout: 1}\n"),
];

const REPEATS: &str = "(usage tool_call(completed 1))*3 (usage tool_call(failed 1))*3 response_delta usage";
const TURNS: &str = "(usage tool_call(completed 2))*3 response_delta usage";
const CALLS: &str = "usage tool_call(completed 2, failed 1) response_delta usage";
const TOKENS: &str = "(usage(estimated) tool_call(completed 1))*2";

/// Arguments that list no todos, however many other rows have created: a longer result would change the run.
const NO_TODOS: &str = r#"{"status":"archived"}"#;

fn identical(wire: Wire) -> Vec<Reply> {
    let call = Reply::calls(wire, &[("x", "todo__list_todos", NO_TODOS)]);
    [vec![call; 6], vec![done(wire)]].concat()
}

fn alternating(wire: Wire) -> Vec<Reply> {
    let calls = |title: &str| {
        let create = create("x", &format!(r#"{{"title":"{title}"}}"#));
        with_calls(wire, &[create, call("y", "todo__list_todos", NO_TODOS)]).swap_remove(0)
    };
    vec![calls("a"), calls("b"), calls("c"), done(wire)]
}

/// Calls without usage. Its estimate counts the tools of the request.
fn endless(wire: Wire) -> Vec<Reply> {
    let calls = ended(wire, &[call("x", "todo__list_todos", NO_TODOS)], Finish::ToolCalls);
    vec![Reply::stream(without_usage(&calls))]
}

fn hang(wire: Wire) -> Vec<Reply> {
    vec![Reply::stream(render(wire, &[text("lost")])).then(Action::Hang)]
}
