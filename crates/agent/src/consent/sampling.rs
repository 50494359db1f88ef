//! A server's request to the model: which parts are used, and the result.

use crate::{
    answer::Answer,
    dialect::FinishReason,
    message::{AnswerMessage, AnswerPart, Content, Message},
    model::ModelChanges,
};
use serde_json::{Value, json};
use wharf_runtime::{Raw, Redactor, RpcError};

/// Maximum length of an answer, in tokens.
const MAX_TOKENS: u64 = 1_024;
/// Maximum size of a prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 1 << 20;

/// A prompt of a server for the model. It has no tools, and nothing of the conversation is added to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SamplingRequest {
    pub(crate) messages: Vec<Message>,
    pub(crate) instructions: String,
    pub(crate) changes: ModelChanges,
    /// The prompt as the server wrote it, for the person who decides.
    pub(crate) prompt: Value,
}

impl SamplingRequest {
    pub(crate) fn read(params: &Value) -> Result<SamplingRequest, RpcError> {
        let invalid = |why: &str| RpcError::new(RpcError::INVALID_PARAMS, why.to_owned());
        if !params["tools"].is_null() || !params["toolChoice"].is_null() {
            return Err(invalid("sampling with tools is not supported"));
        }
        let messages = params["messages"].as_array().filter(|it| !it.is_empty());
        let messages = messages.ok_or_else(|| invalid("`messages` is missing"))?;
        let read: Option<Vec<Message>> = messages.iter().map(read_message).collect();
        let messages = read.ok_or_else(|| invalid("only texts and images are supported"))?;
        let prompt = json!({ "messages": params["messages"], "systemPrompt": params["systemPrompt"] });
        if prompt.to_string().len() > MAX_PROMPT_BYTES {
            return Err(invalid("the prompt is longer than 1 MiB"));
        }
        let changes = ModelChanges {
            temperature: params["temperature"].as_f64(),
            max_tokens: Some(params["maxTokens"].as_u64().unwrap_or(MAX_TOKENS).clamp(1, MAX_TOKENS)),
            ..ModelChanges::default()
        };
        let instructions = params["systemPrompt"].as_str().unwrap_or_default().to_owned();
        Ok(SamplingRequest { messages, instructions, changes, prompt })
    }

    /// Replaces secrets, because the prompt is content of a server like a result.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        self.instructions = redactor.redact(&self.instructions);
        for message in &mut self.messages {
            match message {
                Message::User(content) => content.iter_mut().for_each(|it| {
                    if let Content::Text(text) = it {
                        *text = redactor.redact(text);
                    }
                }),
                Message::Answer(answer) => answer.parts.iter_mut().for_each(|it| {
                    if let AnswerPart::Text { text, .. } = it {
                        *text = redactor.redact(text);
                    }
                }),
                Message::Result(_) => {}
            }
        }
    }
}

fn read_message(message: &Value) -> Option<Message> {
    let parts = match &message["content"] {
        Value::Array(parts) => parts.iter().map(read_content).collect::<Option<Vec<Content>>>()?,
        part => vec![read_content(part)?],
    };
    match message["role"].as_str()? {
        "user" => Some(Message::User(parts)),
        "assistant" => {
            let part = |it: Content| match it {
                Content::Text(text) => Some(AnswerPart::Text { text, native: None }),
                Content::Image { .. } => None,
            };
            let parts = parts.into_iter().map(part).collect::<Option<Vec<AnswerPart>>>()?;
            Some(Message::Answer(AnswerMessage { parts, model: String::new() }))
        }
        _ => None,
    }
}

fn read_content(part: &Value) -> Option<Content> {
    let text = |key: &str| Some(part[key].as_str()?.to_owned());
    match part["type"].as_str()? {
        "text" => Some(Content::Text(text("text")?)),
        "image" => Some(Content::image(text("mimeType")?, text("data")?)),
        _ => None,
    }
}

/// Returns the result of `sampling/createMessage`.
pub(crate) fn sampling_result(answer: &Answer, model: &str, redactor: &Redactor) -> Raw {
    let stop_reason = if answer.finish == FinishReason::Length { "maxTokens" } else { "endTurn" };
    let text = redactor.redact(&answer.text());
    json!({ "role": "assistant", "content": { "type": "text", "text": text }, "model": model,
        "stopReason": stop_reason })
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_bounded_and_have_no_tools() {
        let hello = json!([{ "role": "user", "content": { "type": "text", "text": "Hello" } }]);
        let read = |params: Value| SamplingRequest::read(&params);
        let request = read(json!({ "messages": hello, "maxTokens": 100_000, "temperature": 0.5,
            "includeContext": "allServers", "systemPrompt": "Be brief." }));
        let request = request.expect("a prompt");
        assert_eq!(request.changes.max_tokens, Some(MAX_TOKENS));
        assert_eq!((request.instructions.as_str(), request.messages.len()), ("Be brief.", 1));
        for refused in [
            json!({ "messages": hello, "tools": [{ "name": "x" }] }),
            json!({ "messages": [] }),
            json!({ "messages": [{ "role": "system", "content": { "type": "text", "text": "x" } }] }),
            json!({ "messages": [{ "role": "user", "content": { "type": "audio", "data": "" } }] }),
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "x".repeat(2 << 20) } }] }),
        ] {
            let error = read(refused).expect_err("a refusal");
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{error:?}");
        }
    }
}
