//! Writes requests for OpenAI's responses.

use crate::{
    dialect::body::{BodyWriter, object},
    message::{AnswerMessage, AnswerPart, Content, Message, ToolResult},
    model::{ModelOptions, effort_level},
    view::{ToolChoice, View},
};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use wharf_config::ReasoningEffort;

pub(in crate::dialect) fn write(view: &View<'_>, model: &ModelOptions) -> Bytes {
    let mut body = BodyWriter::new(&model.extra);
    body.put("model", &model.name);
    if !view.instructions.is_empty() {
        body.put("instructions", &view.instructions);
    }
    body.put_some("tools", &view.tools.non_empty());
    body.put_some("tool_choice", &write_tool_choice(view));
    body.put("input", &write_input(view, model));
    body.put("stream", &true);
    // Nothing is kept at the provider, so encrypted reasoning travels with the conversation.
    body.put("store", &false);
    body.put("include", &["reasoning.encrypted_content"]);
    body.put("prompt_cache_key", &view.conversation_id);
    body.put_some("max_output_tokens", &model.max_tokens);
    body.put_some("temperature", &model.temperature);
    body.put_some("top_p", &model.top_p);
    body.put_object("reasoning", model.reasoning.map(write_reasoning).unwrap_or_default());
    body.finish()
}

fn write_reasoning(effort: ReasoningEffort) -> Map<String, Value> {
    let summary = effort_level(effort).map(|_| Value::from("auto"));
    object([("effort", Some(effort_level(effort).unwrap_or("none").into())), ("summary", summary)])
}

fn write_tool_choice(view: &View<'_>) -> Option<Value> {
    match view.tool_choice {
        _ if view.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::Forbidden => Some("none".into()),
        ToolChoice::Required(name) => Some(json!({ "type": "function", "name": name })),
    }
}

fn write_input(view: &View<'_>, model: &ModelOptions) -> Vec<Value> {
    let mut out = Vec::with_capacity(view.messages.len());
    for message in view.messages {
        match message {
            Message::User(content) => {
                out.push(json!({ "role": "user", "content": write_content(content, model) }));
            }
            Message::Answer(answer) => write_answer(answer, model, &mut out),
            Message::Result(result) => out.push(write_result(result, model)),
        }
    }
    out
}

fn write_content(content: &[Content], model: &ModelOptions) -> Vec<Value> {
    let blocks = content.iter().map(|it| match it {
        Content::Image { media_type, base64, .. } if model.images => {
            json!({ "type": "input_image", "image_url": format!("data:{media_type};base64,{base64}") })
        }
        _ => json!({ "type": "input_text", "text": it.as_text() }),
    });
    blocks.collect()
}

fn write_answer(answer: &AnswerMessage, model: &ModelOptions, out: &mut Vec<Value>) {
    let is_own = answer.model == model.native_key();
    for part in &answer.parts {
        match part {
            AnswerPart::Text { text, .. } if text.is_empty() => {}
            AnswerPart::Text { text, .. } => out.push(json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            })),
            AnswerPart::Reasoning { native, .. } => out.extend(native.clone().filter(|_| is_own)),
            AnswerPart::Call(call) => out.push(json!({
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.history_arguments(),
            })),
        }
    }
}

fn write_result(result: &ToolResult, model: &ModelOptions) -> Value {
    let output = if model.images && result.images().next().is_some() {
        write_content(&result.content, model).into()
    } else {
        Value::from(result.text())
    };
    json!({ "type": "function_call_output", "call_id": result.call_id, "output": output })
}
