//! Renders the steps of a well-behaved provider in each wire format.

use serde_json::{Value, json};

/// Wire format of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// Ollama's chat.
    Ollama,
}

impl Wire {
    /// All wire formats.
    pub const ALL: [Wire; 5] = [Wire::Responses, Wire::Chat, Wire::Anthropic, Wire::Gemini, Wire::Ollama];
}

/// Reason for which an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model is done.
    Stop,
    /// The model waits for tool results.
    ToolCalls,
    /// Maximum length.
    Length,
    /// Content filter.
    Filtered,
    /// Refusal.
    Refused,
}

/// Part of an answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// Text.
    Text(String),
    /// Reasoning.
    Think(String),
    /// Tool call.
    Call {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// Text of the arguments.
        arguments: String,
    },
    /// Usage, in wire formats that send it separately.
    Usage,
    /// End of the answer.
    End(Finish),
}

/// Returns a text step.
pub fn text(text: &str) -> Step {
    Step::Text(text.into())
}

/// Returns a step with a tool call.
pub fn call(id: &str, name: &str, arguments: &str) -> Step {
    Step::Call { id: id.into(), name: name.into(), arguments: arguments.into() }
}

/// Renders the stream of an answer.
pub fn render(wire: Wire, steps: &[Step]) -> String {
    let mut out = String::new();
    if wire == Wire::Anthropic {
        out += &sse(json!({ "type": "message_start", "message": { "id": "m", "content": [] } }));
    }
    for (index, step) in steps.iter().enumerate() {
        out += &match wire {
            Wire::Responses => responses(index, step),
            Wire::Chat => chat(index, step),
            Wire::Anthropic => anthropic(index, step),
            Wire::Gemini => gemini(step),
            Wire::Ollama => ollama(step),
        };
    }
    out
}

/// Renders a server-sent event.
pub fn sse(event: Value) -> String {
    match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    }
}

/// Renders a delta of chat completions.
pub fn chat_delta(delta: Value) -> String {
    sse(json!({ "id": "x", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }))
}

/// Renders the last delta of chat completions.
pub fn chat_end(reason: &str) -> String {
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
            Finish::Stop => "stop",
            Finish::ToolCalls => "tool_calls",
            Finish::Length => "length",
            Finish::Filtered => "content_filter",
            Finish::Refused => "refusal",
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
                Finish::Length => Some("max_output_tokens"),
                Finish::Filtered => Some("content_filter"),
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
                Finish::ToolCalls => "tool_use",
                Finish::Length => "max_tokens",
                Finish::Filtered | Finish::Refused => "refusal",
                Finish::Stop => "end_turn",
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
                Finish::Stop | Finish::ToolCalls => "STOP",
                Finish::Length => "MAX_TOKENS",
                Finish::Filtered | Finish::Refused => "SAFETY",
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
            let word = if *reason == Finish::Length { "length" } else { "stop" };
            let line = json!({ "message": { "content": "" }, "done": true, "done_reason": word,
                "prompt_eval_count": 10, "eval_count": 5 });
            line.to_string() + "\n"
        }
    }
}
