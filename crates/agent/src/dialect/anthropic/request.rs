//! Writes requests for Anthropic's messages.

use crate::{
    dialect::body::{BodyWriter, object},
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall, ToolResult},
    model::{ModelOptions, effort_budget, effort_level},
    view::{ToolChoice, View},
};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use wharf_config::ReasoningEffort;

/// Maximum length of an answer if the agent file sets none. Anthropic requires one.
const DEFAULT_MAX_TOKENS: u64 = 16_384;
/// Minimum budget of thinking. It has to be below the maximum length of the answer.
const MIN_THINKING_TOKENS: u64 = 1_024;

pub(in crate::dialect) fn write(view: &View<'_>, model: &ModelOptions) -> Bytes {
    let mut body = BodyWriter::new(&model.extra);
    let (thinking, output_config) = write_reasoning(view, model);
    body.put("model", &model.name);
    body.put("max_tokens", &model.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS));
    if !view.instructions.is_empty() {
        let mut block = json!({ "type": "text", "text": view.instructions });
        mark_cached(&mut block);
        body.put("system", &[block]);
    }
    body.put_some("tools", &view.tools.non_empty());
    body.put_some("tool_choice", &write_tool_choice(view));
    body.put("messages", &write_messages(view, model));
    body.put("stream", &true);
    body.put_some("temperature", &model.temperature);
    body.put_some("top_p", &model.top_p);
    body.put_some("thinking", &thinking);
    body.put_object("output_config", output_config);
    body.finish()
}

/// Returns `thinking` and `output_config`. Models from 4.6 on take an effort, and older ones a budget of tokens. A request
/// that forces a tool has neither, because Anthropic refuses both together.
fn write_reasoning(view: &View<'_>, model: &ModelOptions) -> (Option<Value>, Map<String, Value>) {
    let is_forced = matches!(view.tool_choice, ToolChoice::Required(_));
    let Some(effort) = model.reasoning.filter(|it| *it != ReasoningEffort::Off && !is_forced) else {
        return (None, Map::new());
    };
    if has_adaptive_thinking(&model.name) {
        let output_config = object([("effort", effort_level(effort).map(Value::from))]);
        return (Some(json!({ "type": "adaptive" })), output_config);
    }
    let max_tokens = model.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    if max_tokens <= MIN_THINKING_TOKENS {
        return (None, Map::new());
    }
    let budget = effort_budget(effort).min(max_tokens / 2).max(MIN_THINKING_TOKENS);
    (Some(json!({ "type": "enabled", "budget_tokens": budget })), Map::new())
}

/// Returns whether the model's name has a version from 4.6 on. A name without a version belongs to a newer model.
fn has_adaptive_thinking(name: &str) -> bool {
    let words = name.split(|it: char| !it.is_ascii_alphanumeric());
    let mut numbers = words.filter(|word| word.len() < 3).filter_map(|word| word.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (None, _) => true,
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= (4, 6),
    }
}

fn write_tool_choice(view: &View<'_>) -> Option<Value> {
    match view.tool_choice {
        _ if view.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::Forbidden => Some(json!({ "type": "none" })),
        ToolChoice::Required(name) => Some(json!({ "type": "tool", "name": name })),
    }
}

fn write_messages(view: &View<'_>, model: &ModelOptions) -> Vec<Value> {
    let mut out: Vec<RoleBlocks> = Vec::with_capacity(view.messages.len());
    for message in view.messages {
        match message {
            Message::User(content) => out.push(("user", write_content(content, model))),
            Message::Answer(answer) => out.push(("assistant", write_answer(answer, model))),
            // The results of one answer go back in one message.
            Message::Result(result) => match out.last_mut() {
                Some(("user", blocks)) if blocks.last().is_some_and(is_result) => {
                    blocks.push(write_result(result, model));
                }
                _ => out.push(("user", vec![write_result(result, model)])),
            },
        }
    }
    out.retain(|(_, blocks)| !blocks.is_empty());
    if let Some(("user", blocks)) = out.last_mut() {
        blocks.last_mut().into_iter().for_each(mark_cached);
    }
    out.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// Role and blocks of a message.
type RoleBlocks = (&'static str, Vec<Value>);

fn is_result(block: &Value) -> bool {
    block["type"] == "tool_result"
}

fn mark_cached(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Writes content without empty texts, which Anthropic refuses.
fn write_content(content: &[Content], model: &ModelOptions) -> Vec<Value> {
    let blocks = content.iter().map(|it| match it {
        Content::Image { media_type, base64, .. } if model.images => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": media_type, "data": base64 },
        }),
        _ => json!({ "type": "text", "text": it.as_text() }),
    });
    blocks.filter(|block| block["text"] != "").collect()
}

fn write_answer(answer: &AnswerMessage, model: &ModelOptions) -> Vec<Value> {
    let is_own = answer.model == model.native_key();
    let blocks = answer.parts.iter().filter_map(|part| match part {
        AnswerPart::Text { text, .. } if text.trim().is_empty() => None,
        AnswerPart::Text { text, .. } => Some(json!({ "type": "text", "text": text })),
        AnswerPart::Reasoning { native, .. } => native.clone().filter(|_| is_own),
        AnswerPart::Call(call) => Some(write_call(call)),
    });
    blocks.collect()
}

fn write_call(call: &ToolCall) -> Value {
    let input: Value = serde_json::from_str(call.history_arguments()).unwrap_or_else(|_| json!({}));
    json!({ "type": "tool_use", "id": write_id(&call.id), "name": call.name, "input": input })
}

fn write_result(result: &ToolResult, model: &ModelOptions) -> Value {
    let content = write_content(&result.content, model);
    let mut block =
        json!({ "type": "tool_result", "tool_use_id": write_id(&result.call_id), "content": content });
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

/// Returns an id in the characters that Anthropic accepts. Other providers choose freely.
fn write_id(id: &str) -> String {
    let is_valid = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    id.chars().map(|it| if is_valid(it) { it } else { '_' }).collect()
}
