//! Events of a run, for the command line and the HTTP API, and their JSON form.

use crate::{
    consent::InputQuestion,
    message::{Content, ToolResult},
    run_ending::{RunReport, RunStatus, RunUsage},
};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use wharf_runtime::{result_handle::PassedResult, time_format::rfc3339};

/// Event of a run. [`AgentEvent::Done`] is the last one.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// The run began.
    Started {
        /// Id of the conversation.
        conversation_id: String,
        /// Id of the run.
        run_id: String,
    },
    /// Reasoning of the model.
    Thinking(String),
    /// Text of the model.
    Text {
        /// Text to append.
        delta: String,
        /// Number of characters of the answer before it.
        offset: usize,
    },
    /// The text of the current answer is void; it begins again.
    Reset,
    /// The model is asked again.
    Retry {
        /// Error of the last try.
        message: String,
        /// `error_type` of the error.
        error_type: &'static str,
        /// Advice, if there is any.
        hint: Option<String>,
        /// Time until the next try.
        delay: Duration,
    },
    /// A call changed its state.
    ToolCall(ToolCallEvent),
    /// A person has to decide about a call.
    ApprovalRequest(ApprovalQuestion),
    /// A server asks a person something during a call.
    InputRequest(InputQuestion),
    /// The model is shown less than everything.
    Context(String),
    /// Tokens used so far.
    Usage(RunUsage),
    /// A problem that does not end the run.
    Error {
        /// `error_type` of the error.
        error_type: &'static str,
        /// Description.
        message: String,
        /// Advice, if there is any.
        hint: Option<String>,
        /// Call that it concerns.
        call_id: Option<String>,
    },
    /// The run ended.
    Done(Box<RunReport>),
}

/// State of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallEvent {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool, as the model wrote it.
    pub tool_name: String,
    /// Source of the tool, if it exists.
    pub source: Option<String>,
    /// `source:tool`, or the name if there is no such tool.
    pub tool_id: String,
    /// Arguments, redacted.
    pub arguments: Value,
    /// State.
    pub status: ToolStatus,
    /// The rule, hint, default or person that decided about the call. Empty if nothing had to be decided.
    pub why: String,
    /// Result in the words for the model, redacted, if the call has ended.
    pub result: Option<ToolResult>,
    /// Duration, if the call was made.
    pub duration: Option<Duration>,
}

/// State of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ToolStatus {
    /// The call was sent.
    InProgress,
    /// The tool returned a result.
    Completed,
    /// The tool returned an error, or the call was not executed.
    Failed,
    /// The call was not allowed.
    Denied,
    /// The call may have been executed.
    Unknown,
    /// A person has to decide.
    AwaitingApproval,
}

/// Question to a person about one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    /// Id of the question.
    pub approval_id: String,
    /// Id of the call.
    pub call_id: String,
    /// `source:tool`.
    pub tool_id: String,
    /// Name of the tool, as the model wrote it.
    pub tool_name: String,
    /// Arguments.
    pub arguments: Value,
    /// Stored results that the call passes to the tool.
    pub passed: Vec<PassedResult>,
    /// Reason for the question.
    pub why: String,
    /// Hints of the server about the tool.
    pub hints: Value,
    /// Hash of the tool's definition.
    pub definition_hash: String,
    /// Digest of the call.
    pub digest: String,
    /// Whether an equal call may have been executed, so that only a decision about this call counts.
    pub is_repetition: bool,
    /// Time after which the call is denied, if it waits.
    pub expires_at: Option<SystemTime>,
}

impl ToolStatus {
    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolStatus::InProgress => "in_progress",
            ToolStatus::Completed => "completed",
            ToolStatus::Failed => "failed",
            ToolStatus::Denied => "denied",
            ToolStatus::Unknown => "unknown",
            ToolStatus::AwaitingApproval => "awaiting_approval",
        }
    }
}

