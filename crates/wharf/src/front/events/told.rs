//! JSON form of an event. Secrets are redacted before events get here; long texts are truncated here.

use serde_json::{Value, json};
use std::time::SystemTime;
use wharf_runtime::{CallRecord, Catalog, Event, Happening, stamp::rfc3339};

/// Maximum length of a text in an event, in bytes.
const LONGEST: usize = 2_048;

pub(super) fn event(event: &Event) -> Value {
    let data = match &event.what {
        Happening::Session(state) => json!({ "state": state.as_str() }),
        Happening::Connection(state) => json!({ "state": state.as_str() }),
        Happening::Downloading(what) => json!({ "what": what.as_deref().map(cut) }),
        Happening::Health(health) => json!({ "state": health.as_str() }),
        Happening::Breaker(breaker) => json!({ "state": breaker.as_str() }),
        Happening::Listed { tools } => json!({ "tools": tools }),
        Happening::ResourceUpdated(uri) => json!({ "uri": cut(uri) }),
        Happening::Log { level, logger, data, .. } => {
            let logger = logger.as_deref().map(cut);
            json!({ "level": cut(level), "logger": logger, "text": cut(data.as_str()) })
        }
        Happening::Stderr(line) => json!({ "text": cut(line) }),
        Happening::Progress { request_id, progress } => {
            json!({ "request_id": &**request_id, "progress": progress.progress, "total": progress.total })
        }
        Happening::Exception(what) => json!({ "text": cut(what) }),
        Happening::Called(record) => call(record),
        Happening::Missed(count) => json!({ "events": count }),
        _ => json!({}),
    };
    dressed(event.at, &event.source, event.what.as_str(), &data)
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
    dressed(SystemTime::now(), "", "catalog", &data)
}

fn dressed(at: SystemTime, source: &str, kind: &str, data: &Value) -> Value {
    let source = Some(source).filter(|it| !it.is_empty());
    json!({ "at": rfc3339(at), "source": source, "kind": kind, "data": data })
}

fn call(record: &CallRecord) -> Value {
    json!({
        "request_id": &*record.request_id,
        "thread_id": record.thread_id,
        "tool": cut(&record.tool),
        "status": record.status().as_str(),
        "duration_ms": record.took.as_secs_f64() * 1_000.0,
        "error": record.error_text().as_deref().map(cut),
    })
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}
