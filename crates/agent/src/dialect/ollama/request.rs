//! Writes requests for Ollama.

use crate::{
    dialect::body::{BodyWriter, object},
    message::{AnswerMessage, AnswerPart, Content, Message},
    model::{ModelOptions, effort_level},
    view::{ToolChoice, View},
};
use bytes::Bytes;
use serde_json::{Value, json};

pub(in crate::dialect) fn write(view: &View<'_>, model: &ModelOptions) -> Bytes {
    let mut body = BodyWriter::new(&model.extra);
    body.put("model", &model.name);
    body.put("messages", &write_messages(view, model));
    // Ollama cannot forbid or require a call, so forbidden tools are left out.
    let tools = view.tools.non_empty().filter(|_| view.tool_choice != ToolChoice::Forbidden);
    body.put_some("tools", &tools);
    body.put("stream", &true);
    body.put_some(
        "think",
        &model.reasoning.map(|it| effort_level(it).map_or(Value::Bool(false), Value::from)),
    );
    body.put_object(
        "options",
        object([
            ("num_ctx", Some(model.context_window.into())),
            ("num_predict", model.max_tokens.map(Value::from)),
            ("temperature", model.temperature.map(Value::from)),
            ("top_p", model.top_p.map(Value::from)),
        ]),
    );
    body.finish()
}

fn write_messages(view: &View<'_>, model: &ModelOptions) -> Vec<Value> {
    let mut out = Vec::with_capacity(view.messages.len() + 1);
    if !view.instructions.is_empty() {
        out.push(json!({ "role": "system", "content": view.instructions }));
    }
    for message in view.messages {
        out.push(match message {
            Message::User(content) => write_content(json!({ "role": "user" }), content, model),
            Message::Answer(answer) => write_answer(answer, model),
            Message::Result(result) => {
                let head =
                    json!({ "role": "tool", "tool_name": result.name, "tool_call_id": result.call_id });
                write_content(head, &result.content, model)
            }
        });
    }
    out
}

/// Adds the text to a message, and the images in a list of their own.
fn write_content(mut message: Value, content: &[Content], model: &ModelOptions) -> Value {
    let mut images = Vec::new();
    let mut lines = Vec::new();
    for it in content {
        match it {
            Content::Image { base64, .. } if model.images => images.push(base64.as_str()),
            _ => lines.push(it.as_text()),
        }
    }
    message["content"] = lines.join("\n").into();
    if !images.is_empty() {
        message["images"] = json!(images);
    }
    message
}

fn write_answer(answer: &AnswerMessage, model: &ModelOptions) -> Value {
    let is_own = answer.model == model.native_key();
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for part in &answer.parts {
        match part {
            AnswerPart::Text { text: piece, .. } => text.push_str(piece),
            AnswerPart::Reasoning { text: piece, .. } if is_own => thinking.push_str(piece),
            AnswerPart::Reasoning { .. } => {}
            AnswerPart::Call(call) => {
                let arguments: Value =
                    serde_json::from_str(call.history_arguments()).unwrap_or_else(|_| json!({}));
                calls.push(
                    json!({ "id": call.id, "function": { "name": call.name, "arguments": arguments } }),
                );
            }
        }
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !thinking.is_empty() {
        message["thinking"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}
