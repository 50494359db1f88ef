//! Writes requests for Gemini.

use crate::{
    dialect::{
        body::{BodyWriter, object},
        tools::escape_name,
    },
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall, ToolResult},
    model::{ModelOptions, effort_budget},
    view::{ToolChoice, View},
};
use bytes::Bytes;
use serde_json::{Value, json};
use wharf_config::ReasoningEffort;

pub(in crate::dialect) fn write(view: &View<'_>, model: &ModelOptions) -> Bytes {
    let mut body = BodyWriter::new(&model.extra);
    if !view.instructions.is_empty() {
        body.put("systemInstruction", &json!({ "parts": [{ "text": view.instructions }] }));
    }
    if let Some(tools) = view.tools.non_empty() {
        body.put("tools", &json!([{ "functionDeclarations": tools }]));
    }
    body.put_object("toolConfig", object([("functionCallingConfig", write_tool_choice(view))]));
    body.put("contents", &write_contents(view, model));
    body.put_object(
        "generationConfig",
        object([
            ("temperature", model.temperature.map(Value::from)),
            ("topP", model.top_p.map(Value::from)),
            ("maxOutputTokens", model.max_tokens.map(Value::from)),
            ("thinkingConfig", model.reasoning.map(write_reasoning)),
        ]),
    );
    body.finish()
}

fn write_reasoning(effort: ReasoningEffort) -> Value {
    json!({ "thinkingBudget": effort_budget(effort), "includeThoughts": effort != ReasoningEffort::Off })
}

fn write_tool_choice(view: &View<'_>) -> Option<Value> {
    match view.tool_choice {
        _ if view.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::Forbidden => Some(json!({ "mode": "NONE" })),
        ToolChoice::Required(name) => {
            Some(json!({ "mode": "ANY", "allowedFunctionNames": [escape_name(name)] }))
        }
    }
}

fn write_contents(view: &View<'_>, model: &ModelOptions) -> Vec<Value> {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::with_capacity(view.messages.len());
    let mut in_results = false;
    for message in view.messages {
        match message {
            Message::User(content) => {
                out.push(("user", content.iter().map(|it| write_part(it, model)).collect()));
            }
            Message::Answer(answer) => out.push(("model", write_answer(answer, model))),
            // The results of one answer go back in one message.
            Message::Result(result) => match out.last_mut() {
                Some((_, parts)) if in_results => parts.extend(write_result(result, model)),
                _ => out.push(("user", write_result(result, model).collect())),
            },
        }
        in_results = matches!(message, Message::Result(_));
    }
    out.retain(|(_, parts)| !parts.is_empty());
    out.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

fn write_part(content: &Content, model: &ModelOptions) -> Value {
    match content {
        Content::Image { media_type, base64, .. } if model.images => {
            json!({ "inlineData": { "mimeType": media_type, "data": base64 } })
        }
        _ => json!({ "text": content.as_text() }),
    }
}

fn write_answer(answer: &AnswerMessage, model: &ModelOptions) -> Vec<Value> {
    let is_own = answer.model == model.native_key();
    let parts = answer.parts.iter().filter_map(|part| {
        let (mut value, native) = match part {
            AnswerPart::Text { text, native } => (json!({ "text": text }), native),
            AnswerPart::Reasoning { text, native } => (json!({ "text": text, "thought": true }), native),
            AnswerPart::Call(call) => (write_call(call), &call.native),
        };
        let signature = native.as_ref().filter(|_| is_own);
        let is_wanted = match part {
            AnswerPart::Text { text, .. } => signature.is_some() || !text.is_empty(),
            AnswerPart::Reasoning { .. } => signature.is_some(),
            AnswerPart::Call(_) => true,
        };
        if let Some(signature) = signature {
            value["thoughtSignature"] = signature.clone();
        }
        is_wanted.then_some(value)
    });
    parts.collect()
}

fn write_call(call: &ToolCall) -> Value {
    let args: Value = serde_json::from_str(call.history_arguments()).unwrap_or_else(|_| json!({}));
    json!({ "functionCall": { "id": call.id, "name": escape_name(&call.name), "args": args } })
}

fn write_result<'a>(result: &'a ToolResult, model: &'a ModelOptions) -> impl Iterator<Item = Value> + 'a {
    let key = if result.is_error { "error" } else { "output" };
    let response = json!({ "functionResponse": {
        "id": result.call_id, "name": escape_name(&result.name), "response": { key: result.text() },
    } });
    let images = result.images().filter(|_| model.images).map(|it| write_part(it, model));
    std::iter::once(response).chain(images)
}
