//! Converts call records and source states into the JSON shapes of the public APIs.
//!
//! These shapes have no types inside the runtime. Arguments and results are copied as raw JSON, because decoding
//! would change numbers beyond double precision.

mod blocks;
#[cfg(test)]
mod tests;

use crate::{
    Fault,
    active_source::SourceState,
    call::{CallRecord, Outcome, text_of},
    catalog::ToolEntry,
    circuit_breaker::BreakerSnapshot,
    fault::sent_word,
    time_format::{iso_duration, rfc3339},
};
pub use blocks::{content_blocks, contents_block, unknown_block};
use serde_json::{Value, json};
use wharf_mcp::{Exit, Raw, model::CallResult, session::Era};

/// Builds an `MCPToolResult`: `success`, `content`, `error`, `metadata`.
pub fn tool_result(record: &CallRecord) -> Raw {
    let result = record.result().map(|it| CallResult::read(&it));
    let success = matches!(record.outcome, Outcome::Answered(_));
    let error = match &record.outcome {
        Outcome::Answered(_) => Value::Null,
        Outcome::Refused(result) => tool_error(result),
        Outcome::Failed(fault) => error(fault),
    };
    let content = result.as_ref().map_or_else(|| Raw::list([]), |it| content_blocks(&it.content));
    let metadata = [
        ("request_id", json!(&*record.request_id).into()),
        ("tool", json!(record.tool).into()),
        ("wire_name", json!(record.wire_name.as_deref()).into()),
        ("source", json!(record.source.as_deref()).into()),
        ("duration_ms", json!(millis(record)).into()),
        ("structured_content", result.and_then(|it| it.structured).into()),
    ];
    Raw::object([
        ("success", json!(success).into()),
        ("content", content),
        ("error", error.into()),
        ("metadata", Raw::object(metadata)),
    ])
}

/// Builds the list of the errors in a call's arguments: `path` (a JSON pointer into the arguments) and `message`.
pub fn argument_errors(fault: &Fault) -> Value {
    let errors = fault.argument_errors.iter();
    errors.map(|it| json!({ "path": it.pointer, "message": it.message })).collect()
}

/// Builds a redacted `ToolCallContext`, the entry in the call log.
pub fn context(record: &CallRecord) -> Raw {
    let mut context: Vec<(&str, Raw)> = vec![("request_id", json!(&*record.request_id).into())];
    context.extend(record.thread_id.as_ref().map(|it| ("thread_id", json!(it).into())));
    context.push(("tool_name", json!(record.tool_name()).into()));
    context.push(("parameters", record.parameters().unwrap_or_else(Raw::empty_object)));
    context.push(("execution_start", json!(rfc3339(record.started)).into()));
    context.push(("execution_duration", json!(record.took.as_secs_f64()).into()));
    context.push(match (&record.outcome, record.error_text()) {
        (Outcome::Answered(result), _) => ("result", result_value(&record.redacted(result))),
        (_, error) => ("error", json!(error).into()),
    });
    context.push(("status", json!(record.status().as_str()).into()));
    Raw::object(context)
}

/// Builds an `McpExecutionResult`.
pub fn execution(record: &CallRecord) -> Raw {
    let content = record.result().and_then(|it| it.member("content"));
    let success = matches!(record.outcome, Outcome::Answered(_));
    let metadata = json!({
        "request_id": &*record.request_id,
        "tool_name": record.tool_name(),
        "source": record.source.as_deref(),
    });
    Raw::object([
        ("success", json!(success).into()),
        ("content", content.unwrap_or_else(|| Raw::list([]))),
        ("is_error", json!(!success).into()),
        ("error", json!(record.error_text()).into()),
        ("execution_time_ms", json!(millis(record)).into()),
        ("metadata", metadata.into()),
    ])
}

/// Returns the text of all text blocks, joined.
pub fn get_text(record: &CallRecord) -> String {
    record.result().map(|it| text_of(&it)).unwrap_or_default()
}

/// Converts a fault to JSON.
pub fn error(fault: &Fault) -> Value {
    let (exit_code, signal) = match fault.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    json!({
        "type": fault.kind.as_str(),
        "message": fault.message(),
        "hint": fault.hint,
        "phase": fault.phase.as_str(),
        "sent": sent_word(fault.sent),
        "stderr": fault.stderr,
        "exit_code": exit_code,
        "signal": signal,
    })
}

