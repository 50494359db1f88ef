//! The body of `POST /api/v1/chat`.

use super::{
    super::{body, decision_body, problem::Problem},
    message_input::MessageInput,
};
use crate::{
    agent_runs::{CallDecision, LimitChanges, NewRun},
    message_context::UserMessage,
};
use http::StatusCode;
use serde_json::Value;
use std::time::Duration;
use wharf_config::check_answer_schema;
use wharf_mcp::Raw;
use wharf_runtime::argument_schema::Schema;

/// Maximum length of an id, in characters.
const MAX_ID_CHARS: usize = 256;

/// Maximum number of decisions in one request: that of the calls of one answer.
const MAX_DECISIONS: usize = 64;

/// Keys of a message.
const MESSAGE_KEYS: [&str; 3] = ["message", "prompt", "attachments"];

const KEYS: &[&str] = &[
    "message",
    "prompt",
    "attachments",
    "conversation_id",
    "thread_id",
    "request_id",
    "stream",
    "limits",
    "response_format",
    "on_disconnect",
    "accumulate",
    "keep",
    "approvals",
];

/// A message to the agent.
pub(super) struct ChatRequest {
    /// The message, unless there are decisions in its place.
    pub(super) message: Option<MessageInput>,
    /// Whether the conversation is kept.
    pub(super) is_kept: bool,
    /// Conversation to continue.
    pub(super) conversation_id: Option<String>,
    /// Decisions about the calls for which the conversation waits, in place of a message.
    pub(super) decisions: Vec<CallDecision>,
    pub(super) request_id: Option<String>,
    pub(super) wants_stream: bool,
    /// Whether every piece of text comes with all text before it.
    pub(super) accumulate: bool,
    limits: LimitChanges,
    response_format: Option<Value>,
    continues_unread: bool,
}

impl ChatRequest {
    pub(super) fn read(body: &Raw) -> Result<ChatRequest, Problem> {
        body::reject_unknown_keys(body, KEYS)?;
        let response_format = given(body, "response_format").map(|it| it.decode_or_default::<Value>());
        response_format.iter().try_for_each(check_format).map_err(|why| invalid(&why))?;
        let is_kept = read_bool(body, "keep", true)?;
        let (conversation_id, thread_id) = (read_id(body, "conversation_id")?, read_id(body, "thread_id")?);
        let conversation_id = conversation_id.or(thread_id);
        if conversation_id.is_some() && !is_kept {
            return Err(invalid("`conversation_id` and `keep: false` exclude each other"));
        }
        let decisions = read_decisions(body)?;
        let message = match decisions.is_empty() {
            true => Some(MessageInput::read(body)?),
            false if MESSAGE_KEYS.iter().any(|it| given(body, it).is_some()) => {
                return Err(invalid("a message and `approvals` exclude each other"));
            }
            false if conversation_id.is_none() => {
                return Err(invalid("`approvals` needs a `conversation_id`"));
            }
            false => None,
        };
        Ok(ChatRequest {
            message,
            conversation_id,
            decisions,
            request_id: read_id(body, "request_id")?,
            wants_stream: read_bool(body, "stream", true)?,
            accumulate: read_bool(body, "accumulate", false)?,
            is_kept,
            limits: read_limits(body)?,
            response_format,
            continues_unread: read_disconnect(body)?,
        })
    }

    pub(super) fn into_new_run(self, message: UserMessage) -> NewRun {
        NewRun {
            message: message.content,
            earlier: message.earlier,
            attachments: message.attachments,
            limits: self.limits,
            response_format: self.response_format,
            continues_unread: self.continues_unread,
            ..NewRun::default()
        }
    }
}

/// Checks the JSON Schema of an answer. The error is for the client.
pub(in crate::api) fn check_format(schema: &Value) -> Result<(), String> {
    let compiled = || Schema::compile(&schema.clone().into()).map_err(|why| format!("{why} at /"));
    let checked = check_answer_schema(schema).and_then(|()| compiled());
    checked.map(drop).map_err(|why| format!("`response_format` is not a JSON Schema: {why}"))
}

fn read_decisions(body: &Raw) -> Result<Vec<CallDecision>, Problem> {
    let Some(raw) = given(body, "approvals") else { return Ok(Vec::new()) };
    let list: Vec<Value> = raw.decode().map_err(|_| body::malformed("`approvals` has to be a list"))?;
    if list.len() > MAX_DECISIONS {
        return Err(invalid("`approvals` has too many decisions"));
    }
    list.into_iter().map(|it| decision_body::read_with_id(&it.into())).collect()
}

fn read_id(body: &Raw, key: &str) -> Result<Option<String>, Problem> {
    match given(body, key) {
        Some(_) => body::read_text(body, key, MAX_ID_CHARS),
        None => Ok(None),
    }
}

fn read_limits(body: &Raw) -> Result<LimitChanges, Problem> {
    let Some(limits) = given(body, "limits") else { return Ok(LimitChanges::default()) };
    if !limits.is_object() {
        return Err(body::malformed("`limits` has to be an object"));
    }
    let keys = [
        "max_turns",
        "max_tool_calls",
        "max_repeats",
        "max_parallel",
        "run_timeout",
        "max_total_tokens",
        "max_cost",
        "approval_timeout",
    ];
    body::reject_unknown_keys(&limits, &keys)?;
    let number = |key: &str| match given(&limits, key).map(|it| it.decode::<u64>()) {
        None => Ok(None),
        Some(Ok(number)) if number > 0 || key == "max_tool_calls" => Ok(Some(number)),
        Some(_) => Err(invalid(&format!("`limits.{key}` has to be a positive integer"))),
    };
    Ok(LimitChanges {
        max_turns: number("max_turns")?,
        max_tool_calls: number("max_tool_calls")?,
        max_repeats: number("max_repeats")?,
        max_parallel: number("max_parallel")?,
        max_total_tokens: number("max_total_tokens")?,
        max_cost: read_cost(&limits)?,
        run_timeout: number("run_timeout")?.map(Duration::from_secs),
        approval_timeout: number("approval_timeout")?.map(Duration::from_secs),
    })
}

fn read_cost(limits: &Raw) -> Result<Option<f64>, Problem> {
    match given(limits, "max_cost").map(|it| it.decode::<f64>()) {
        None => Ok(None),
        Some(Ok(cost)) if cost > 0.0 && cost.is_finite() => Ok(Some(cost)),
        Some(_) => Err(invalid("`limits.max_cost` has to be a positive number")),
    }
}

fn read_disconnect(body: &Raw) -> Result<bool, Problem> {
    let word = given(body, "on_disconnect").map(|it| it.decode::<String>().unwrap_or_default());
    match word.as_deref() {
        None | Some("cancel") => Ok(false),
        Some("continue") => Ok(true),
        Some(_) => Err(invalid("`on_disconnect` has to be `cancel` or `continue`")),
    }
}

fn read_bool(body: &Raw, key: &str, default: bool) -> Result<bool, Problem> {
    let Some(raw) = given(body, key) else { return Ok(default) };
    raw.decode::<bool>().map_err(|_| body::malformed(format!("`{key}` has to be true or false")))
}

/// Returns a member that is present and not null.
pub(super) fn given(body: &Raw, key: &str) -> Option<Raw> {
    body.member(key).filter(|it| it.as_bytes() != b"null")
}

pub(super) fn invalid(what: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what)
}
