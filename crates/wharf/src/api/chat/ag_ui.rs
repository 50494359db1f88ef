//! `POST /api/v1/chat/ag-ui`: the protocol AG-UI 1.0, which `@ag-ui/client` reads.

use super::{client_message::ClientMessage, id_headers};
use crate::http_server::RequestBody;
use crate::{
    agent_runs::{CallDecision, ConversationName, NewRun},
    api::{
        ApiState, body,
        problem::Problem,
        projection::{self, Projection, write_data},
        query::Query,
        rest,
    },
};
use http::{Request, Response};
use serde_json::{Value, json};
use std::{collections::HashSet, sync::Arc};
use wharf_agent::{
    AgentEvent, ApprovalQuestion, RunReport, RunStatus, ToolCallEvent, ToolStatus, message::Content,
    model::ModelChanges,
};
use wharf_mcp::{serve::http::Body, time_format::rfc3339};

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
    let id = |key: &str| {
        let missing = || body::malformed(format!("`{key}` is missing"));
        body::read_text(raw, key, MAX_ID_CHARS)?.ok_or_else(missing)
    };
    let (thread_id, run_id) = (id("threadId")?, id("runId")?);
    let mut writer = AgUiWriter::new(thread_id.clone(), run_id);
    let body: Value = raw.decode_or_default();
    if body["tools"].as_array().is_some_and(|it| !it.is_empty()) {
        return Err(body::malformed("`tools` of a client are not supported; wharf calls the tools itself"));
    }
    // Text that was sent cannot be taken back in this protocol.
    let model_changes = ModelChanges { keeps_deltas: true, ..ModelChanges::default() };
    let new_run = NewRun { model_changes, ..NewRun::default() };
    let mut begun = String::new();
    let decisions = read_resume(&body["resume"])?;
    let events = match decisions.is_empty() {
        true => {
            let new_run = read_message(&body, new_run)?;
            shared.agent_runs.start_kept(&principal, ConversationName::OfClient(thread_id), new_run).await?
        }
        false => {
            let runs = &shared.agent_runs;
            let continued = runs.continue_named(&principal, &thread_id, &decisions, new_run).await?;
            // The client has the calls already.
            writer.calls.extend(continued.call_ids);
            writer.begin(&mut begun);
            continued.events
        }
    };
    let ids = id_headers(&events);
    let mut response = projection::stream(events, writer, begun);
    response.headers_mut().extend(ids);
    Ok(response)
}

/// Reads the last message of the user, and the client's instructions and context.
fn read_message(body: &Value, new_run: NewRun) -> Result<NewRun, Problem> {
    let ClientMessage { instructions, message } = ClientMessage::read(&body["messages"], read_content)?;
    let context = body["context"].as_array().into_iter().flatten();
    let context = context.map(|it| {
        let text = |key: &str| it[key].as_str().unwrap_or_default();
        format!("{}: {}", text("description"), text("value"))
    });
    let instructions: Vec<String> = instructions.into_iter().chain(context).collect();
    let instructions = Some(instructions.join("\n\n")).filter(|it| !it.is_empty());
    Ok(NewRun { message, instructions, ..new_run })
}

/// Reads the answers to interrupts: `{"approved", "scope", "reason"}`, and no for an abandoned one.
fn read_resume(resume: &Value) -> Result<Vec<CallDecision>, Problem> {
    let decision = |entry: &Value| {
        let payload = &entry["payload"];
        let is_allowed = match entry["status"].as_str()? {
            "resolved" => payload["approved"].as_bool()?,
            "cancelled" => false,
            _ => return None,
        };
        Some(CallDecision {
            approval_id: entry["interruptId"].as_str()?.to_owned(),
            digest: payload["digest"].as_str().map(str::to_owned),
            is_allowed,
            is_for_tool: payload["scope"] == "tool",
            reason: payload["reason"].as_str().map(str::to_owned),
        })
    };
    let decisions: Option<Vec<CallDecision>> =
        resume.as_array().into_iter().flatten().map(decision).collect();
    decisions.ok_or_else(|| {
        body::malformed(
            "an entry of `resume` has to have an `interruptId`, a `status`, and `payload.approved`",
        )
    })
}

