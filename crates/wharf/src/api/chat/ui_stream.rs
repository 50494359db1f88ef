//! `POST /api/v1/chat/ui`: the UI message stream of the AI SDK, version 1, which `useChat` reads.

use super::{
    client_message::{ClientMessage, read_data_url},
    id_headers,
};
use crate::http_server::RequestBody;
use crate::{
    agent_activity::describe_activity,
    agent_runs::{CallDecision, ConversationName, NewRun},
    api::{
        ApiState, body,
        problem::Problem,
        projection::{self, Projection, write_data},
        query::Query,
        rest,
    },
};
use http::{HeaderValue, Request, Response};
use serde_json::{Value, json};
use std::{collections::HashSet, sync::Arc};
use wharf_agent::{
    AgentEvent, RunReport, RunStatus, ToolCallEvent, ToolStatus, message::Content, model::ModelChanges,
};
use wharf_mcp::serve::http::Body;

/// Maximum length of an id, in characters.
const MAX_ID_CHARS: usize = 256;

pub(in crate::api) async fn respond(
    shared: &Arc<ApiState>,
    request: Request<RequestBody>,
) -> Result<Response<Body>, Problem> {
    Query::read(request.uri().query(), &[])?;
    shared.require_database()?;
    let principal = rest::principal(&request);
    let chat_body = body::read_chat_object(request).await?;
    let raw = &chat_body.raw;
    let name = body::read_text(raw, "id", MAX_ID_CHARS)?;
    let body: Value = raw.decode_or_default();
    // Text that was sent cannot be taken back in this protocol.
    let model_changes = ModelChanges { keeps_deltas: true, ..ModelChanges::default() };
    let new_run = NewRun { model_changes, ..NewRun::default() };
    let mut writer = UiStreamWriter::default();
    let mut begun = String::new();
    let decisions = read_decisions(&body["messages"]);
    let events = match (name, decisions.is_empty()) {
        (name, true) => {
            let message = ClientMessage::read(&body["messages"], read_parts)?.message;
            let name = name.map_or(ConversationName::New, ConversationName::OfClient);
            shared.agent_runs.start_kept(&principal, name, NewRun { message, ..new_run }).await?
        }
        (None, false) => return Err(body::malformed("`id` is missing")),
        (Some(name), false) => {
            let continued = shared.agent_runs.continue_named(&principal, &name, &decisions, new_run).await?;
            // The client has the message and its calls already.
            writer.calls.extend(continued.call_ids);
            writer.begin(&continued.events.conversation_id, &continued.events.run_id, &mut begun);
            continued.events
        }
    };
    let ids = id_headers(&events);
    let mut response = projection::stream(events, writer, begun);
    response.headers_mut().extend(ids);
    response.headers_mut().insert("x-vercel-ai-ui-message-stream", HeaderValue::from_static("v1"));
    Ok(response)
}

/// Reads the decisions in the last message, if it is the assistant's.
fn read_decisions(messages: &Value) -> Vec<CallDecision> {
    let last = messages.as_array().and_then(|it| it.last()).filter(|it| it["role"] == "assistant");
    let parts = last.and_then(|it| it["parts"].as_array()).into_iter().flatten();
    let decision = |part: &Value| {
        let approval = part.get("approval").filter(|_| part["state"] == "approval-responded")?;
        Some(CallDecision {
            approval_id: approval["id"].as_str()?.to_owned(),
            digest: None,
            is_allowed: approval["approved"].as_bool()?,
            is_for_tool: false,
            reason: approval["reason"].as_str().map(str::to_owned),
        })
    };
    parts.filter_map(decision).collect()
}

/// Reads the parts of a message: texts and images. Other parts are the client's own.
fn read_parts(message: &Value) -> Result<Vec<Content>, String> {
    let parts = message["parts"].as_array().ok_or("`parts` has to be a list")?;
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => Some(Ok(Content::Text(part["text"].as_str().unwrap_or_default().to_owned()))),
        Some("file") => Some(read_data_url(part["url"].as_str().unwrap_or_default()).map_err(str::to_owned)),
        _ => None,
    };
    parts.iter().filter_map(part).collect()
}

/// Part of a message that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenPart {
    Text,
    Reasoning,
}

impl OpenPart {
    fn name(self) -> &'static str {
        match self {
            OpenPart::Text => "text",
            OpenPart::Reasoning => "reasoning",
        }
    }
}

/// Writes the events of a run as chunks of a UI message.
#[derive(Debug, Default)]
struct UiStreamWriter {
    conversation_id: String,
    run_id: String,
    open: Option<OpenPart>,
    /// Number of the latest part, which is its id.
    part: u64,
    is_step_open: bool,
    /// Whether the answer of the current step is whole. Only the results of its calls belong to the step.
    is_answer_over: bool,
    has_text: bool,
    calls: HashSet<String>,
}

impl UiStreamWriter {
    fn begin(&mut self, conversation_id: &str, run_id: &str, out: &mut String) {
        conversation_id.clone_into(&mut self.conversation_id);
        run_id.clone_into(&mut self.run_id);
        let metadata = json!({ "conversation_id": conversation_id, "run_id": run_id });
        write_data(&json!({ "type": "start", "messageId": run_id, "messageMetadata": metadata }), out);
    }

