//! The body of `POST /v1/chat/completions`.

use super::error::OpenAiError;
use crate::{
    agent_runs::{AskedPeople, NewRun},
    api::chat::{check_format, read_data_url},
    message_context::check_images,
};
use http::StatusCode;
use serde_json::{Map, Value, json};
use wharf_agent::{
    message::{AnswerMessage, AnswerPart, Content, Message},
    model::ModelChanges,
};

/// Maximum size of the user's last message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Maximum number of messages.
const MAX_MESSAGES: usize = 10_000;
/// Maximum number and size of stop sequences.
const MAX_STOPS: usize = 4;
const MAX_STOP_BYTES: usize = 1024;

/// Parameters that do not change the answer.
const IGNORED: [&str; 6] =
    ["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"];
/// Parameters that are accepted only with the value that changes nothing.
const NEUTRAL: [(&str, &str); 9] = [
    ("n", "1"),
    ("logprobs", "false"),
    ("frequency_penalty", "0"),
    ("presence_penalty", "0"),
    ("logit_bias", "{}"),
    ("tools", "[]"),
    ("functions", "[]"),
    ("tool_choice", "\"none\""),
    ("parallel_tool_calls", "true"),
];

/// Messages and parameters of a chat completion.
#[derive(Debug, Default)]
pub(super) struct CompletionRequest {
    /// Name of the model, as the client wrote it.
    pub(super) model: String,
    pub(super) wants_stream: bool,
    pub(super) wants_usage: bool,
    pub(super) changes: ModelChanges,
    instructions: Vec<String>,
    history: Vec<Message>,
    message: Vec<Content>,
    response_format: Option<Value>,
}

impl CompletionRequest {
    /// Reads a body. The error names the parameter.
    pub(super) fn read(body: &Value) -> Result<CompletionRequest, OpenAiError> {
        let mut request = CompletionRequest::default();
        let empty = Map::new();
        for (key, value) in body.as_object().unwrap_or(&empty).iter().filter(|(_, value)| !value.is_null()) {
            request.read_parameter(key, value)?;
        }
        if request.model.is_empty() {
            return Err(OpenAiError::parameter("model", "`model` is missing"));
        }
        if request.message.is_empty() {
            return Err(OpenAiError::parameter("messages", "the last message has to be the user's"));
        }
        Ok(request)
    }

    /// Returns the run that this request starts.
    pub(super) fn into_new_run(self) -> NewRun {
        NewRun {
            message: self.message,
            history: self.history,
            instructions: Some(self.instructions.join("\n\n")).filter(|it| !it.is_empty()),
            response_format: self.response_format,
            // Text that was sent cannot be taken back in this protocol.
            model_changes: ModelChanges { keeps_deltas: true, ..self.changes },
            people: AskedPeople::Others,
            ..NewRun::default()
        }
    }

    fn read_parameter(&mut self, key: &str, value: &Value) -> Result<(), OpenAiError> {
        let wrong = |what: &str| OpenAiError::parameter(key, format!("`{key}` has to be {what}"));
        match key {
            "model" => self.model = value.as_str().ok_or_else(|| wrong("a string"))?.to_owned(),
            "messages" => self.read_messages(value)?,
            "stream" => self.wants_stream = value.as_bool().ok_or_else(|| wrong("true or false"))?,
            "stream_options" => self.wants_usage = value["include_usage"].as_bool().unwrap_or(false),
            "temperature" => {
                let number = value.as_f64().filter(|it| (0.0..=2.0).contains(it));
                self.changes.temperature = Some(number.ok_or_else(|| wrong("a number from 0 to 2"))?);
            }
            "top_p" => {
                let number = value.as_f64().filter(|it| (0.0..=1.0).contains(it));
                self.changes.top_p = Some(number.ok_or_else(|| wrong("a number from 0 to 1"))?);
            }
            "max_tokens" | "max_completion_tokens" => {
                let number = value.as_u64().filter(|it| *it > 0);
                self.changes.max_tokens = Some(number.ok_or_else(|| wrong("a positive integer"))?);
            }
            "seed" => self.changes.seed = Some(value.as_i64().ok_or_else(|| wrong("an integer"))?),
            "stop" => self.changes.stop = read_stops(value).ok_or_else(|| wrong("up to 4 short strings"))?,
            "response_format" => self.response_format = read_format(value)?,
            key if IGNORED.contains(&key) => {}
            key => check_neutral(key, value)?,
        }
        Ok(())
    }

