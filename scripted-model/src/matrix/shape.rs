//! Well-formed answers.

use super::{
    FINISHED, MatrixRow, ONE_CALL, PROTOCOL, SSE, TEXT, TWO_CALLS,
    edit::{answer, creates, done, ended, with_calls, without_usage},
    row,
};
use crate::{Finish, Reply, Step, Wire, render, text};

pub(super) const ROWS: &[MatrixRow] = &[
    row("shape", "text", |it| vec![Reply::stream(answer(it))], "Stop", TEXT, FINISHED),
    row("shape", "thinking before text", |it| thinking(it, &[text("Yes.")]), "Stop", THOUGHT, FINISHED),
    row("shape", "thinking before a call", |it| thinking(it, &creates(1)), "1 calls", THOUGHT_CALL, FINISHED),
    row("shape", "1 call", |it| with_calls(it, &creates(1)), "1 calls", ONE_CALL, FINISHED),
    row("shape", "2 calls", |it| with_calls(it, &creates(2)), "2 calls", TWO_CALLS, FINISHED),
    row("shape", "64 calls", |it| with_calls(it, &creates(64)), "64 calls", ALL_CALLS, FINISHED),
    row("shape", "65 calls", |it| with_calls(it, &creates(65)), "TooMuch", "", PROTOCOL),
    row("shape", "1-byte chunks", |it| chunks(it, 1), "Stop", TEXT, FINISHED),
    row("shape", "1-byte chunks with calls", call_chunks, "2 calls", TWO_CALLS, FINISHED),
    row("shape", "split UTF-8", |it| chunks(it, 3), "Stop", TEXT, FINISHED),
    row("shape", "CRLF", |it| changed(it, |it| it.replace('\n', "\r\n")), "Stop", TEXT, FINISHED),
    row("shape", "comments", |it| changed(it, comments), "Stop", TEXT, FINISHED).only(SSE),
    row("shape", "usage early", usage_early, "Stop", TEXT, FINISHED),
    row("shape", "usage late", |it| vec![Reply::stream(answer(it))], "Stop", TEXT, FINISHED),
    row(
        "shape",
        "usage absent",
        |it| changed(it, without_usage),
        "Stop",
        "response_delta usage(estimated)",
        FINISHED,
    ),
];

const THOUGHT: &str = "thinking response_delta usage";
const THOUGHT_CALL: &str = "thinking usage tool_call(completed 1) response_delta usage";
const ALL_CALLS: &str = "usage tool_call(completed 64) response_delta usage";

fn thinking(wire: Wire, after: &[Step]) -> Vec<Reply> {
    let steps = [&[Step::Think("Hm.".into())], after].concat();
    vec![Reply::stream(ended(wire, &steps, Finish::Stop)), done(wire)]
}

fn chunks(wire: Wire, size: usize) -> Vec<Reply> {
    vec![Reply::stream(answer(wire)).in_chunks(size)]
}

fn call_chunks(wire: Wire) -> Vec<Reply> {
    with_calls(wire, &creates(2)).into_iter().map(|it| it.in_chunks(1)).collect()
}

fn changed(wire: Wire, change: fn(&str) -> String) -> Vec<Reply> {
    vec![Reply::stream(change(&answer(wire)))]
}

fn comments(stream: &str) -> String {
    format!(": PROCESSING\n\n{}", stream.replace("data: ", ": ping\ndata: "))
}

fn usage_early(wire: Wire) -> Vec<Reply> {
    vec![Reply::stream(render(wire, &[Step::Usage, text("a"), Step::End(Finish::Stop)]))]
}
