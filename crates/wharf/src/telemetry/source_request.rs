//! Spans for requests to sources other than tool calls: prompts and resources.

use super::{
    Telemetry, child_trace,
    span::{Span, SpanKind},
};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};
use wharf_mcp::{Raw, session::MetaKey};
use wharf_runtime::{Caller, Fault, Trace};

/// The request to a source, for its span.
pub(crate) struct SourceRequest<'a> {
    pub(crate) method: &'static str,
    /// The source, if known.
    pub(crate) source: Option<&'a str>,
    /// The prompt's name at the source.
    pub(crate) prompt: Option<&'a str>,
    /// The URI of the resource.
    pub(crate) uri: Option<&'a str>,
}

impl Telemetry {
    /// Sends a request to a source within a span of its own, and passes the span's context on to the source.
    pub(crate) async fn trace_request(
        &self,
        request: SourceRequest<'_>,
        caller: Caller,
        send: impl AsyncFnOnce(&Caller) -> Result<Raw, Arc<Fault>>,
    ) -> Result<Raw, Arc<Fault>> {
        let Some((sender, trace)) = self.0.as_ref().zip(child_trace()) else { return send(&caller).await };
        let (start, started) = (SystemTime::now(), Instant::now());
        let answer = send(&with_trace(caller, &trace)).await;
        if trace.sampled {
            let mut span = request.span(trace, start);
            span.duration = started.elapsed();
            answer.as_ref().err().into_iter().for_each(|fault| span.set_fault(fault));
            sender.send(span);
        }
        answer
    }
}

impl SourceRequest<'_> {
    fn span(&self, trace: Trace, start: SystemTime) -> Span {
        let name = self.prompt.map_or_else(|| self.method.to_owned(), |it| format!("{} {it}", self.method));
        let mut span = Span::new(trace, name, SpanKind::Client, start);
        span.source = self.source.map(Into::into);
        span.add("mcp.method.name", self.method);
        self.prompt.into_iter().for_each(|it| span.add("gen_ai.prompt.name", it));
        self.uri.into_iter().for_each(|it| span.add_resource_uri(it));
        self.source.into_iter().for_each(|it| span.add("wharf.source", it));
        span
    }
}

/// Replaces the caller's trace context with that of this span.
fn with_trace(caller: Caller, trace: &Trace) -> Caller {
    let meta = caller.meta.clone().unwrap_or_else(Raw::empty_object);
    let mut meta = meta.with(MetaKey::TRACE_PARENT, &json!(trace.traceparent()).into());
    if let Some(state) = &trace.state {
        meta = meta.with(MetaKey::TRACE_STATE, &json!(&**state).into());
    }
    Caller { meta: Some(meta), ..caller }
}