    fn read_messages(&mut self, messages: &Value) -> Result<(), OpenAiError> {
        let Some(messages) = messages.as_array().filter(|it| it.len() <= MAX_MESSAGES) else {
            let what = format!("`messages` has to be a list of at most {MAX_MESSAGES} messages");
            return Err(OpenAiError::parameter("messages", what));
        };
        for (at, message) in messages.iter().enumerate() {
            let content = read_content(&message["content"], at)?;
            check_images(&content).map_err(|error| {
                OpenAiError::parameter(&format!("messages[{at}].content"), error.message())
                    .with_status(error.status())
            })?;
            match message["role"].as_str().unwrap_or_default() {
                "system" | "developer" => self.instructions.push(join_text(&content)),
                "user" => self.history.push(Message::User(content)),
                "assistant" => self.history.extend(read_answer(message, &content, at)?),
                role => {
                    let what = format!("the role '{role}' is not supported; wharf calls the tools itself");
                    return Err(OpenAiError::parameter(&format!("messages[{at}].role"), what));
                }
            }
        }
        let Some(Message::User(content)) = self.history.pop() else { return Ok(()) };
        let size: usize = content.iter().map(text_bytes).sum();
        if size > MAX_MESSAGE_BYTES {
            let error = OpenAiError::parameter("messages", "the last message is longer than 64 KiB");
            return Err(error.with_status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        self.message = content;
        Ok(())
    }
}

fn read_answer(message: &Value, content: &[Content], at: usize) -> Result<Option<Message>, OpenAiError> {
    if message["tool_calls"].as_array().is_some_and(|it| !it.is_empty()) {
        let what = "`tool_calls` of a client are not supported; wharf calls the tools itself";
        return Err(OpenAiError::parameter(&format!("messages[{at}].tool_calls"), what));
    }
    let text = join_text(content);
    let parts = vec![AnswerPart::Text { text, native: None }];
    // The client may have changed the text, so no model gets native data back with it.
    Ok((!content.is_empty()).then(|| Message::Answer(AnswerMessage { parts, model: String::new() })))
}

/// Reads the content of a message: a string, or a list of texts and images.
fn read_content(content: &Value, at: usize) -> Result<Vec<Content>, OpenAiError> {
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => Ok(Content::Text(part["text"].as_str().unwrap_or_default().to_owned())),
        Some("image_url") => read_data_url(part["image_url"]["url"].as_str().unwrap_or_default()),
        Some("refusal") => Ok(Content::Text(part["refusal"].as_str().unwrap_or_default().to_owned())),
        _ => Err("a part has to be a `text` or an `image_url`"),
    };
    let wrong = |what: &str| OpenAiError::parameter(&format!("messages[{at}].content"), what);
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Content::Text(text.clone())]),
        Value::Array(parts) => parts.iter().map(part).collect::<Result<_, _>>().map_err(wrong),
        _ => Err(wrong("`content` has to be a string or a list of parts")),
    }
}

fn read_stops(value: &Value) -> Option<Vec<String>> {
    let stops: Vec<String> = match value {
        Value::String(stop) => vec![stop.clone()],
        Value::Array(stops) => {
            stops.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let is_short = |it: &String| !it.is_empty() && it.len() <= MAX_STOP_BYTES;
    (stops.len() <= MAX_STOPS && stops.iter().all(is_short)).then_some(stops)
}

/// Returns the JSON Schema of the answer.
fn read_format(format: &Value) -> Result<Option<Value>, OpenAiError> {
    let wrong = |what: &str| Err(OpenAiError::parameter("response_format", what));
    match format["type"].as_str() {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({ "type": "object" }))),
        Some("json_schema") => {
            let schema = &format["json_schema"]["schema"];
            match check_format(schema) {
                Ok(()) => Ok(Some(schema.clone())),
                Err(why) => wrong(&why),
            }
        }
        _ => wrong("`response_format.type` has to be `text`, `json_object` or `json_schema`"),
    }
}

fn check_neutral(key: &str, value: &Value) -> Result<(), OpenAiError> {
    let Some((_, neutral)) = NEUTRAL.iter().find(|(known, _)| *known == key) else {
        return Err(OpenAiError::parameter(key, format!("unknown parameter `{key}`")));
    };
    let neutral: Value = serde_json::from_str(neutral).unwrap_or_default();
    let is_neutral = *value == neutral || value.is_number() && value.as_f64() == neutral.as_f64();
    // Which tools are called is the agent's matter, so a client that leaves it to the model changes nothing.
    if is_neutral || key == "tool_choice" && *value == "auto" || key == "parallel_tool_calls" {
        return Ok(());
    }
    let why = match key {
        "tools" | "functions" | "tool_choice" => "wharf calls the tools of its servers itself",
        _ => "it is not supported",
    };
    Err(OpenAiError::parameter(key, format!("`{key}` cannot be used: {why}")))
}

fn join_text(content: &[Content]) -> String {
    let text = |it: &Content| match it {
        Content::Text(text) => Some(text.clone()),
        Content::Image { .. } => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn text_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image { .. } => 0,
    }
}
