//! Renders the steps of a well-behaved provider in each dialect.

use crate::dialect::{Dialect, FinishReason};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Text(String),
    Think(String),
    Call { id: String, name: String, arguments: String },
    Usage,
    End(FinishReason),
}

pub(super) fn text(text: &str) -> Step {
    Step::Text(text.into())
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Step {
    Step::Call { id: id.into(), name: name.into(), arguments: arguments.into() }
}

pub(super) fn render(dialect: Dialect, steps: &[Step]) -> String {
    let mut out = String::new();
    if dialect == Dialect::Anthropic {
        out += &sse(json!({ "type": "message_start", "message": { "id": "m", "content": [] } }));
    }
    for (index, step) in steps.iter().enumerate() {
        out += &match dialect {
            Dialect::Responses => responses(index, step),
            Dialect::Chat => chat(index, step),
            Dialect::Anthropic => anthropic(index, step),
            Dialect::Gemini => gemini(step),
            Dialect::Ollama => ollama(step),
        };
    }
    out
}

pub(super) fn sse(event: Value) -> String {
    match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    }
}

pub(super) fn chat_delta(delta: Value) -> String {
    sse(json!({ "id": "x", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }))
}

pub(super) fn chat_end(reason: &str) -> String {
    sse(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }))
}

fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second]
}

fn chat(index: usize, step: &Step) -> String {
    match step {
        Step::Text(text) => chat_delta(json!({ "content": text })),
        Step::Think(text) => chat_delta(json!({ "reasoning_content": text })),
        Step::Call { id, name, arguments } => {
            let head = json!({ "index": index, "id": id, "type": "function",
                "function": { "name": name, "arguments": "" } });
            let rest = halves(arguments).map(|it| {
                chat_delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": it } }] }))
            });
            chat_delta(json!({ "tool_calls": [head] })) + &rest.concat()
        }
        Step::Usage => sse(json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5,
            "prompt_tokens_details": { "cached_tokens": 4 },
            "completion_tokens_details": { "reasoning_tokens": 2 } } })),
        Step::End(reason) => chat_end(match reason {
            FinishReason::Stop => "stop",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::Length => "length",
            FinishReason::Filtered => "content_filter",
            FinishReason::Refused => "refusal",
        }),
    }
}

fn responses(index: usize, step: &Step) -> String {
    let done = |item: Value| {
        sse(json!({ "type": "response.output_item.done", "output_index": index, "item": item }))
    };
    match step {
        Step::Text(text) => sse(json!({ "type": "response.output_text.delta", "delta": text })),
        Step::Think(text) => {
            let delta = json!({ "type": "response.reasoning_summary_text.delta", "delta": text });
            sse(delta) + &done(json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "sig" }))
        }
        Step::Call { id, name, arguments } => {
            let item = |arguments: &str| json!({ "type": "function_call", "id": "fc", "call_id": id, "name": name, "arguments": arguments });
            let added =
                json!({ "type": "response.output_item.added", "output_index": index, "item": item("") });
            let deltas = halves(arguments).map(|it| {
                sse(json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": it }))
            });
            sse(added) + &deltas.concat() + &done(item(arguments))
        }
        Step::Usage => String::new(),
        Step::End(reason) => {
            let mut response = json!({ "status": "completed", "output": [], "usage": {
                "input_tokens": 10, "output_tokens": 5, "input_tokens_details": { "cached_tokens": 4 },
                "output_tokens_details": { "reasoning_tokens": 2 } } });
            let reason = match reason {
                FinishReason::Length => Some("max_output_tokens"),
                FinishReason::Filtered => Some("content_filter"),
                _ => None,
            };
            let Some(reason) = reason else {
                return sse(json!({ "type": "response.completed", "response": response }));
            };
            response["status"] = "incomplete".into();
            response["incomplete_details"] = json!({ "reason": reason });
            sse(json!({ "type": "response.incomplete", "response": response }))
        }
    }
}

fn anthropic(index: usize, step: &Step) -> String {
    let start =
        |block: Value| sse(json!({ "type": "content_block_start", "index": index, "content_block": block }));
    let delta = |delta: Value| sse(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    let stop = sse(json!({ "type": "content_block_stop", "index": index }));
    match step {
        Step::Text(text) => {
            start(json!({ "type": "text", "text": "" }))
                + &delta(json!({ "type": "text_delta", "text": text }))
                + &stop
        }
        Step::Think(text) => {
            start(json!({ "type": "thinking", "thinking": "", "signature": "" }))
                + &delta(json!({ "type": "thinking_delta", "thinking": text }))
                + &delta(json!({ "type": "signature_delta", "signature": "sig" }))
                + &stop
        }
        Step::Call { id, name, arguments } => {
            let deltas =
                halves(arguments).map(|it| delta(json!({ "type": "input_json_delta", "partial_json": it })));
            start(json!({ "type": "tool_use", "id": id, "name": name, "input": {} }))
                + &deltas.concat()
                + &stop
        }
        Step::Usage => String::new(),
        Step::End(reason) => {
            let word = match reason {
                FinishReason::ToolCalls => "tool_use",
                FinishReason::Length => "max_tokens",
                FinishReason::Filtered | FinishReason::Refused => "refusal",
                FinishReason::Stop => "end_turn",
            };
            let usage = json!({ "input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 5,
                "output_tokens_details": { "thinking_tokens": 2 } });
            sse(json!({ "type": "message_delta", "delta": { "stop_reason": word }, "usage": usage }))
                + &sse(json!({ "type": "message_stop" }))
        }
    }
}

fn gemini(step: &Step) -> String {
    let part =
        |part: Value| sse(json!({ "candidates": [{ "content": { "role": "model", "parts": [part] } }] }));
    match step {
        Step::Text(text) => part(json!({ "text": text })),
        Step::Think(text) => part(json!({ "text": text, "thought": true, "thoughtSignature": "sig" })),
        // The arguments go in as text, because the rows contain invalid ones too.
        Step::Call { id, name, arguments } => {
            part(json!({ "functionCall": { "id": id, "name": name, "args": "ARGS" } }))
                .replace("\"ARGS\"", arguments)
        }
        Step::Usage => sse(json!({ "usageMetadata": { "promptTokenCount": 10, "cachedContentTokenCount": 4,
            "candidatesTokenCount": 3, "thoughtsTokenCount": 2 } })),
        Step::End(reason) => {
            let word = match reason {
                FinishReason::Stop | FinishReason::ToolCalls => "STOP",
                FinishReason::Length => "MAX_TOKENS",
                FinishReason::Filtered | FinishReason::Refused => "SAFETY",
            };
            sse(json!({ "candidates": [{ "finishReason": word }] }))
        }
    }
}

fn ollama(step: &Step) -> String {
    let message =
        |message: Value| json!({ "model": "m", "message": message, "done": false }).to_string() + "\n";
    match step {
        Step::Text(text) => message(json!({ "role": "assistant", "content": text })),
        Step::Think(text) => message(json!({ "role": "assistant", "content": "", "thinking": text })),
        Step::Call { id, name, arguments } => {
            let function = json!({ "name": name, "arguments": "ARGS" });
            message(json!({ "content": "", "tool_calls": [{ "id": id, "function": function }] }))
                .replace("\"ARGS\"", arguments)
        }
        Step::Usage => String::new(),
        Step::End(reason) => {
            let word = if *reason == FinishReason::Length { "length" } else { "stop" };
            let line = json!({ "message": { "content": "" }, "done": true, "done_reason": word,
                "prompt_eval_count": 10, "eval_count": 5 });
            line.to_string() + "\n"
        }
    }
}
