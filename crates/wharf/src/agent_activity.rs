//! Describes the activity of the agent in lines for people: calls, retries and notes.

use crate::content::printable;
use serde_json::Value;
use std::time::Duration;
use wharf_agent::{AgentEvent, ToolCallEvent, ToolStatus};
use wharf_runtime::Fault;

/// Maximum length of a shown argument, in characters.
const MAX_SHOWN_CHARS: usize = 60;

/// Returns a line about an event, if it is one that people follow.
pub(crate) fn describe_activity(event: &AgentEvent) -> Option<String> {
    let line = match event {
        AgentEvent::ToolCall(call) => describe_call(call)?,
        AgentEvent::Retry { message, delay, .. } => {
            format!("retry in {}: {message}", format_duration(*delay))
        }
        AgentEvent::Context(what) => format!("note: {what}"),
        AgentEvent::Error { message, call_id: None, .. } => format!("warning: {message}"),
        _ => return None,
    };
    Some(printable(&line))
}

/// Returns whether an event says that a call was sent.
pub(crate) fn is_sent_call(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ToolCall(call) if call.status == ToolStatus::InProgress)
}

/// Returns the event of a source that could not be connected. The model continues without its tools.
pub(crate) fn unreachable_event(fault: &Fault) -> AgentEvent {
    AgentEvent::Error {
        error_type: "mcp_connection_error",
        message: fault.message(),
        hint: fault.hint.clone(),
        call_id: None,
    }
}

fn describe_call(call: &ToolCallEvent) -> Option<String> {
    let result = || shorten(call.result_text().lines().next().unwrap_or_default());
    let duration = call.duration.map(format_duration).unwrap_or_default();
    match call.status {
        ToolStatus::InProgress => {
            Some(format!("→ {} {}", call.tool_name, format_arguments(&call.arguments)).trim_end().to_owned())
        }
        ToolStatus::Completed if call.duration.is_none() => None,
        ToolStatus::Completed => Some(format!("← {duration}")),
        ToolStatus::Failed | ToolStatus::Unknown => {
            Some(format!("← {} {}: {}", call.tool_name, call.status.as_str(), result()))
        }
        ToolStatus::Denied => Some(format!("← {} denied", call.tool_name)),
        ToolStatus::AwaitingApproval => None,
    }
}

/// Formats arguments as `key=value`, shortened.
pub(crate) fn format_arguments(arguments: &Value) -> String {
    let Some(arguments) = arguments.as_object() else { return shorten(&arguments.to_string()) };
    let pairs = arguments.iter().map(|(key, value)| format!("{key}={}", shorten(&value.to_string())));
    printable(&pairs.collect::<Vec<_>>().join(" "))
}

/// Formats a duration in milliseconds or seconds.
pub(crate) fn format_duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