/// Converts a tool's own error result to JSON.
pub fn tool_error(result: &Raw) -> Value {
    let message = text_of(result);
    json!({ "type": "ToolError", "message": message.trim_end(), "hint": null, "phase": "call", "sent": "yes" })
}

/// Converts the state of a circuit breaker to JSON.
pub fn breaker(service_name: &str, circuit_breaker: &BreakerSnapshot) -> Value {
    json!({
        "service_name": service_name,
        "state": circuit_breaker.state.as_str(),
        "failure_count": circuit_breaker.failures,
        "failure_threshold": circuit_breaker.policy.failure_threshold,
        "last_failure_time": circuit_breaker.last_failure.map(rfc3339),
        "recovery_timeout": iso_duration(circuit_breaker.policy.recovery_timeout),
        "last_state_change": rfc3339(circuit_breaker.last_change),
    })
}

/// Converts the state of a connection to JSON, with the tools of its source.
pub fn connection<'a>(state: &SourceState, tools: impl Iterator<Item = &'a ToolEntry>) -> Value {
    let SourceState { source, status, connection, .. } = state;
    let returncode = status.exit.map(|it| match it {
        Exit::Code(code) => code,
        // Negative for signals, like Python's `subprocess`.
        Exit::Signal(signal) => -signal,
    });
    let process = (status.pid.is_some() || returncode.is_some())
        .then(|| json!({ "pid": status.pid, "returncode": returncode }));
    let mut shown = json!({
        "transport_type": source.endpoint.transport(),
        "server_name": source.name.shown(),
        "process": process,
        "connection_state": connection.as_str(),
        "session_state": status.session.as_str(),
        "health": status.health.as_str(),
        "last_health_check": status.last_seen.map(rfc3339),
        "discovered_tools": tools.map(definition).collect::<Vec<_>>(),
        "initialization_time": status.took.map(|it| it.as_secs_f64()),
        "started_at": status.opened_at.map(rfc3339),
        "sessions": status.sessions,
        "era": status.era.map(Era::as_str),
        "protocol_version": status.version,
    });
    if let Some(what) = &status.downloading {
        shown["downloading"] = json!(what);
    }
    shown
}

/// Converts a catalog entry to JSON with all its properties.
pub fn tool(entry: &ToolEntry) -> Value {
    let value = |raw: &Raw| raw.decode_or_default::<Value>();
    let tool = entry.tool.as_ref();
    json!({
        "name": entry.name,
        "wire_name": &*entry.wire_name,
        "source": entry.source,
        "description": entry.description,
        "input_schema": tool.map(|it| value(&it.input_schema)),
        "output_schema": tool.and_then(|it| it.output_schema.as_ref()).map(value),
        "annotations": tool.and_then(|it| it.annotations.as_ref()).map(value),
        "definition_hash": entry.definition_hash,
        "quarantined": entry.quarantined.as_ref().map(|it| &it.reason),
    })
}

/// Converts a tool to its registry definition.
pub fn definition(tool: &ToolEntry) -> Value {
    let meta = tool.raw.member("_meta");
    let tags = meta.as_ref().and_then(|it| it.member("tags")).map(|it| it.decode_or_default::<Vec<String>>());
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.tool.as_ref().map(|it| it.input_schema.decode_or_default::<Value>()),
        "tags": tags.unwrap_or_default(),
        "metadata": meta.map_or_else(|| json!({}), |it| it.decode_or_default()),
    })
}

/// Returns the result for a program: its structured content, otherwise its text as JSON or as a string, otherwise its
/// content blocks.
pub fn result_value(result: &Raw) -> Raw {
    let result = CallResult::read(result);
    if let Some(structured) = result.structured {
        return structured;
    }
    let text = text_of(&result.raw);
    match result.content.len() {
        1 if !text.is_empty() => {
            let parsed = Raw::parse(text.clone()).ok();
            let parsed = parsed.filter(|it| !it.has_lone_surrogate() && !it.is_too_deep());
            parsed.unwrap_or_else(|| Value::String(text).into())
        }
        _ => content_blocks(&result.content),
    }
}

fn millis(record: &CallRecord) -> f64 {
    record.took.as_secs_f64() * 1_000.0
}
