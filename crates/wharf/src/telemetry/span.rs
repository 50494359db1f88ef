//! A span of a completed request or call, with the attributes of the semantic conventions for MCP.

use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use wharf_runtime::{CallRecord, Fault, FaultKind, Outcome, Trace};

/// Maximum length of an attribute, in bytes, because clients and servers control its text.
const LONGEST: usize = 256;

/// Maximum length of an error message, in bytes.
const LONGEST_ERROR: usize = 1_024;

#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: Trace,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start: SystemTime,
    pub(super) took: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// The error message, if it failed.
    pub(super) error: Option<String>,
    /// The called source; the exporter adds its attributes.
    pub(super) source: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request of a client.
    Server = 2,
    /// A call to a source.
    Client = 3,
}

impl Span {
    pub(super) fn new(trace: Trace, name: String, kind: Kind, start: SystemTime) -> Span {
        let (took, attributes) = (Duration::ZERO, Vec::new());
        Span { trace, name, kind, start, took, attributes, error: None, source: None }
    }

    /// Builds the span of a call to a source.
    pub(super) fn of_call(record: &CallRecord, trace: Trace) -> Span {
        let tool = record.wire_name.as_ref().unwrap_or(&record.tool);
        let name = format!("tools/call {}", cut(tool, LONGEST));
        let mut span = Span::new(trace, name, Kind::Client, record.started);
        (span.took, span.source) = (record.took, record.source.clone());
        span.error = record.error_text().map(|it| cut(&it, LONGEST_ERROR).to_owned());
        span.says("mcp.method.name", "tools/call");
        span.says("gen_ai.operation.name", "execute_tool");
        span.says("gen_ai.tool.name", tool);
        span.says("wharf.request_id", &record.request_id);
        span.says("wharf.source", record.source.as_deref().unwrap_or_default());
        match &record.outcome {
            Outcome::Answered(_) => {}
            Outcome::Refused(_) => span.says("error.type", "tool_error"),
            Outcome::Failed(fault) => span.failed(fault),
        }
        span
    }

    /// Marks the span as failed.
    pub(super) fn failed(&mut self, fault: &Fault) {
        self.error = Some(cut(&fault.to_string(), LONGEST_ERROR).to_owned());
        match &fault.rpc {
            Some(error) => self.failed_with(error.code),
            None if fault.kind == FaultKind::Timeout => self.says("error.type", "timeout"),
            None => self.says("error.type", fault.kind.as_str()),
        }
    }

    /// Sets the URI of a resource, without query and fragment, which may contain secrets.
    pub(super) fn resource(&mut self, uri: &str) {
        self.says("mcp.resource.uri", uri.split(['?', '#']).next().unwrap_or(uri));
    }

    /// Adds an attribute, truncated to [`LONGEST`] bytes.
    pub(super) fn says(&mut self, name: &'static str, text: &str) {
        self.attributes.push((name, json!(cut(text, LONGEST))));
    }

    /// Adds a numeric attribute.
    pub(super) fn counts(&mut self, name: &'static str, number: i64) {
        self.attributes.push((name, json!(number)));
    }

    /// Adds the attributes of a JSON-RPC error.
    pub(super) fn failed_with(&mut self, code: i64) {
        let code = code.to_string();
        self.says("error.type", &code);
        self.says("rpc.response.status_code", &code);
    }
}

/// Truncates a text at a character boundary.
pub(super) fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}
