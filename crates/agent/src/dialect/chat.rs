//! OpenAI's chat completions, as OpenAI, Azure and the compatible servers speak them.

mod request;

pub(super) use request::write;

use super::{CallFragment, Delta, FinishReason, Usage, decode, delta::count, push_text, reported_error};
use crate::model::trouble::Trouble;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

#[derive(Debug, Default)]
pub(super) struct ChatReader {
    pub(super) is_over: bool,
    /// Whether `[DONE]` was received. It ends the stream but not an answer without a finish reason.
    pub(super) is_closed: bool,
    has_refused: bool,
}

#[derive(Deserialize)]
struct ChatChunk<'a> {
    error: Option<Value>,
    #[serde(borrow)]
    choices: Option<Vec<ChatChoice<'a>>>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<ChatDelta<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    reasoning_content: Option<String>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
    #[serde(borrow)]
    function_call: Option<ChatFunction<'a>>,
}

#[derive(Deserialize)]
struct ChatCall<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<ChatFunction<'a>>,
    /// Data that Gemini's compatible API wants back: the thought signature of the call.
    extra_content: Option<Value>,
}

#[derive(Deserialize)]
struct ChatFunction<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl ChatReader {
    pub(super) fn read(&mut self, event: &str) -> Result<Vec<Delta>, Trouble> {
        let chunk: ChatChunk<'_> = decode(event)?;
        if let Some(error) = &chunk.error {
            return Err(reported_error(error));
        }
        let mut out = Vec::new();
        for choice in chunk.choices.into_iter().flatten() {
            // Only one choice is asked for; a second one is another answer.
            if choice.index.is_none_or(|index| index.get() == "0") {
                self.read_choice(choice, &mut out)?;
            }
        }
        out.extend(chunk.usage.as_ref().and_then(read_usage).map(Delta::Usage));
        Ok(out)
    }

    fn read_choice(&mut self, choice: ChatChoice<'_>, out: &mut Vec<Delta>) -> Result<(), Trouble> {
        if let Some(delta) = choice.delta {
            self.read_delta(delta, out);
        }
        let Some(word) = choice.finish_reason.filter(|it| !it.is_empty()) else { return Ok(()) };
        if word == "error" {
            return Err(reported_error(&Value::from("the answer ended with the finish reason `error`")));
        }
        self.is_over = true;
        out.push(Delta::Finish(if self.has_refused { FinishReason::Refused } else { finish_reason(&word) }));
        Ok(())
    }

    fn read_delta(&mut self, delta: ChatDelta<'_>, out: &mut Vec<Delta>) {
        // Some servers send the same text under both names.
        let reasoning = delta.reasoning_content.filter(|it| !it.is_empty());
        push_text(out, reasoning.or_else(|| delta.reasoning.and_then(string)), Delta::Reasoning);
        push_text(out, delta.content.map(content_text), Delta::Text);
        self.has_refused |= delta.refusal.as_ref().is_some_and(|it| !it.is_empty());
        push_text(out, delta.refusal, Delta::Text);
        for call in delta.tool_calls.into_iter().flatten() {
            out.push(Delta::Call(read_call(call)));
        }
        out.extend(delta.function_call.map(|function| Delta::Call(read_function(function))));
    }
}

fn read_call(call: ChatCall<'_>) -> CallFragment {
    CallFragment {
        index: call.index.map(|it| it.get().to_owned()),
        id: call.id.map(string_or_json),
        native: call.extra_content,
        ..call.function.map(read_function).unwrap_or_default()
    }
}

fn read_function(function: ChatFunction<'_>) -> CallFragment {
    let ChatFunction { name, arguments } = function;
    // Arguments are a string that grows. A few servers send the whole object instead.
    let is_whole = arguments.is_some_and(|it| !it.get().starts_with('"')) && name.is_some();
    let arguments = arguments.map(string_or_json).unwrap_or_default();
    CallFragment { is_whole, name, arguments, ..Default::default() }
}

fn string_or_json(raw: &RawValue) -> String {
    string(raw).unwrap_or_else(|| raw.get().to_owned())
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// Returns the text of `content`: a string, or a list of typed blocks.
fn content_text(raw: &RawValue) -> String {
    string(raw).unwrap_or_else(|| {
        let blocks: Vec<Value> = serde_json::from_str(raw.get()).unwrap_or_default();
        blocks.iter().filter_map(|block| block["text"].as_str()).collect()
    })
}

/// Returns the meaning of a finish reason. Compatible servers have words of their own for `stop`.
fn finish_reason(word: &str) -> FinishReason {
    match word {
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::Filtered,
        "refusal" => FinishReason::Refused,
        _ => FinishReason::Stop,
    }
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let usage = usage.is_object().then_some(usage)?;
    Some(Usage {
        input: count(usage, &["prompt_tokens"]),
        cached_input: count(usage, &["prompt_tokens_details", "cached_tokens"]),
        output: count(usage, &["completion_tokens"]),
        reasoning: count(usage, &["completion_tokens_details", "reasoning_tokens"]),
    })
}