/// Reads the content of a message: a string, or a list of texts and images.
fn read_content(message: &Value) -> Result<Vec<Content>, String> {
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => Ok(Content::Text(part["text"].as_str().unwrap_or_default().to_owned())),
        Some("image") if part["source"]["type"] == "data" => {
            let text = |key: &str| part["source"][key].as_str().unwrap_or_default().to_owned();
            Ok(Content::image(text("mimeType"), text("value")))
        }
        _ => Err("a part has to be a text, or an image with its data".to_owned()),
    };
    match &message["content"] {
        Value::String(text) if !text.is_empty() => Ok(vec![Content::Text(text.clone())]),
        Value::Array(parts) if message["role"] == "user" => parts.iter().map(part).collect(),
        _ => Ok(Vec::new()),
    }
}

/// Message that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenMessage {
    Text,
    Reasoning,
}

/// Writes the events of a run as events of AG-UI.
#[derive(Debug)]
struct AgUiWriter {
    thread_id: String,
    run_id: String,
    open: Option<OpenMessage>,
    /// Number of the latest message, which is part of its id.
    message: u64,
    /// Number of the current step.
    step: u64,
    is_step_open: bool,
    /// Whether the answer of the current step is whole. Only the results of its calls belong to the step.
    is_answer_over: bool,
    has_text: bool,
    calls: HashSet<String>,
    /// Questions that end the run.
    interrupts: Vec<Value>,
}

impl AgUiWriter {
    fn new(thread_id: String, run_id: String) -> AgUiWriter {
        AgUiWriter {
            thread_id,
            run_id,
            open: None,
            message: 0,
            step: 0,
            is_step_open: false,
            is_answer_over: false,
            has_text: false,
            calls: HashSet::new(),
            interrupts: Vec::new(),
        }
    }

    fn begin(&mut self, out: &mut String) {
        let started = json!({ "type": "RUN_STARTED", "threadId": self.thread_id, "runId": self.run_id });
        write_data(&started, out);
    }

    fn message_id(&self) -> String {
        format!("{}-{}", self.run_id, self.message)
    }

    fn begin_answer(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_answer_over) {
            self.end_step(out);
        }
        if !std::mem::replace(&mut self.is_step_open, true) {
            self.step += 1;
            let name = format!("answer {}", self.step);
            write_data(&json!({ "type": "STEP_STARTED", "stepName": name }), out);
        }
    }

    fn end_step(&mut self, out: &mut String) {
        self.end_message(out);
        if std::mem::take(&mut self.is_step_open) {
            let name = format!("answer {}", self.step);
            write_data(&json!({ "type": "STEP_FINISHED", "stepName": name }), out);
        }
    }

    fn write_delta(&mut self, kind: OpenMessage, delta: &str, out: &mut String) {
        if delta.is_empty() {
            return;
        }
        self.begin_answer(out);
        if self.open != Some(kind) {
            self.end_message(out);
            self.open = Some(kind);
            self.message += 1;
            let id = self.message_id();
            match kind {
                OpenMessage::Text => {
                    let start = json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" });
                    write_data(&start, out);
                }
                OpenMessage::Reasoning => {
                    write_data(&json!({ "type": "REASONING_START", "messageId": id }), out);
                    let start =
                        json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" });
                    write_data(&start, out);
                }
            }
        }
        let name = match kind {
            OpenMessage::Text => "TEXT_MESSAGE_CONTENT",
            OpenMessage::Reasoning => "REASONING_MESSAGE_CONTENT",
        };
        self.has_text |= kind == OpenMessage::Text;
        write_data(&json!({ "type": name, "messageId": self.message_id(), "delta": delta }), out);
    }

    fn end_message(&mut self, out: &mut String) {
        let names: &[&str] = match self.open.take() {
            None => &[],
            Some(OpenMessage::Text) => &["TEXT_MESSAGE_END"],
            Some(OpenMessage::Reasoning) => &["REASONING_MESSAGE_END", "REASONING_END"],
        };
        for name in names {
            write_data(&json!({ "type": name, "messageId": self.message_id() }), out);
        }
    }

    fn write_call(&mut self, call: &ToolCallEvent, out: &mut String) {
        let id = &call.call_id;
        if self.calls.insert(id.clone()) {
            let start =
                json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": call.tool_name });
            write_data(&start, out);
            let arguments = call.arguments.to_string();
            write_data(&json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments }), out);
            write_data(&json!({ "type": "TOOL_CALL_END", "toolCallId": id }), out);
        }
        if matches!(call.status, ToolStatus::InProgress | ToolStatus::AwaitingApproval) {
            return;
        }
        self.message += 1;
        let result = json!({ "type": "TOOL_CALL_RESULT", "messageId": self.message_id(), "toolCallId": id,
            "content": call.result_text(), "role": "tool" });
        write_data(&result, out);
    }

    fn finish(&mut self, report: &RunReport, out: &mut String) {
        if let (Some(structured), false) = (&report.structured, self.has_text) {
            self.write_delta(OpenMessage::Text, &structured.to_string(), out);
        }
        self.end_step(out);
        match (report.status(), &report.error) {
            (RunStatus::Finished | RunStatus::Limit | RunStatus::Refused, _) | (_, None) => {
                let finished = json!({ "type": "RUN_FINISHED", "threadId": self.thread_id, "runId": self.run_id,
                    "outcome": { "type": "success" }, "result": report.to_json() });
                write_data(&finished, out);
            }
            (_, Some(error)) => {
                let event =
                    json!({ "type": "RUN_ERROR", "message": error.to_string(), "code": error.error_type() });
                write_data(&event, out);
            }
        }
    }
}

