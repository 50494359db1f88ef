//! Ollama's own chat, in lines of JSON. Its OpenAI-compatible API ignores the context size.

mod request;

pub(super) use request::write;

use super::{CallFragment, Delta, FinishReason, Usage, decode, push_text, reported_error};
use crate::model::trouble::Trouble;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

#[derive(Debug, Default)]
pub(super) struct OllamaReader {
    pub(super) is_over: bool,
}

#[derive(Deserialize)]
struct OllamaLine<'a> {
    error: Option<Value>,
    #[serde(borrow)]
    message: Option<OllamaMessage<'a>>,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
}

#[derive(Deserialize)]
struct OllamaMessage<'a> {
    content: Option<String>,
    thinking: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<OllamaCall<'a>>>,
}

#[derive(Deserialize)]
struct OllamaCall<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Option<OllamaFunction<'a>>,
}

#[derive(Deserialize)]
struct OllamaFunction<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl OllamaReader {
    pub(super) fn read(&mut self, event: &str) -> Result<Vec<Delta>, Trouble> {
        let line: OllamaLine<'_> = decode(event)?;
        if let Some(error) = &line.error {
            return Err(reported_error(error));
        }
        let mut out = Vec::new();
        if let Some(message) = line.message {
            push_text(&mut out, message.thinking, Delta::Reasoning);
            push_text(&mut out, message.content, Delta::Text);
            out.extend(message.tool_calls.into_iter().flatten().map(read_call));
        }
        if line.prompt_eval_count.is_some() || line.eval_count.is_some() {
            let (input, output) = (line.prompt_eval_count.unwrap_or(0), line.eval_count.unwrap_or(0));
            out.push(Delta::Usage(Usage { input, output, ..Usage::default() }));
        }
        if line.done == Some(true) {
            self.is_over = true;
            let is_cut = line.done_reason.as_deref() == Some("length");
            out.push(Delta::Finish(if is_cut { FinishReason::Length } else { FinishReason::Stop }));
        }
        Ok(out)
    }
}

/// Reads a call, which Ollama sends whole.
fn read_call(call: OllamaCall<'_>) -> Delta {
    let (name, arguments) = call.function.map_or((None, None), |it| (it.name, it.arguments));
    Delta::Call(CallFragment {
        is_whole: true,
        id: call.id,
        name,
        arguments: arguments.map(|it| it.get().to_owned()).unwrap_or_default(),
        ..Default::default()
    })
}