impl AgentEvent {
    /// Returns the name of the event and its data.
    pub fn to_json(&self) -> (&'static str, Value) {
        match self {
            AgentEvent::Started { conversation_id, run_id } => {
                ("started", json!({ "conversation_id": conversation_id, "run_id": run_id }))
            }
            AgentEvent::Thinking(content) => ("thinking", json!({ "content": content })),
            AgentEvent::Text { delta, offset } => {
                ("response_delta", json!({ "delta": delta, "offset": offset }))
            }
            AgentEvent::Reset => ("reset", json!({})),
            AgentEvent::Retry { message, error_type, hint, delay } => {
                let delay = delay.as_secs_f64();
                let data = json!({ "error_type": error_type, "message": message, "recoverable": true,
                    "hint": hint, "retry_in": delay });
                ("error", data)
            }
            AgentEvent::ToolCall(call) => ("tool_call", call.to_json()),
            AgentEvent::ApprovalRequest(question) => ("approval_request", question.to_json()),
            AgentEvent::InputRequest(question) => ("input_request", question.to_json()),
            AgentEvent::Context(what) => ("context", json!({ "message": what })),
            AgentEvent::Usage(usage) => ("usage", usage.to_json()),
            AgentEvent::Error { error_type, message, hint, call_id } => {
                let data = json!({ "error_type": error_type, "message": message, "recoverable": true,
                    "hint": hint, "call_id": call_id });
                ("error", data)
            }
            AgentEvent::Done(report) => ("done", report.to_json()),
        }
    }
}

impl ToolCallEvent {
    /// Returns the words of the result. Empty if the call has not ended.
    pub fn result_text(&self) -> String {
        self.result.as_ref().map(ToolResult::text).unwrap_or_default()
    }

    fn to_json(&self) -> Value {
        let mut data = json!({ "tool_name": self.tool_name, "arguments": self.arguments,
            "status": self.status.as_str(), "call_id": self.call_id, "source": self.source });
        if !self.why.is_empty() {
            data["why"] = self.why.as_str().into();
        }
        if let Some(result) = &self.result {
            data["result"] = result_json(result);
        }
        if let Some(duration) = self.duration {
            data["execution_duration"] = duration.as_secs_f64().into();
        }
        data
    }
}

/// Returns a result with the names of the REST API. An image is a line that describes it.
fn result_json(result: &ToolResult) -> Value {
    let block = |content: &Content| json!({ "type": "text", "text": content.as_text() });
    let content: Vec<Value> = result.content.iter().map(block).collect();
    json!({ "content": content, "is_error": result.is_error })
}

impl ApprovalQuestion {
    /// Returns the data of the event.
    pub fn to_json(&self) -> Value {
        let mut data = json!({ "approval_id": self.approval_id, "call_id": self.call_id, "tool_id": self.tool_id,
            "tool_name": self.tool_name, "arguments": self.arguments, "digest": self.digest, "why": self.why,
            "hints": self.hints, "definition_hash": self.definition_hash,
            "expires_at": self.expires_at.map(rfc3339) });
        if !self.passed.is_empty() {
            data["passed"] = self.passed.iter().map(PassedResult::to_json).collect();
        }
        data
    }
}

impl RunUsage {
    fn to_json(self) -> Value {
        let RunUsage { total, is_estimated } = self;
        let mut usage = json!({ "input": total.input, "cached_input": total.cached_input,
            "output": total.output, "reasoning": total.reasoning });
        if is_estimated {
            usage["estimated"] = true.into();
        }
        usage
    }
}

impl RunReport {
    /// Returns the data of the event `done`.
    pub fn to_json(&self) -> Value {
        let error = self.error.as_ref().map(|error| {
            json!({ "error_type": error.error_type(), "message": error.to_string(), "hint": error.hint() })
        });
        json!({
            "final_output": self.final_output,
            "tools_called": self.tools_called,
            "success": self.status() == RunStatus::Finished,
            "status": self.status().as_str(),
            "conversation_id": self.conversation_id,
            "run_id": self.run_id,
            "request_id": null,
            "turns": self.turns,
            "usage": self.usage.to_json(),
            "cost": self.cost,
            "structured": self.structured,
            "error": error,
        })
    }
}
