//! How a stream ends, and what is sent in place of an answer.

use super::{
    FINISHED, MatrixRow, PROTOCOL, RESETS, RETRIES, SSE, TEXT,
    edit::{answer, creates, done},
    row,
};
use crate::{Action, Finish, Reply, Step, Wire, render, sse, text};
use serde_json::json;

pub(super) const ROWS: &[MatrixRow] = &[
    row("ends", "no [DONE]", |it| vec![Reply::stream(answer(it))], "Stop", TEXT, FINISHED),
    row("ends", "[DONE] after the end", |it| then(answer(it), DONE), "Stop", TEXT, FINISHED).only(SSE),
    row("ends", "only [DONE]", |_| vec![Reply::stream(DONE)], "Cut", RETRIES, PROTOCOL).only(SSE),
    row("ends", "[DONE] without an end", |it| then(begun(it), DONE), "Cut", RESETS, PROTOCOL).only(SSE),
    row("ends", "cut in an event", |it| vec![in_event(it).then(Action::Cut)], "Cut", RESETS, PROTOCOL),
    row("ends", "cut in a call", |it| vec![in_call(it).then(Action::Cut)], "Cut", RETRIES, PROTOCOL),
    row("ends", "cut after text", |it| vec![after_text(it).then(Action::Cut)], "Cut", RESETS, PROTOCOL),
    row("ends", "cut once", |it| vec![after_text(it), done(it)], "Cut", RESET_ONCE, FINISHED),
    row("ends", "clean end in an event", |it| vec![in_event(it)], "Cut", RESETS, PROTOCOL),
    row("ends", "clean end in a call", |it| vec![in_call(it)], "Cut", RETRIES, PROTOCOL),
    row("ends", "clean end after text", |it| vec![after_text(it)], "Cut", RESETS, PROTOCOL),
    row("ends", "clean end after a call", after_call, "Cut", RETRIES, PROTOCOL),
    row("ends", "empty stream", |_| vec![Reply::stream("")], "Cut", RETRIES, PROTOCOL),
    row("ends", "empty choices", |it| vec![Reply::stream(no_choices(it))], "Cut", RETRIES, PROTOCOL),
    row("ends", "empty answer", empty, "Empty", RETRIES, PROTOCOL),
    row("ends", "only thinking", only_thinking, "Empty", THOUGHTS, PROTOCOL),
    row("ends", "HTML", |_| vec![Reply::stream(PAGE)], "NotEvents", RETRIES, PROTOCOL),
    row("ends", "HTML once", |it| vec![Reply::stream(PAGE), done(it)], "NotEvents", PAGE_ONCE, FINISHED),
    row("ends", "JSON in place of a stream", |_| vec![Reply::stream(BODY)], "NotEvents", RETRIES, PROTOCOL)
        .only(SSE),
    row("ends", "JSON over lines", |_| vec![Reply::stream(BODY)], "Garbled", RETRIES, PROTOCOL)
        .only(&[Wire::Ollama]),
];

const DONE: &str = "data: [DONE]\n\n";
const PAGE: &str = "<html>Sign in</html>\n\n";
const BODY: &str = "{\n  \"id\": \"x\",\n  \"choices\": []\n}";
const RESET_ONCE: &str = "response_delta reset error:model_protocol_error response_delta usage";
const PAGE_ONCE: &str = "error:model_protocol_error response_delta usage";
const THOUGHTS: &str = "(thinking reset error:model_protocol_error)*3 thinking reset";

fn begun(wire: Wire) -> String {
    render(wire, &[text("lost")])
}

fn then(stream: String, more: &str) -> Vec<Reply> {
    vec![Reply::stream(stream + more)]
}

fn in_event(wire: Wire) -> Reply {
    let next = render(wire, &[text("next event that is cut")]);
    Reply::stream(begun(wire) + &next[..next.len() - 14])
}

fn in_call(wire: Wire) -> Reply {
    let call = render(wire, &creates(1));
    Reply::stream(call[..call.len() - 20].to_owned())
}

fn after_text(wire: Wire) -> Reply {
    Reply::stream(begun(wire))
}

fn after_call(wire: Wire) -> Vec<Reply> {
    vec![Reply::stream(render(wire, &creates(1)))]
}

/// An event with nothing in it, in the words of each provider.
fn no_choices(wire: Wire) -> String {
    match wire {
        Wire::Responses => {
            sse(json!({ "type": "response.created", "response": { "status": "in_progress", "output": [] } }))
        }
        Wire::Chat => sse(json!({ "choices": [] })),
        Wire::Anthropic => sse(json!({ "type": "message_start", "message": { "content": [] } })),
        Wire::Gemini => sse(json!({ "candidates": [] })),
        Wire::Ollama => json!({ "message": { "content": "" }, "done": false }).to_string() + "\n",
    }
}

fn empty(wire: Wire) -> Vec<Reply> {
    vec![Reply::answer(wire, &[Step::End(Finish::Stop), Step::Usage])]
}

fn only_thinking(wire: Wire) -> Vec<Reply> {
    let steps = [Step::Think("Hm.".into()), Step::End(Finish::Stop), Step::Usage];
    vec![Reply::answer(wire, &steps)]
}
