//! Builds the journal's row of a call: redacted, and truncated to the record limit.

use serde_json::{Map, Value, json};
use std::{
    sync::{Arc, LazyLock},
    time::{Duration, UNIX_EPOCH},
};
use wharf_mcp::Raw;
use wharf_runtime::{CallRecord, Outcome, Stages, result_handle::PassedResult, trace::to_hex};
use wharf_store::CallRow;

/// Shortest wait before the request that is recorded.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// Number of bytes that are recorded of a value over the limit.
const TRUNCATED_BYTES: usize = 1 << 10;

/// Texts that most rows share, so that they need no copy.
static COMMON_TEXTS: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| {
    let texts = ["success", "mcp", "rest", "{}", "failure", "timeout", "ToolError", "gone"];
    texts.into_iter().map(Arc::from).collect()
});

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
    let parameters = record.arguments.as_ref().map(|it| recorded(record, it, limit, |cut| cut));
    CallRow {
        execution_start: i64::try_from(started).unwrap_or(i64::MAX),
        execution_duration_ms: record.took.as_secs_f64() * 1_000.0,
        request_id: record.request_id.clone(),
        thread_id: record.thread_id.as_deref().map(Arc::from),
        source: record.source.clone().unwrap_or_default(),
        tool_name: record.wire_name.clone().unwrap_or_else(|| record.tool.as_str().into()),
        parameters: parameters.unwrap_or_else(|| shared_text("{}")),
        status: shared_text(record.status().as_str()),
        result,
        error: record.error_text().map(Arc::from),
        error_type: record.error_type().map(shared_text),
        via: Some(shared_text(via)),
        principal: record.principal.clone(),
        details: details(record).map(Arc::from),
    }
}

/// Returns what else is known about a call that failed, waited or was traced. The others have nothing to add: they were
/// sent, and all their time was the request.
fn details(record: &CallRecord) -> Option<String> {
    let Stages { queue, connect } = record.stages;
    let has_waited = queue + connect >= MIN_WAIT;
    let has_passed = !record.passed.is_empty();
    if record.error_type().is_none() && record.trace.is_none() && !has_waited && !has_passed {
        return None;
    }
    let milliseconds = |it: Duration| (it.as_secs_f64() * 1e6).round() / 1e3;
    let mut details = Map::new();
    if let Some(fault) = record.fault() {
        details.insert("phase".to_owned(), fault.phase.as_str().into());
        details.insert("hint".to_owned(), fault.hint.clone().into());
    }
    if record.error_type().is_some() {
        details.insert("sent".to_owned(), record.sent().into());
    }
    if let Some(trace) = &record.trace {
        details.insert("trace_id".to_owned(), to_hex(&trace.id).into());
    }
    if has_passed {
        details.insert("passed".to_owned(), record.passed.iter().map(PassedResult::to_json).collect());
    }
    if has_waited {
        let call = record.took.saturating_sub(queue + connect);
        let stages = json!({
            "queue": milliseconds(queue),
            "connect": milliseconds(connect),
            "call": milliseconds(call),
        });
        details.insert("stages_ms".to_owned(), stages);
    }
    Some(Value::Object(details).to_string())
}

/// Returns the redacted JSON. Of a value over the limit it returns the size and the beginning, in the form that `wrap`
/// gives them.
fn recorded(record: &CallRecord, value: &Raw, limit: usize, wrap: impl FnOnce(Value) -> Value) -> Arc<str> {
    let bytes = value.as_bytes().len();
    if bytes <= limit {
        return record.redacted(value).as_str().into();
    }
    wrap(json!({ "cut": { "bytes": bytes, "beginning": record.beginning(value, TRUNCATED_BYTES) } }))
        .to_string()
        .into()
}

/// Returns the shared copy of a common text, or a new one.
fn shared_text(text: &str) -> Arc<str> {
    COMMON_TEXTS.iter().find(|it| ***it == *text).cloned().unwrap_or_else(|| text.into())
}
