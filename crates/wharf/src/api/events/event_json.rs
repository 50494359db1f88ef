//! JSON form of an event. Secrets are redacted before events get here; long texts are truncated here.

use serde_json::{Value, json};
use std::time::SystemTime;
use tokio::time::Instant;
use wharf_runtime::{
    BreakerState, CallRecord, Catalog, Event, EventKind, Handle, Raw, catalog::BlockReason,
    time_format::rfc3339,
};

/// Maximum length of a text in an event, in bytes.
const MAX_TEXT_BYTES: usize = 2_048;

pub(super) fn event(event: &Event, handle: &Handle) -> Value {
    let data = match &event.what {
        EventKind::Session(state) => json!({ "state": state.as_str() }),
        EventKind::Connection(state) => json!({ "state": state.as_str() }),
        EventKind::Downloading(what) => json!({ "what": what.as_deref().map(truncate) }),
        EventKind::Health(health) => json!({ "state": health.as_str() }),
        EventKind::Breaker(state) => breaker(*state, &event.source, handle),
        EventKind::Listed { tools } => json!({ "tools": tools }),
        EventKind::ResourceUpdated(uri) => json!({ "uri": truncate(uri) }),
        EventKind::ElicitationComplete(params) => {
            json!({ "elicitation_id": elicitation_id(params).as_deref().map(truncate) })
        }
        EventKind::Log { level, logger, data, .. } => {
            let logger = logger.as_deref().map(truncate);
            json!({ "level": truncate(level), "logger": logger, "text": truncate(data.as_str()) })
        }
        EventKind::Stderr(line) => json!({ "text": truncate(line) }),
        EventKind::Begun { request_id, tool_id, via, principal } => json!({
            "request_id": &**request_id,
            "tool_id": truncate(tool_id),
            "via": via,
            "principal": principal.as_deref(),
        }),
        EventKind::Progress { request_id, progress } => json!({
            "request_id": &**request_id,
            "progress": progress.progress,
            "total": progress.total,
            "message": progress.message.as_deref().map(truncate),
        }),
        EventKind::Exception(what) => json!({ "text": truncate(what) }),
        EventKind::Called(record) => call(record),
        EventKind::Lock { tool_id, state, hash } => {
            json!({ "tool_id": truncate(tool_id), "state": state, "hash": hash })
        }
        EventKind::DependenciesChanged => json!({ "tool_id": null, "state": "dependencies", "hash": null }),
        EventKind::FaultInjected { rule } => json!({ "rule": rule }),
        EventKind::ResultStored { id, bytes } => json!({ "id": id, "bytes": bytes }),
        EventKind::Missed(count) => json!({ "events": count }),
        _ => json!({}),
    };
    envelope(event.at, &event.source, event.what.as_str(), &data)
}

/// The event for a changed catalog.
pub(super) fn catalog(catalog: &Catalog) -> Value {
    let data = json!({
        "revision": catalog.revision,
        "tools": catalog.tools.len(),
        "disabled": catalog.tools.iter().filter(|it| matches!(it.blocked, Some(BlockReason::SwitchedOff(_)))).count(),
        "prompts": catalog.prompts.len(),
        "resources": catalog.resources.len(),
    });
    of("", "catalog", &data)
}

/// An event of this moment.
pub(super) fn of(source: &str, kind: &str, data: &Value) -> Value {
    envelope(SystemTime::now(), source, kind, data)
}

/// A changed breaker, with its failures and the time of the next try.
fn breaker(state: BreakerState, source: &str, handle: &Handle) -> Value {
    let sources = handle.sources();
    let found = sources.iter().find(|it| it.source.name.expose() == source);
    let retry_at = match state {
        BreakerState::Open { until } => {
            Some(SystemTime::now() + until.saturating_duration_since(Instant::now()))
        }
        BreakerState::Closed { .. } | BreakerState::HalfOpen => None,
    };
    json!({
        "state": state.as_str(),
        "failure_count": found.map(|it| it.circuit_breaker.failures),
        "retry_at": retry_at.map(rfc3339),
    })
}

fn envelope(at: SystemTime, source: &str, kind: &str, data: &Value) -> Value {
    let source = Some(source).filter(|it| !it.is_empty());
    json!({ "at": rfc3339(at), "source": source, "kind": kind, "data": data })
}

fn call(record: &CallRecord) -> Value {
    json!({
        "request_id": &*record.request_id,
        "thread_id": record.thread_id,
        "tool": truncate(&record.tool),
        "tool_id": record.tool_id().as_deref().map(truncate),
        "via": record.via,
        "principal": record.principal.as_deref(),
        "status": record.status().as_str(),
        "duration_ms": record.took.as_secs_f64() * 1_000.0,
        "error": record.error_text().as_deref().map(truncate),
        "error_type": record.error_type(),
        "sent": record.sent(),
        "result_bytes": record.result_bytes(),
    })
}

fn elicitation_id(params: &Raw) -> Option<String> {
    params.member("elicitationId")?.decode().ok()
}

fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}