impl Projection for AgUiWriter {
    fn write(&mut self, event: &AgentEvent, out: &mut String) {
        match event {
            AgentEvent::Started { .. } => self.begin(out),
            AgentEvent::Text { delta, .. } => self.write_delta(OpenMessage::Text, delta, out),
            AgentEvent::Thinking(delta) => self.write_delta(OpenMessage::Reasoning, delta, out),
            // It follows every whole answer.
            AgentEvent::Usage(_) => {
                self.begin_answer(out);
                self.end_message(out);
                self.is_answer_over = true;
            }
            AgentEvent::ToolCall(call) => self.write_call(call, out),
            AgentEvent::ApprovalRequest(question) => self.interrupts.push(interrupt(question)),
            // The result of the call has it.
            AgentEvent::Error { call_id: Some(_), .. } => {}
            AgentEvent::InputRequest(_)
            | AgentEvent::Context(_)
            | AgentEvent::Retry { .. }
            | AgentEvent::Error { .. } => {
                let (name, value) = event.to_json();
                write_data(&json!({ "type": "CUSTOM", "name": name, "value": value }), out);
            }
            AgentEvent::Reset => {}
            AgentEvent::Done(report) => self.finish(report, out),
        }
    }

    fn pause(&mut self, out: &mut String) {
        self.end_step(out);
        let outcome = json!({ "type": "interrupt", "interrupts": self.interrupts });
        let finished = json!({ "type": "RUN_FINISHED", "threadId": self.thread_id, "runId": self.run_id,
            "outcome": outcome });
        write_data(&finished, out);
    }

    fn abort(&mut self, out: &mut String) {
        self.end_step(out);
        let message = "wharf stopped during the run";
        write_data(&json!({ "type": "RUN_ERROR", "message": message, "code": "internal" }), out);
    }
}

/// Returns a question about a call as an interrupt.
fn interrupt(question: &ApprovalQuestion) -> Value {
    let mut interrupt = json!({ "id": question.approval_id, "reason": "tool_call",
        "message": format!("Allow {}?", question.tool_name), "toolCallId": question.call_id,
        "responseSchema": {
            "type": "object", "required": ["approved"],
            "properties": {
                "approved": { "type": "boolean" },
                "scope": { "enum": ["once", "tool"] },
                "reason": { "type": "string" },
            },
        },
        "metadata": question.to_json() });
    if let Some(expires_at) = question.expires_at {
        interrupt["expiresAt"] = rfc3339(expires_at).into();
    }
    interrupt
}
