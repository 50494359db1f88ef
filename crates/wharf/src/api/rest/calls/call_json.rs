//! JSON form of a recorded call: a `ToolCallContext`, with what else the journal knows.

use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};
use wharf_mcp::Raw;
use wharf_runtime::{time_format::rfc3339, views};
use wharf_store::CallRow;

/// Builds the JSON of a call. `definition_hash` is that of its tool at the time of the call, if known.
pub(super) fn call_json(row: &CallRow, definition_hash: Option<&str>) -> Raw {
    let json = |text: &str| Raw::parse(text.to_owned()).unwrap_or_else(|_| Raw::null());
    let started = Duration::from_micros(u64::try_from(row.execution_start).unwrap_or_default());
    let mut context: Vec<(&str, Raw)> = Vec::new();
    let mut add = |key: &'static str, value: Raw| context.push((key, value));
    add("request_id", json!(&*row.request_id).into());
    row.thread_id.iter().for_each(|it| add("thread_id", json!(&**it).into()));
    add("tool_name", json!(&*row.tool_name).into());
    add("source", json!(&*row.source).into());
    add("parameters", json(&row.parameters));
    add("execution_start", json!(rfc3339(UNIX_EPOCH + started)).into());
    add("execution_duration", json!(row.execution_duration_ms / 1_000.0).into());
    if let Some(result) = row.result.as_ref().and_then(|it| Raw::parse(it.as_ref().to_owned()).ok()) {
        add("result", views::result_value(&result));
    }
    row.error.iter().for_each(|it| add("error", json!(&**it).into()));
    row.error_type.iter().for_each(|it| add("error_type", json!(&**it).into()));
    row.via.iter().for_each(|it| add("via", json!(&**it).into()));
    row.principal.iter().for_each(|it| add("principal", json!(&**it).into()));
    add("status", json!(&*row.status).into());
    // A call of an unknown tool has no source.
    let wire_name = Some(&*row.tool_name).filter(|_| !row.source.is_empty());
    add("wire_name", json!(wire_name).into());
    let details: Value =
        row.details.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let sent = match (&row.error_type, &row.details) {
        (None, _) => json!("yes"),
        (Some(_), Some(_)) => details["sent"].clone(),
        // The call was recorded by a version that did not store it.
        (Some(_), None) => json!("unknown"),
    };
    add("phase", details["phase"].clone().into());
    add("sent", sent.into());
    add("hint", details["hint"].clone().into());
    add("definition_hash", json!(definition_hash).into());
    add("trace_id", details["trace_id"].clone().into());
    let at_once = || json!({ "queue": 0.0, "connect": 0.0, "call": row.execution_duration_ms });
    let stages = details.get("stages_ms").cloned().unwrap_or_else(at_once);
    add("stages_ms", stages.into());
    if let Some(passed) = details.get("passed") {
        add("passed", passed.clone().into());
    }
    Raw::object(context)
}
