//! JSON form of an event. Secrets are redacted before events get here; long texts are truncated here.

use serde_json::{Value, json};
use std::time::SystemTime;
use wharf_runtime::{CallRecord, Catalog, Event, EventKind, Raw, time_format::rfc3339};

/// Maximum length of a text in an event, in bytes.
const MAX_TEXT_BYTES: usize = 2_048;

pub(super) fn event(event: &Event) -> Value {
    let data = match &event.what {
        EventKind::Session(state) => json!({ "state": state.as_str() }),
        EventKind::Connection(state) => json!({ "state": state.as_str() }),
        EventKind::Downloading(what) => json!({ "what": what.as_deref().map(truncate) }),
        EventKind::Health(health) => json!({ "state": health.as_str() }),
        EventKind::Breaker(breaker) => json!({ "state": breaker.as_str() }),
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
        EventKind::Progress { request_id, progress } => {
            json!({ "request_id": &**request_id, "progress": progress.progress, "total": progress.total })
        }
        EventKind::Exception(what) => json!({ "text": truncate(what) }),
        EventKind::Called(record) => call(record),
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
        "disabled": catalog.tools.iter().filter(|it| it.disabled.is_some()).count(),
        "prompts": catalog.prompts.len(),
        "resources": catalog.resources.len(),
    });
    envelope(SystemTime::now(), "", "catalog", &data)
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
        "status": record.status().as_str(),
        "duration_ms": record.took.as_secs_f64() * 1_000.0,
        "error": record.error_text().as_deref().map(truncate),
    })
}

fn elicitation_id(params: &Raw) -> Option<String> {
    params.member("elicitationId")?.decode().ok()
}

fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}
