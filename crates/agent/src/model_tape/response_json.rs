//! Answers of a model as lines of a recording have them.

use super::message_json::{CallNumbers, call_json};
use crate::{
    answer::{Answer, CallIds},
    dialect::{FinishReason, Usage},
    message::{AnswerPart, ToolCall},
};
use serde_json::{Map, Value, json};

const FINISH_REASONS: [(FinishReason, &str); 5] = [
    (FinishReason::Stop, "stop"),
    (FinishReason::ToolCalls, "calls"),
    (FinishReason::Length, "length"),
    (FinishReason::Filtered, "filtered"),
    (FinishReason::Refused, "refused"),
];

/// Returns the JSON of an answer, without the provider's native data.
pub(super) fn response_json(answer: &Answer, calls: &mut CallNumbers) -> Value {
    let Answer { parts, finish, usage, dropped_calls } = answer;
    let mut json = Map::new();
    let (mut text, mut reasoning, mut made) = (String::new(), String::new(), Vec::new());
    for part in parts {
        match part {
            AnswerPart::Text { text: part, .. } => text.push_str(part),
            AnswerPart::Reasoning { text: part, .. } => reasoning.push_str(part),
            AnswerPart::Call(call) => made.push(call_json(call, calls)),
        }
    }
    for (key, value) in [("text", text), ("reasoning", reasoning)] {
        if !value.is_empty() {
            json.insert(key.to_owned(), json!(value));
        }
    }
    if !made.is_empty() {
        json.insert("calls".to_owned(), made.into());
    }
    let stop = FINISH_REASONS.iter().find(|(reason, _)| reason == finish).map(|(_, word)| word);
    json.insert("stop".to_owned(), json!(stop));
    if let Some(usage) = usage {
        json.insert("usage".to_owned(), usage_json(*usage));
    }
    if *dropped_calls > 0 {
        json.insert("dropped_calls".to_owned(), json!(dropped_calls));
    }
    json.into()
}

/// Reads an answer.
pub(super) fn read_response(json: &Value, ids: &mut CallIds) -> Option<Answer> {
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    let mut parts = Vec::new();
    parts.extend(text("reasoning").map(|text| AnswerPart::Reasoning { text, native: None }));
    parts.extend(text("text").map(|text| AnswerPart::Text { text, native: None }));
    for call in json["calls"].as_array().into_iter().flatten() {
        let arguments = match &call["arguments"] {
            Value::String(text) => text.clone(),
            object => object.to_string(),
        };
        let id = ids.assign(call["id"].as_str().map(str::to_owned));
        let name = call["name"].as_str()?.to_owned();
        parts.push(AnswerPart::Call(ToolCall { id, name, arguments, native: None }));
    }
    let stop = json["stop"].as_str()?;
    Some(Answer {
        parts,
        finish: FINISH_REASONS.iter().find(|(_, word)| *word == stop).map(|(reason, _)| *reason)?,
        usage: json.get("usage").map(read_usage),
        dropped_calls: json["dropped_calls"].as_u64().and_then(|it| usize::try_from(it).ok()).unwrap_or(0),
    })
}

fn usage_json(usage: Usage) -> Value {
    let Usage { input, cached_input, output, reasoning } = usage;
    let mut json = json!({ "input": input, "output": output });
    for (key, tokens) in [("cached_input", cached_input), ("reasoning", reasoning)] {
        if tokens > 0 {
            json[key] = json!(tokens);
        }
    }
    json
}

fn read_usage(json: &Value) -> Usage {
    let tokens = |key: &str| json[key].as_u64().unwrap_or(0);
    Usage {
        input: tokens("input"),
        cached_input: tokens("cached_input"),
        output: tokens("output"),
        reasoning: tokens("reasoning"),
    }
}
