//! OpenAI's responses.

mod request;

pub(super) use request::write;

use super::{
    CallFragment, Delta, FinishReason, NativeKind, Usage, decode, delta::count, push_text, reported_error,
};
use crate::model::trouble::Trouble;
use serde_json::Value;
use std::collections::HashSet;

#[derive(Debug, Default)]
pub(super) struct ResponsesReader {
    pub(super) is_over: bool,
    has_text: bool,
    has_refused: bool,
    /// Position and id of the items that were read, so that the final list adds only what is missing.
    read_items: HashSet<(Option<u64>, Option<String>)>,
}

impl ResponsesReader {
    pub(super) fn read(&mut self, event: &str) -> Result<Vec<Delta>, Trouble> {
        let event: Value = decode(event)?;
        let mut out = Vec::new();
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => self.read_text(text_at(&event, "delta"), &mut out),
            "response.refusal.delta" => {
                self.has_refused = true;
                self.read_text(text_at(&event, "delta"), &mut out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                push_text(&mut out, text_at(&event, "delta"), Delta::Reasoning);
            }
            "response.output_item.done" => {
                let position = event["output_index"].as_u64();
                if self.read_items.insert((position, item_id(&event["item"]))) || position.is_none() {
                    read_item(&event["item"], &mut out);
                }
            }
            "response.completed" => self.end(&event["response"], &mut out),
            "response.incomplete" => self.end(&event["response"], &mut out),
            "response.failed" => return Err(reported_error(&event["response"]["error"])),
            "error" => return Err(reported_error(&event)),
            _ if event.get("error").is_some_and(Value::is_object) => return Err(reported_error(&event)),
            _ => {}
        }
        Ok(out)
    }

    fn read_text(&mut self, text: Option<String>, out: &mut Vec<Delta>) {
        self.has_text |= text.as_ref().is_some_and(|it| !it.is_empty());
        push_text(out, text, Delta::Text);
    }

    /// Ends the answer. The last event repeats all items; those that no event has shown are read from it.
    fn end(&mut self, response: &Value, out: &mut Vec<Delta>) {
        let items = response["output"].as_array().map_or(&[][..], Vec::as_slice);
        for (position, item) in (0..).zip(items) {
            if !self.has_read(position, item) {
                read_item(item, out);
            }
            self.read_message(item, out);
        }
        out.extend(read_usage(&response["usage"]).map(Delta::Usage));
        self.is_over = true;
        let has_refused = self.has_refused;
        let reason = response["incomplete_details"]["reason"].as_str();
        out.push(Delta::Finish(match (response["status"].as_str(), reason) {
            (_, Some("content_filter")) => FinishReason::Filtered,
            (Some("incomplete"), _) | (_, Some(_)) => FinishReason::Length,
            _ if has_refused => FinishReason::Refused,
            _ => FinishReason::Stop,
        }));
    }

    /// Returns whether an event has shown the item. Without a position, the id decides.
    fn has_read(&self, position: u64, item: &Value) -> bool {
        let id = item_id(item);
        self.read_items.iter().any(|read| match read {
            (Some(read_position), _) => *read_position == position,
            (None, read_id) => read_id.is_none() || *read_id == id,
        })
    }

    /// Reads the text of a message unless it has arrived as deltas.
    fn read_message(&mut self, item: &Value, out: &mut Vec<Delta>) {
        if self.has_text || item["type"] != "message" {
            return;
        }
        for block in item["content"].as_array().into_iter().flatten() {
            self.has_refused |= block["type"] == "refusal";
            push_text(out, text_at(block, "text").or_else(|| text_at(block, "refusal")), Delta::Text);
        }
    }
}

/// Reads a complete item: a call, or reasoning to be kept as it came.
fn read_item(item: &Value, out: &mut Vec<Delta>) {
    match item["type"].as_str().unwrap_or_default() {
        "function_call" => out.push(Delta::Call(CallFragment {
            is_whole: true,
            id: item_id(item),
            name: text_at(item, "name"),
            arguments: text_at(item, "arguments").unwrap_or_default(),
            ..Default::default()
        })),
        "reasoning" => out.push(Delta::Native(NativeKind::Reasoning, item.clone())),
        _ => {}
    }
}

fn item_id(item: &Value) -> Option<String> {
    text_at(item, "call_id").or_else(|| text_at(item, "id"))
}

fn text_at(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

fn read_usage(usage: &Value) -> Option<Usage> {
    usage.as_object()?;
    Some(Usage {
        input: count(usage, &["input_tokens"]),
        cached_input: count(usage, &["input_tokens_details", "cached_tokens"]),
        output: count(usage, &["output_tokens"]),
        reasoning: count(usage, &["output_tokens_details", "reasoning_tokens"]),
    })
}
