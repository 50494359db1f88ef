//! Encodes spans as OTLP/JSON: nanoseconds as strings, ids as hexadecimal, enumerations as numbers.

use super::span::Span;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use wharf_runtime::trace::to_hex;

/// The status code of a failed span.
const ERROR: u8 = 2;

/// The body of an export request.
pub(super) fn request(resource: &[(String, String)], spans: &[Span]) -> Value {
    let resource: Vec<Value> = resource.iter().map(|(name, it)| attribute(name, &json!(it))).collect();
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let scope = json!({ "name": "wharf", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] })
}

fn span(span: &Span) -> Value {
    let mut written = json!({
        "traceId": to_hex(&span.trace.id),
        "spanId": to_hex(&span.trace.span),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.start + span.duration),
        "attributes": span.attributes.iter().map(|(name, it)| attribute(name, it)).collect::<Vec<_>>(),
    });
    if let Some(parent) = &span.trace.parent {
        written["parentSpanId"] = json!(to_hex(parent));
    }
    if let Some(state) = &span.trace.state {
        written["traceState"] = json!(&**state);
    }
    if let Some(error) = &span.error {
        written["status"] = json!({ "code": ERROR, "message": error });
    }
    written
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::Number(it) => json!({ "intValue": it.to_string() }),
        Value::String(it) => json!({ "stringValue": it }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": name, "value": value })
}

fn nanoseconds(at: SystemTime) -> String {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
