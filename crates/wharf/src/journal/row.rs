//! Builds the journal's row of a call: redacted, and truncated to the record limit.

use serde_json::json;
use std::time::UNIX_EPOCH;
use wharf_mcp::Raw;
use wharf_runtime::{CallRecord, Outcome};
use wharf_store::CallRow;

/// Number of bytes that are recorded of a value over the limit.
const TRUNCATED_BYTES: usize = 4 << 10;

/// Builds the row of a call that came in `via` this interface. Arguments and results over `limit` bytes are truncated.
pub(super) fn call_row(record: &CallRecord, via: &str, limit: usize) -> CallRow {
    let started = record.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let result = match &record.outcome {
        // Readers look for the result's value in this member.
        Outcome::Answered(result) => {
            Some(recorded(record, result, limit, |cut| json!({ "structuredContent": cut })))
        }
        Outcome::Refused(_) | Outcome::Failed(_) => None,
    };
    let error_type = match &record.outcome {
        Outcome::Answered(_) => None,
        Outcome::Refused(_) => Some("ToolError"),
        Outcome::Failed(fault) => Some(fault.kind.as_str()),
    };
    let parameters = record.arguments.as_ref().map(|it| recorded(record, it, limit, |cut| cut));
    CallRow {
        execution_start: i64::try_from(started).unwrap_or(i64::MAX),
        execution_duration_ms: record.took.as_secs_f64() * 1_000.0,
        request_id: record.request_id.as_ref().to_owned(),
        thread_id: record.thread_id.clone(),
        source: record.source.as_deref().unwrap_or_default().to_owned(),
        tool_name: record.wire_name.as_ref().unwrap_or(&record.tool).clone(),
        parameters: parameters.unwrap_or_else(|| "{}".to_owned()),
        status: record.status().as_str().to_owned(),
        result,
        error: record.error_text(),
        error_type: error_type.map(str::to_owned),
        via: Some(via.to_owned()),
        principal: record.principal.as_deref().map(str::to_owned),
    }
}

/// Returns the redacted JSON. Of a value over the limit it returns the size and the beginning, in the form that `wrap`
/// gives them.
fn recorded(
    record: &CallRecord,
    value: &Raw,
    limit: usize,
    wrap: impl FnOnce(serde_json::Value) -> serde_json::Value,
) -> String {
    let bytes = value.as_bytes().len();
    if bytes <= limit {
        return record.redacted(value).as_str().to_owned();
    }
    wrap(json!({ "cut": { "bytes": bytes, "beginning": record.beginning(value, TRUNCATED_BYTES) } }))
        .to_string()
}
