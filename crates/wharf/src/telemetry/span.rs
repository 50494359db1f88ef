//! A span of a completed request or call, with the attributes of the semantic conventions for MCP.

use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use wharf_runtime::{CallRecord, Fault, FaultKind, Outcome, Trace};

/// Maximum length of an attribute, in bytes, because clients and servers control its text.
const MAX_ATTRIBUTE_BYTES: usize = 256;

/// Maximum length of an error message, in bytes.
const MAX_ERROR_BYTES: usize = 1_024;

/// A completed span.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: Trace,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) start: SystemTime,
    pub(super) duration: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// The error message, if it failed.
    pub(super) error: Option<String>,
    /// The called source; the exporter adds its attributes.
    pub(super) source: Option<Arc<str>>,
}

/// The kind of a span, with its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    /// A request of a client.
    Server = 2,
    /// A call to a source.
    Client = 3,
}

impl Span {
    pub(super) fn new(trace: Trace, name: String, kind: SpanKind, start: SystemTime) -> Span {
        let (duration, attributes) = (Duration::ZERO, Vec::new());
        Span { trace, name, kind, start, duration, attributes, error: None, source: None }
    }

    /// Builds the span of a call to a source.
    pub(super) fn for_call(record: &CallRecord, trace: Trace) -> Span {
        let tool = record.tool_name();
        let name = format!("tools/call {}", truncate(tool, MAX_ATTRIBUTE_BYTES));
        let mut span = Span::new(trace, name, SpanKind::Client, record.started);
        (span.duration, span.source) = (record.took, record.source.clone());
        record.error_text().into_iter().for_each(|it| span.set_error(&it));
        span.add("mcp.method.name", "tools/call");
        span.add("gen_ai.operation.name", "execute_tool");
        span.add("gen_ai.tool.name", tool);
        span.add("wharf.request_id", &record.request_id);
        span.add("wharf.source", record.source.as_deref().unwrap_or_default());
        match &record.outcome {
            Outcome::Answered(_) => {}
            Outcome::Refused(_) => span.add("error.type", "tool_error"),
            Outcome::Failed(fault) => span.set_fault(fault),
        }
        span
    }

    /// Marks the span as failed because of this fault.
    pub(super) fn set_fault(&mut self, fault: &Fault) {
        self.set_error(&fault.to_string());
        match &fault.rpc {
            Some(error) => self.set_rpc_error(error.code),
            None if fault.kind == FaultKind::Timeout => self.add("error.type", "timeout"),
            None => self.add("error.type", fault.kind.as_str()),
        }
    }

    /// Marks the span as failed with this message, truncated to [`MAX_ERROR_BYTES`] bytes.
    pub(super) fn set_error(&mut self, message: &str) {
        self.error = Some(truncate(message, MAX_ERROR_BYTES).to_owned());
    }

    /// Adds the URI of a resource, without query and fragment, which may contain secrets.
    pub(super) fn add_resource_uri(&mut self, uri: &str) {
        self.add("mcp.resource.uri", uri.split(['?', '#']).next().unwrap_or(uri));
    }

    /// Adds an attribute, truncated to [`MAX_ATTRIBUTE_BYTES`] bytes.
    pub(super) fn add(&mut self, name: &'static str, text: &str) {
        self.attributes.push((name, json!(truncate(text, MAX_ATTRIBUTE_BYTES))));
    }

    /// Adds the attributes of a JSON-RPC error.
    pub(super) fn set_rpc_error(&mut self, code: i64) {
        let code = code.to_string();
        self.add("error.type", &code);
        self.add("rpc.response.status_code", &code);
    }
}

/// Truncates a text at a character boundary.
fn truncate(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
