//! Turns the events of a run into chunks of a chat completion.

use super::error::run_error;
use crate::{
    agent_activity::describe_activity,
    api::{
        chat::status_of,
        projection::{Projection, write_data},
    },
};
use http::StatusCode;
use serde_json::{Value, json};
use wharf_agent::{AgentEvent, RunReport, RunStatus, RunUsage};

/// Identifies a completion in each of its chunks.
#[derive(Clone, Debug)]
pub(super) struct CompletionHead {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
}

/// Chunks of one completion.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    pub(super) head: CompletionHead,
    pub(super) wants_usage: bool,
    /// Whether the client is told what tools do.
    pub(super) shows_activity: bool,
    has_begun: bool,
    has_text: bool,
}

impl ChunkWriter {
    pub(super) fn new(head: CompletionHead, wants_usage: bool, shows_activity: bool) -> ChunkWriter {
        ChunkWriter { head, wants_usage, shows_activity, has_begun: false, has_text: false }
    }

    fn chunk(&mut self, mut delta: Value, finish: Option<&str>, out: &mut String) {
        if !std::mem::replace(&mut self.has_begun, true) {
            delta["role"] = "assistant".into();
        }
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        write_data(&self.head.object("chat.completion.chunk", json!([choice])), out);
    }

    fn write_text(&mut self, text: &str, begins: bool, out: &mut String) {
        // The texts of several answers are one text for the client.
        let space = if begins && self.has_text { "\n\n" } else { "" };
        self.has_text = true;
        self.chunk(json!({ "content": format!("{space}{text}") }), None, out);
    }

    fn finish(&mut self, report: &RunReport, out: &mut String) {
        if let (Some(structured), false) = (&report.structured, self.has_text) {
            self.write_text(&structured.to_string(), true, out);
        }
        let Some(reason) = finish_reason(report) else {
            return write_data(&json!({ "error": run_error(report, status_of(report)) }), out);
        };
        self.chunk(json!({}), Some(reason), out);
        if self.wants_usage {
            let mut last = self.head.object("chat.completion.chunk", json!([]));
            last["usage"] = usage(report.usage);
            write_data(&last, out);
        }
        out.push_str("data: [DONE]\n\n");
    }
}

impl Projection for ChunkWriter {
    fn write(&mut self, event: &AgentEvent, out: &mut String) {
        match event {
            AgentEvent::Text { delta, offset } => self.write_text(delta, *offset == 0, out),
            AgentEvent::Thinking(text) => self.chunk(json!({ "reasoning_content": text }), None, out),
            AgentEvent::Done(report) => self.finish(report, out),
            event if self.shows_activity => {
                if let Some(line) = describe_activity(event) {
                    self.chunk(json!({ "reasoning_content": format!("{line}\n") }), None, out);
                }
            }
            _ => {}
        }
    }

    /// Never happens: nothing is kept, so a run cannot wait.
    fn pause(&mut self, out: &mut String) {
        self.abort(out);
    }

    fn abort(&mut self, out: &mut String) {
        let error = json!({ "message": "wharf stopped during the run", "type": "server_error",
            "param": null, "code": "internal" });
        write_data(&json!({ "error": error }), out);
    }
}

impl CompletionHead {
    fn object(&self, kind: &str, choices: Value) -> Value {
        json!({ "id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices })
    }

    /// Returns the document of a whole completion, or the status and error of a run that did not finish.
    pub(super) fn completion(
        &self,
        report: &RunReport,
        reasoning: &str,
    ) -> Result<Value, (StatusCode, Value)> {
        let Some(reason) = finish_reason(report) else {
            let status = status_of(report);
            return Err((status, run_error(report, status)));
        };
        let mut message = json!({ "role": "assistant", "content": report.final_output, "refusal": null });
        if !reasoning.is_empty() {
            message["reasoning_content"] = reasoning.into();
        }
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": reason });
        let mut completion = self.object("chat.completion", json!([choice]));
        completion["usage"] = usage(report.usage);
        Ok(completion)
    }
}

/// Returns why an answer ended, or nothing if there is no answer.
pub(super) fn finish_reason(report: &RunReport) -> Option<&'static str> {
    match report.status() {
        RunStatus::Finished => Some("stop"),
        RunStatus::Limit => Some("length"),
        RunStatus::Refused => Some("content_filter"),
        RunStatus::Failed | RunStatus::Timeout | RunStatus::Cancelled | RunStatus::Interrupted => None,
    }
}

fn usage(usage: RunUsage) -> Value {
    let total = usage.total;
    json!({
        "prompt_tokens": total.input,
        "completion_tokens": total.output,
        "total_tokens": usage.tokens(),
        "prompt_tokens_details": { "cached_tokens": total.cached_input },
        "completion_tokens_details": { "reasoning_tokens": total.reasoning },
    })
}
