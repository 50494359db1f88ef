//! One span: what is known of a request or a call when it is over, in the words of the conventions for MCP.

use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use wharf_runtime::{CallRecord, FaultKind, Outcome, Trace};

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
    /// A call to a source.
    pub(super) fn of_call(record: &CallRecord, trace: Trace) -> Span {
        let tool = record.wire_name.as_ref().unwrap_or(&record.tool);
        let mut span = Span {
            trace,
            name: format!("tools/call {}", cut(tool, LONGEST)),
            kind: Kind::Client,
            start: record.started,
            took: record.took,
            attributes: Vec::new(),
            error: record.error_text().map(|it| cut(&it, LONGEST_ERROR).to_owned()),
            source: record.source.clone(),
        };
        span.says("mcp.method.name", "tools/call");
        span.says("gen_ai.operation.name", "execute_tool");
        span.says("gen_ai.tool.name", tool);
        span.says("wharf.request_id", &record.request_id);
        span.says("wharf.source", record.source.as_deref().unwrap_or_default());
        match &record.outcome {
            Outcome::Answered(_) => {}
            Outcome::Refused(_) => span.says("error.type", "tool_error"),
            Outcome::Failed(fault) => match &fault.rpc {
                Some(error) => span.failed_with(error.code),
                None if fault.kind == FaultKind::Timeout => span.says("error.type", "timeout"),
                None => span.says("error.type", fault.kind.as_str()),
            },
        }
        span
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