    /// Begins a step, if a new answer begins.
    fn begin_answer(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_answer_over) {
            self.end_step(out);
        }
        if !std::mem::replace(&mut self.is_step_open, true) {
            write_data(&json!({ "type": "start-step" }), out);
        }
    }

    fn end_step(&mut self, out: &mut String) {
        self.end_part(out);
        if std::mem::take(&mut self.is_step_open) {
            write_data(&json!({ "type": "finish-step" }), out);
        }
    }

    fn write_delta(&mut self, part: OpenPart, delta: &str, out: &mut String) {
        self.begin_answer(out);
        let name = part.name();
        if self.open != Some(part) {
            self.end_part(out);
            self.open = Some(part);
            self.part += 1;
            write_data(&json!({ "type": format!("{name}-start"), "id": self.part.to_string() }), out);
        }
        self.has_text |= part == OpenPart::Text;
        let id = self.part.to_string();
        write_data(&json!({ "type": format!("{name}-delta"), "id": id, "delta": delta }), out);
    }

    fn end_part(&mut self, out: &mut String) {
        if let Some(part) = self.open.take() {
            let kind = format!("{}-end", part.name());
            write_data(&json!({ "type": kind, "id": self.part.to_string() }), out);
        }
    }

    fn write_call(&mut self, call: &ToolCallEvent, out: &mut String) {
        let id = &call.call_id;
        if self.calls.insert(id.clone()) {
            let chunk = json!({ "type": "tool-input-available", "toolCallId": id, "toolName": call.tool_name,
                "input": call.arguments, "dynamic": true });
            write_data(&chunk, out);
        }
        let result = call.result_text();
        let chunk = match call.status {
            ToolStatus::InProgress | ToolStatus::AwaitingApproval => return,
            ToolStatus::Completed => json!({ "type": "tool-output-available", "toolCallId": id,
                "output": result, "dynamic": true }),
            ToolStatus::Failed | ToolStatus::Unknown => {
                json!({ "type": "tool-output-error", "toolCallId": id,
                "errorText": result, "dynamic": true })
            }
            ToolStatus::Denied => json!({ "type": "tool-output-denied", "toolCallId": id }),
        };
        write_data(&chunk, out);
    }

    /// Writes what a person needs to know for a decision, as a part of the message.
    fn write_details(&mut self, kind: &str, id: &str, details: &Value, out: &mut String) {
        write_data(&json!({ "type": kind, "id": id, "data": details }), out);
    }

    fn finish(&mut self, report: &RunReport, out: &mut String) {
        if let (Some(structured), false) = (&report.structured, self.has_text) {
            self.write_delta(OpenPart::Text, &structured.to_string(), out);
        }
        self.end_step(out);
        let reason = match report.status() {
            RunStatus::Finished => "stop",
            RunStatus::Limit => "length",
            RunStatus::Refused => "content-filter",
            RunStatus::Cancelled => {
                write_data(&json!({ "type": "abort" }), out);
                "other"
            }
            RunStatus::Failed | RunStatus::Timeout | RunStatus::Interrupted => {
                let error = report.error.as_ref().map(ToString::to_string).unwrap_or_default();
                write_data(&json!({ "type": "error", "errorText": error }), out);
                "error"
            }
        };
        let done = json!({ "type": "finish", "finishReason": reason, "messageMetadata": report.to_json() });
        write_data(&done, out);
        out.push_str("data: [DONE]\n\n");
    }
}

impl Projection for UiStreamWriter {
    fn write(&mut self, event: &AgentEvent, out: &mut String) {
        match event {
            AgentEvent::Started { conversation_id, run_id } => self.begin(conversation_id, run_id, out),
            AgentEvent::Text { delta, .. } => self.write_delta(OpenPart::Text, delta, out),
            AgentEvent::Thinking(delta) => self.write_delta(OpenPart::Reasoning, delta, out),
            // It follows every whole answer.
            AgentEvent::Usage(_) => {
                self.begin_answer(out);
                self.end_part(out);
                self.is_answer_over = true;
            }
            AgentEvent::ToolCall(call) => self.write_call(call, out),
            AgentEvent::ApprovalRequest(question) => {
                let chunk = json!({ "type": "tool-approval-request", "approvalId": question.approval_id,
                    "toolCallId": question.call_id });
                write_data(&chunk, out);
                self.write_details("data-approval", &question.approval_id, &question.to_json(), out);
            }
            AgentEvent::InputRequest(question) => {
                self.write_details("data-input", &question.input_id, &question.to_json(), out);
            }
            AgentEvent::Context(_) | AgentEvent::Retry { .. } | AgentEvent::Error { .. } => {
                // An error of a call is in the result of the call.
                let Some(message) = describe_activity(event) else { return };
                let chunk =
                    json!({ "type": "data-context", "data": { "message": message }, "transient": true });
                write_data(&chunk, out);
            }
            AgentEvent::Reset => {}
            AgentEvent::Done(report) => self.finish(report, out),
        }
    }

    fn pause(&mut self, out: &mut String) {
        self.end_step(out);
        let metadata =
            json!({ "conversation_id": self.conversation_id, "run_id": self.run_id, "status": "waiting" });
        let done = json!({ "type": "finish", "finishReason": "tool-calls", "messageMetadata": metadata });
        write_data(&done, out);
        out.push_str("data: [DONE]\n\n");
    }

    fn abort(&mut self, out: &mut String) {
        self.end_step(out);
        write_data(&json!({ "type": "error", "errorText": "wharf stopped during the run" }), out);
        out.push_str("data: [DONE]\n\n");
    }
}
