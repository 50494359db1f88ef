//! Writes requests for chat completions.

use crate::{
    dialect::body::BodyWriter,
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall},
    model::{ModelOptions, effort_level},
    view::{ToolChoice, View},
};
use bytes::Bytes;
use serde_json::{Value, json};

pub(in crate::dialect) fn write(view: &View<'_>, model: &ModelOptions) -> Bytes {
    let mut body = BodyWriter::new(&model.extra);
    body.put("model", &model.name);
    body.put("messages", &write_messages(view, model));
    body.put_some("tools", &view.tools.non_empty());
    body.put_some("tool_choice", &write_tool_choice(view));
    body.put("stream", &true);
    body.put_some("temperature", &model.temperature);
    body.put_some("top_p", &model.top_p);
    body.put_some("reasoning_effort", &model.reasoning.map(|it| effort_level(it).unwrap_or("none")));
    if model.is_openai_service() {
        body.put_some("max_completion_tokens", &model.max_tokens);
        body.put("prompt_cache_key", &view.conversation_id);
        // Some compatible servers refuse these keys; `model.extra` adds them for those that know them.
        body.put("stream_options", &json!({ "include_usage": true }));
    } else {
        body.put_some("max_tokens", &model.max_tokens);
    }
    body.finish()
}

fn write_tool_choice(view: &View<'_>) -> Option<Value> {
    match view.tool_choice {
        _ if view.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::Forbidden => Some("none".into()),
        ToolChoice::Required(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

fn write_messages(view: &View<'_>, model: &ModelOptions) -> Vec<Value> {
    let mut out = Vec::with_capacity(view.messages.len() + 1);
    if !view.instructions.is_empty() {
        out.push(json!({ "role": "system", "content": view.instructions }));
    }
    // The role `tool` takes text only, so images follow the results of an answer as a message of the user.
    let mut images = Vec::new();
    for message in view.messages {
        if !matches!(message, Message::Result(_)) {
            flush_images(&mut images, &mut out);
        }
        match message {
            Message::User(content) => {
                out.push(json!({ "role": "user", "content": write_content(content, model) }));
            }
            Message::Answer(answer) => out.push(write_answer(answer, model)),
            Message::Result(result) => {
                out.push(json!({ "role": "tool", "tool_call_id": result.call_id, "content": result.text() }));
                images.extend(result.images().filter(|_| model.images).map(write_block));
            }
        }
    }
    flush_images(&mut images, &mut out);
    out
}

fn flush_images(images: &mut Vec<Value>, out: &mut Vec<Value>) {
    if !images.is_empty() {
        out.push(json!({ "role": "user", "content": std::mem::take(images) }));
    }
}

/// Writes a message of text as a string, which every compatible server understands.
fn write_content(content: &[Content], model: &ModelOptions) -> Value {
    let has_image = content.iter().any(|it| matches!(it, Content::Image { .. }));
    if has_image && model.images {
        return content.iter().map(write_block).collect();
    }
    let lines: Vec<String> = content.iter().map(Content::as_text).collect();
    lines.join("\n").into()
}

fn write_block(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { media_type, base64, .. } => {
            json!({ "type": "image_url", "image_url": { "url": format!("data:{media_type};base64,{base64}") } })
        }
    }
}

fn write_answer(answer: &AnswerMessage, model: &ModelOptions) -> Value {
    let is_own = answer.model == model.native_key();
    let mut text = String::new();
    let mut calls = Vec::new();
    for part in &answer.parts {
        match part {
            AnswerPart::Text { text: piece, .. } => text.push_str(piece),
            AnswerPart::Reasoning { .. } => {}
            AnswerPart::Call(call) => calls.push(write_call(call, is_own)),
        }
    }
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn write_call(call: &ToolCall, is_own: bool) -> Value {
    let function = json!({ "name": call.name, "arguments": call.history_arguments() });
    let mut value = json!({ "id": call.id, "type": "function", "function": function });
    if let Some(native) = call.native.as_ref().filter(|_| is_own) {
        value["extra_content"] = native.clone();
    }
    value
}
