//! Messages of a conversation as lines of a recording have them.

use crate::{
    attachment::Attachment,
    message::{AnswerPart, Content, Message, ToolCall},
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Numbers of the calls of a conversation, by the id that the provider gave them.
#[derive(Debug, Default)]
pub(super) struct CallNumbers(HashMap<String, usize>);

impl CallNumbers {
    /// Returns the name of a call: `c1`, `c2` and so on.
    pub(super) fn name(&mut self, id: &str) -> String {
        let next = self.0.len() + 1;
        format!("c{}", self.0.entry(id.to_owned()).or_insert(next))
    }
}

/// Returns a message.
pub(super) fn message_json(message: &Message, calls: &mut CallNumbers) -> Value {
    let mut json = Map::new();
    match message {
        Message::User(content) => {
            json.insert("role".to_owned(), json!("user"));
            let (key, content) = content_json(content);
            json.insert(key.to_owned(), content);
        }
        Message::Answer(answer) => {
            json.insert("role".to_owned(), json!("assistant"));
            let texts = answer.parts.iter().filter_map(|part| match part {
                AnswerPart::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            let text: String = texts.collect();
            if !text.is_empty() {
                json.insert("text".to_owned(), json!(text));
            }
            let made = answer.parts.iter().filter_map(|part| match part {
                AnswerPart::Call(call) => Some(call_json(call, calls)),
                _ => None,
            });
            let made: Vec<Value> = made.collect();
            if !made.is_empty() {
                json.insert("calls".to_owned(), made.into());
            }
        }
        Message::Result(result) => {
            json.insert("role".to_owned(), json!("tool"));
            json.insert("id".to_owned(), json!(calls.name(&result.call_id)));
            json.insert("name".to_owned(), json!(result.name));
            let (key, content) = content_json(&result.content);
            json.insert(key.to_owned(), content);
            if result.is_error {
                json.insert("error".to_owned(), json!(true));
            }
        }
    }
    json.into()
}

/// Returns content, and the key under which it is: one text is `text`, everything else is `content`.
pub(super) fn content_json(content: &[Content]) -> (&'static str, Value) {
    if let [Content::Text(text)] = content {
        return ("text", json!(text));
    }
    ("content", content.iter().map(part_json).collect())
}

fn part_json(part: &Content) -> Value {
    match part {
        Content::Text(text) => json!({ "text": text }),
        Content::Image { media_type, base64, .. } => json!({ "media_type": media_type, "base64": base64 }),
    }
}

/// Returns an attachment: its content, with title and source.
pub(super) fn attachment_json(attachment: &Attachment) -> Value {
    let mut json = part_json(&attachment.content);
    json["title"] = json!(attachment.title);
    if let Some(source) = &attachment.source {
        json["source"] = json!(source);
    }
    json
}

/// Returns a call. Arguments that are no object stay text.
pub(super) fn call_json(call: &ToolCall, calls: &mut CallNumbers) -> Value {
    let parsed = serde_json::from_str::<Value>(&call.arguments).ok().filter(Value::is_object);
    let arguments = parsed.unwrap_or_else(|| json!(call.arguments));
    json!({ "id": calls.name(&call.id), "name": call.name, "arguments": arguments })
}
