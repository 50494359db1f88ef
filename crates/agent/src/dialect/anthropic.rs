//! Anthropic's messages.

mod request;

pub(super) use request::write;

use super::{
    CallFragment, Delta, FinishReason, NativeKind, Usage, decode, delta::count, push_text, reported_error,
};
use crate::model::trouble::Trouble;
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct AnthropicReader {
    pub(super) is_over: bool,
    has_stop_reason: bool,
    usage: Usage,
    /// The thinking block that is open, to be kept as it came.
    thinking: Option<ThinkingBlock>,
}

#[derive(Debug, Default)]
struct ThinkingBlock {
    text: String,
    signature: String,
}

impl AnthropicReader {
    pub(super) fn read(&mut self, event: &str) -> Result<Vec<Delta>, Trouble> {
        let event: Value = decode(event)?;
        let mut out = Vec::new();
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => out.extend(self.read_usage(&event["message"]["usage"])),
            "content_block_start" => self.start_block(&event, &mut out),
            "content_block_delta" => self.read_delta(&event, &mut out),
            "content_block_stop" => out.extend(self.end_thinking()),
            "message_delta" => {
                out.extend(self.read_usage(&event["usage"]));
                if let Some(word) = event["delta"]["stop_reason"].as_str() {
                    self.has_stop_reason = true;
                    out.push(Delta::Finish(finish_reason(word)));
                }
            }
            "message_stop" => self.is_over = self.has_stop_reason,
            "error" => return Err(reported_error(&event)),
            _ if event.get("error").is_some_and(Value::is_object) => return Err(reported_error(&event)),
            _ => {}
        }
        Ok(out)
    }

    fn start_block(&mut self, event: &Value, out: &mut Vec<Delta>) {
        out.extend(self.end_thinking());
        let block = &event["content_block"];
        match block["type"].as_str().unwrap_or_default() {
            "text" => push_text(out, text_at(block, "text"), Delta::Text),
            "thinking" => {
                self.thinking = Some(ThinkingBlock::default());
                self.add_thinking(text_at(block, "thinking"), out);
                self.add_signature(block);
            }
            "redacted_thinking" => out.push(Delta::Native(NativeKind::Reasoning, block.clone())),
            "tool_use" => out.push(Delta::Call(start_call(event, block))),
            _ => {}
        }
    }

    fn read_delta(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let delta = &event["delta"];
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => push_text(out, text_at(delta, "text"), Delta::Text),
            "thinking_delta" => self.add_thinking(text_at(delta, "thinking"), out),
            "signature_delta" => self.add_signature(delta),
            "input_json_delta" => out.push(Delta::Call(CallFragment {
                index: event.get("index").map(Value::to_string),
                arguments: text_at(delta, "partial_json").unwrap_or_default(),
                ..Default::default()
            })),
            _ => {}
        }
    }

    fn add_thinking(&mut self, text: Option<String>, out: &mut Vec<Delta>) {
        if let Some(text) = &text {
            self.thinking.get_or_insert_default().text.push_str(text);
        }
        push_text(out, text, Delta::Reasoning);
    }

    fn add_signature(&mut self, block: &Value) {
        if let Some(signature) = block["signature"].as_str() {
            self.thinking.get_or_insert_default().signature.push_str(signature);
        }
    }

    fn end_thinking(&mut self) -> Option<Delta> {
        let ThinkingBlock { text, signature } = self.thinking.take()?;
        let block = json!({ "type": "thinking", "thinking": text, "signature": signature });
        Some(Delta::Native(NativeKind::Reasoning, block))
    }

    /// Adds what an event says about usage. The counts grow during the answer.
    fn read_usage(&mut self, usage: &Value) -> Option<Delta> {
        usage.as_object()?;
        let cached = count(usage, &["cache_read_input_tokens"]);
        let input = count(usage, &["input_tokens"]) + cached + count(usage, &["cache_creation_input_tokens"]);
        self.usage.input = self.usage.input.max(input);
        self.usage.cached_input = self.usage.cached_input.max(cached);
        self.usage.output = self.usage.output.max(count(usage, &["output_tokens"]));
        let thinking = count(usage, &["output_tokens_details", "thinking_tokens"]);
        self.usage.reasoning = self.usage.reasoning.max(thinking);
        Some(Delta::Usage(self.usage))
    }
}

fn start_call(event: &Value, block: &Value) -> CallFragment {
    let input = block["input"].as_object().filter(|it| !it.is_empty()).map(|_| block["input"].to_string());
    CallFragment {
        index: event.get("index").map(Value::to_string),
        id: text_at(block, "id"),
        name: text_at(block, "name"),
        arguments: input.unwrap_or_default(),
        ..Default::default()
    }
}

fn text_at(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::Refused,
        _ => FinishReason::Stop,
    }
}
