//! What is asked of a source beside calls of its tools: prompts and resources.

use super::{
    Telemetry, call,
    span::{Kind, Span},
};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};
use wharf_mcp::{Raw, session::MetaKey};
use wharf_runtime::{Caller, Fault, Trace};

/// What is asked, and whom.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'static str,
    /// The source, if it is known.
    pub(crate) source: Option<&'a str>,
    /// The prompt's name there.
    pub(crate) prompt: Option<&'a str>,
    /// The resource's address.
    pub(crate) uri: Option<&'a str>,
}

impl Telemetry {
    /// Asks a source something for the request that this task answers: a span of its own, which the source is told of.
    pub(crate) async fn ask(
        &self,
        asked: Asked<'_>,
        caller: Caller,
        ask: impl AsyncFnOnce(&Caller) -> Result<Raw, Arc<Fault>>,
    ) -> Result<Raw, Arc<Fault>> {
        let Some((inner, trace)) = self.0.as_ref().zip(call()) else { return ask(&caller).await };
        let (start, begun) = (SystemTime::now(), Instant::now());
        let answer = ask(&told(caller, &trace)).await;
        if trace.sampled {
            let mut span = asked.span(trace, start);
            span.took = begun.elapsed();
            answer.as_ref().err().into_iter().for_each(|fault| span.failed(fault));
            inner.take(span);
        }
        answer
    }
}

impl Asked<'_> {
    fn span(&self, trace: Trace, start: SystemTime) -> Span {
        let name = self.prompt.map_or_else(|| self.method.to_owned(), |it| format!("{} {it}", self.method));
        let mut span = Span::new(trace, name, Kind::Client, start);
        span.source = self.source.map(Into::into);
        span.says("mcp.method.name", self.method);
        self.prompt.into_iter().for_each(|it| span.says("gen_ai.prompt.name", it));
        self.uri.into_iter().for_each(|it| span.resource(it));
        self.source.into_iter().for_each(|it| span.says("wharf.source", it));
        span
    }
}

/// The caller, with our span in place of its own.
fn told(caller: Caller, trace: &Trace) -> Caller {
    let meta = caller.meta.clone().unwrap_or_else(Raw::empty_object);
    let mut meta = meta.with(MetaKey::TRACE_PARENT, &json!(trace.traceparent()).into());
    if let Some(state) = &trace.state {
        meta = meta.with(MetaKey::TRACE_STATE, &json!(&**state).into());
    }
    Caller { meta: Some(meta), ..caller }
}
