//! What came of a call, and how sources stand, in the words of those who read it: JSON, made at the edge.
//!
//! A record is one thing; these are its projections. None of them has a type of its own inside.

mod blocks;
#[cfg(test)]
mod tests;

use crate::{
    Fault,
    berth::SourceState,
    breaker::GateState,
    call::{CallRecord, Outcome, text_of},
    catalog::ToolEntry,
    fault::sent_word,
    stamp::{iso_duration, rfc3339},
};
pub use blocks::{content_blocks, contents_block};
use serde_json::{Map, Value, json};
use wharf_mcp::{Exit, Raw, model::CallResult};

/// `MCPToolResult`: `success`, `content`, `error`, `metadata`.
pub fn tool_result(record: &CallRecord) -> Value {
    let result = record.result().map(|it| CallResult::read(&it));
    let success = matches!(record.outcome, Outcome::Answered(_));
    let error = match &record.outcome {
        Outcome::Answered(_) => Value::Null,
        Outcome::Refused(result) => tool_error(result),
        Outcome::Failed(fault) => error(fault),
    };
    json!({
        "success": success,
        "content": result.as_ref().map_or_else(|| json!([]), |it| content_blocks(&it.content)),
        "error": error,
        "metadata": {
            "request_id": &*record.request_id,
            "tool": record.tool,
            "wire_name": record.wire_name,
            "source": record.source.as_deref(),
            "duration_ms": millis(record),
            "structured_content": result.and_then(|it| it.structured).map(|it| it.decode_or_default::<Value>()),
        },
    })
}

/// `ToolCallContext`: what a log of calls keeps. Without secrets.
pub fn context(record: &CallRecord) -> Value {
    let mut context = Map::new();
    context.insert("request_id".into(), json!(&*record.request_id));
    if let Some(thread) = &record.thread_id {
        context.insert("thread_id".into(), json!(thread));
    }
    let parameters = record.parameters().map_or_else(|| json!({}), |it| it.decode_or_default());
    context.insert("tool_name".into(), json!(record.wire_name.as_ref().unwrap_or(&record.tool)));
    context.insert("parameters".into(), parameters);
    context.insert("execution_start".into(), json!(rfc3339(record.started)));
    context.insert("execution_duration".into(), json!(record.took.as_secs_f64()));
    match (&record.outcome, record.error_text()) {
        (Outcome::Answered(result), _) => {
            context.insert("result".into(), meaning(&record.redacted(result)));
        }
        (_, error) => _ = context.insert("error".into(), json!(error)),
    }
    context.insert("status".into(), json!(record.status().as_str()));
    Value::Object(context)
}

/// `McpExecutionResult`.
pub fn execution(record: &CallRecord) -> Value {
    let result = record.result();
    json!({
        "success": matches!(record.outcome, Outcome::Answered(_)),
        "content": result.as_ref().and_then(|it| it.member("content")).map_or_else(|| json!([]), |it| it.decode_or_default()),
        "is_error": !matches!(record.outcome, Outcome::Answered(_)),
        "error": record.error_text(),
        "execution_time_ms": millis(record),
        "metadata": {
            "request_id": &*record.request_id,
            "tool_name": record.wire_name.as_ref().unwrap_or(&record.tool),
            "source": record.source.as_deref(),
        },
    })
}

/// The text of all text blocks, together.
pub fn get_text(record: &CallRecord) -> String {
    record.result().map(|it| text_of(&it)).unwrap_or_default()
}

/// A fault, as programs read it.
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

/// A tool's own error, in its own words.
pub fn tool_error(result: &Raw) -> Value {
    let message = text_of(result);
    json!({ "type": "ToolError", "message": message.trim_end(), "hint": null, "phase": "call", "sent": "yes" })
}

/// A breaker.
pub fn breaker(service_name: &str, gate: &GateState) -> Value {
    json!({
        "service_name": service_name,
        "state": gate.breaker.as_str(),
        "failure_count": gate.failures,
        "failure_threshold": gate.policy.failure_threshold,
        "last_failure_time": gate.last_failure.map(rfc3339),
        "recovery_timeout": iso_duration(gate.policy.recovery_timeout),
        "last_state_change": rfc3339(gate.last_change),
    })
}

/// A connection, with the tools of its source.
pub fn connection<'a>(state: &SourceState, tools: impl Iterator<Item = &'a ToolEntry>) -> Value {
    let SourceState { source, standing, connection, .. } = state;
    let returncode = standing.exit.map(|it| match it {
        Exit::Code(code) => code,
        // As a shell counts them, and Python.
        Exit::Signal(signal) => -signal,
    });
    let process = (standing.pid.is_some() || returncode.is_some())
        .then(|| json!({ "pid": standing.pid, "returncode": returncode }));
    json!({
        "transport_type": source.endpoint.transport(),
        "server_name": source.name.shown(),
        "process": process,
        "connection_state": connection.as_str(),
        "session_state": standing.session.as_str(),
        "health": standing.health.as_str(),
        "last_health_check": standing.last_seen.map(rfc3339),
        "discovered_tools": tools.map(definition).collect::<Vec<_>>(),
        "initialization_time": standing.took.map(|it| it.as_secs_f64()),
    })
}

/// A tool of the catalog, with all that is known of it.
pub fn tool(entry: &ToolEntry) -> Value {
    let value = |raw: &Raw| raw.decode_or_default::<Value>();
    let tool = entry.tool.as_ref();
    json!({
        "name": entry.name,
        "wire_name": entry.wire_name,
        "source": entry.source,
        "description": entry.description,
        "input_schema": tool.map(|it| value(&it.input_schema)),
        "output_schema": tool.and_then(|it| it.output_schema.as_ref()).map(value),
        "annotations": tool.and_then(|it| it.annotations.as_ref()).map(value),
        "definition_hash": entry.definition_hash,
        "quarantined": entry.quarantined,
    })
}

/// A tool of the registry.
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

/// What a result means to a program: its structure, else its text as JSON or as text.
pub fn meaning(result: &Raw) -> Value {
    let result = CallResult::read(result);
    if let Some(structured) = &result.structured {
        return structured.decode_or_default();
    }
    let text = text_of(&result.raw);
    match result.content.len() {
        1 if !text.is_empty() => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        _ => content_blocks(&result.content),
    }
}

fn millis(record: &CallRecord) -> f64 {
    record.took.as_secs_f64() * 1_000.0
}
