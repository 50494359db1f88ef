//! Replaces secrets in results, events and reports of a run.

use crate::{consent::InputKind, events::AgentEvent, message::Content, result_text::CallOutcome};
use serde_json::Value;
use wharf_runtime::Redactor;

pub(crate) fn redact_outcome(mut outcome: CallOutcome, redactor: &Redactor) -> CallOutcome {
    redact_content(&mut outcome.content, redactor);
    outcome
}

fn redact_content(content: &mut [Content], redactor: &Redactor) {
    for content in content {
        if let Content::Text(text) = content {
            *text = redactor.redact(text);
        }
    }
}

pub(crate) fn redact_event(mut event: AgentEvent, redactor: &Redactor) -> AgentEvent {
    match &mut event {
        AgentEvent::ToolCall(call) => {
            call.arguments = redact_json(std::mem::take(&mut call.arguments), redactor);
            // A model can write a secret in the place of a name, and the words about it repeat the name.
            call.tool_name = redactor.redact(&call.tool_name);
            call.tool_id = redactor.redact(&call.tool_id);
            call.result.iter_mut().for_each(|it| redact_content(&mut it.content, redactor));
        }
        AgentEvent::ApprovalRequest(question) => {
            question.arguments = redact_json(std::mem::take(&mut question.arguments), redactor);
        }
        AgentEvent::InputRequest(question) => {
            question.message = redactor.redact(&question.message);
            match &mut question.kind {
                InputKind::Form(json) | InputKind::Sampling(json) => {
                    *json = redact_json(std::mem::take(json), redactor);
                }
                InputKind::Link { url, .. } => *url = redactor.redact(url),
            }
        }
        AgentEvent::Error { message, hint, .. } => {
            *message = redactor.redact(message);
            *hint = hint.take().map(|it| redactor.redact(&it));
        }
        AgentEvent::Text { delta, .. } => *delta = redactor.redact(delta),
        AgentEvent::Thinking(text) => *text = redactor.redact(text),
        _ => {}
    }
    event
}

pub(crate) fn redact_json(value: Value, redactor: &Redactor) -> Value {
    let text = value.to_string();
    let redacted = redactor.redact(&text);
    if redacted == text {
        return value;
    }
    serde_json::from_str(&redacted).unwrap_or_else(|_| Value::from("***"))
}
