//! Size and time: nothing that a provider sends or withholds exceeds the limits.

use super::{FINISHED, MatrixRow, PROTOCOL, RESETS, SILENT, TEXT, edit::ended, row};
use crate::{Action, Finish, Reply, Step, Wire, render, sse, text};
use serde_json::json;
use std::time::Duration;

pub(super) const ROWS: &[MatrixRow] = &[
    row("size, time", "endless stream", endless, "TooMuch", "response_delta reset", PROTOCOL),
    row("size, time", "event without end", endless_event, "TooMuch", "", PROTOCOL),
    row("size, time", "10,000 deltas", deltas, "Stop", TEXT, FINISHED),
    row("size, time", "bad UTF-8", |it| vec![broken(it, b"\xff")], "Garbled", RESETS, PROTOCOL),
    row("size, time", "bad JSON", |it| vec![broken(it, b"{]")], "Garbled", RESETS, PROTOCOL),
    row("size, time", "slow drip", drip, "Stop", TEXT, FINISHED).model("  idle_timeout: 1\n"),
    row("size, time", "hang before headers", |_| vec![Reply::silence()], "NoFirstByte", WAITS, SILENT)
        .model("  timeout: 0.2\n"),
    row("size, time", "hang after headers", |it| hang(it, &[]), "NoFirstByte", WAITS, SILENT)
        .model("  timeout: 0.2\n"),
    row("size, time", "hang after text", |it| hang(it, &[text("lost")]), "Silent", PAUSES, SILENT)
        .model("  idle_timeout: 0.2\n"),
];

const WAITS: &str = "error:timeout*3";
const PAUSES: &str = "(response_delta reset error:timeout)*3 response_delta reset";

fn endless(wire: Wire) -> Vec<Reply> {
    let piece = render(wire, &[text(&"a".repeat(64 << 10))]);
    vec![Reply::stream("").then(Action::SendForever(piece.into()))]
}

fn prefix(wire: Wire) -> &'static [u8] {
    if wire == Wire::Ollama { b"" } else { b"data: " }
}

fn endless_event(wire: Wire) -> Vec<Reply> {
    let begun = [prefix(wire), b"{\"x\":\""].concat();
    vec![Reply::stream(begun).then(Action::SendForever(vec![b'a'; 64 << 10]))]
}

fn deltas(wire: Wire) -> Vec<Reply> {
    let pieces = 10_000;
    if wire != Wire::Anthropic {
        return vec![Reply::stream(ended(wire, &vec![text("a"); pieces], Finish::Stop))];
    }
    // A block of Anthropic is a part of the answer, and the number of parts is limited, so the deltas share one.
    let block = json!({ "type": "text", "text": "" });
    let start = sse(json!({ "type": "content_block_start", "index": 0, "content_block": block }));
    let delta = json!({ "type": "text_delta", "text": "a" });
    let delta = sse(json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
    vec![Reply::stream(start + &delta.repeat(pieces) + &ended(wire, &[], Finish::Stop))]
}

fn broken(wire: Wire, bytes: &[u8]) -> Reply {
    Reply::stream([render(wire, &[text("lost")]).as_bytes(), prefix(wire), bytes, b"\n\n"].concat())
}

/// An answer whose pauses are short, but together longer than the time that an answer may pause.
fn drip(wire: Wire) -> Vec<Reply> {
    let begun = Reply::stream(render(wire, &[text("a")]));
    let piece = render(wire, &[text("b")]).into_bytes();
    let dripping = (0..12).fold(begun, |it, _| {
        it.then(Action::Pause(Duration::from_millis(100))).then(Action::Send(piece.clone()))
    });
    vec![dripping.then(Action::Send(render(wire, &[Step::End(Finish::Stop), Step::Usage]).into()))]
}

fn hang(wire: Wire, steps: &[Step]) -> Vec<Reply> {
    let begun = if steps.is_empty() { String::new() } else { render(wire, steps) };
    vec![Reply::stream(begun).then(Action::Hang)]
}
