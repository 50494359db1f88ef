//! One span: what is known of a request or a call when it is over, in the words of the conventions for MCP.

use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use wharf_runtime::{CallRecord, Fault, FaultKind, Outcome, Trace};

/// The longest text that a stranger may put into a span.
const LONGEST: usize = 256;

/// The longest account of an error.
const LONGEST_ERROR: usize = 1_024;

#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: Trace,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start: SystemTime,
    pub(super) took: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// What went wrong, if something did.
    pub(super) error: Option<String>,
    /// The source that was called, of which more may be known.
    pub(super) source: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request at our door.
    Server = 2,
    /// A call that we make.
    Client = 3,
}

impl Span {
    pub(super) fn new(trace: Trace, name: String, kind: Kind, start: SystemTime) -> Span {
        let (took, attributes) = (Duration::ZERO, Vec::new());
        Span { trace, name, kind, start, took, attributes, error: None, source: None }
    }

    /// A call to a source.
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

    /// With what went wrong.
    pub(super) fn failed(&mut self, fault: &Fault) {
        self.error = Some(cut(&fault.to_string(), LONGEST_ERROR).to_owned());
        match &fault.rpc {
            Some(error) => self.failed_with(error.code),
            None if fault.kind == FaultKind::Timeout => self.says("error.type", "timeout"),
            None => self.says("error.type", fault.kind.as_str()),
        }
    }

    /// With the address of a resource, without what may be a key in it.
    pub(super) fn resource(&mut self, uri: &str) {
        self.says("mcp.resource.uri", uri.split(['?', '#']).next().unwrap_or(uri));
    }

    /// With this attribute, not too long.
    pub(super) fn says(&mut self, name: &'static str, text: &str) {
        self.attributes.push((name, json!(cut(text, LONGEST))));
    }

    /// With this number.
    pub(super) fn counts(&mut self, name: &'static str, number: i64) {
        self.attributes.push((name, json!(number)));
    }

    /// With this error of JSON-RPC.
    pub(super) fn failed_with(&mut self, code: i64) {
        let code = code.to_string();
        self.says("error.type", &code);
        self.says("rpc.response.status_code", &code);
    }
}

/// The beginning of a text, in whole characters.
pub(super) fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}
