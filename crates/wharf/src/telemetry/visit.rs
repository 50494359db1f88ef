//! The span of a client's request, from its arrival to its response. A request that is cancelled is recorded too.

use super::{
    CURRENT, Inner, Telemetry,
    span::{Kind, Span, cut},
};
use http::{HeaderMap, StatusCode};
use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};
use wharf_mcp::{
    Raw, RpcError,
    serve::{Client, Incoming},
    session::MetaKey,
};
use wharf_runtime::Trace;

/// Maximum length of `tracestate`, in bytes.
const LONGEST_STATE: usize = 512;

/// A request in progress.
pub(crate) struct Visit {
    inner: Arc<Inner>,
    begun: Instant,
    /// The span until the request ends; `None` if it is not sampled.
    span: Option<Span>,
    trace: Trace,
    /// Name of the requested tool or prompt.
    target: Option<String>,
}

impl Telemetry {
    /// Starts the span of an MCP request.
    pub(crate) fn over_mcp(&self, request: &Incoming, client: &Client) -> Option<Visit> {
        let inner = self.0.as_ref()?;
        let params = request.params.as_ref();
        let headers = request.http.as_ref().map(|it| &it.headers);
        let in_meta = params.and_then(|it| it.member("_meta")).and_then(|it| from_meta(&it));
        let caller = in_meta.or_else(|| headers.and_then(from_headers));
        let text = |key: &str| params.and_then(|it| it.member(key)?.decode::<String>().ok());
        let target = match request.method.as_str() {
            "tools/call" | "prompts/get" => text("name"),
            _ => None,
        };
        let mut visit = Visit::begin(inner, caller, request.method.clone());
        if let Some(span) = &mut visit.span {
            describe(span, request, client, target.as_deref(), text("uri").as_deref());
        }
        visit.target = target;
        Some(visit)
    }

    /// Starts the span of a call over REST.
    pub(crate) fn over_rest(&self, headers: &HeaderMap, tool: &str) -> Option<Visit> {
        let inner = self.0.as_ref()?;
        let route = "/api/v1/tools/{tool_id}/call";
        let mut visit = Visit::begin(inner, from_headers(headers), format!("POST {route}"));
        if let Some(span) = &mut visit.span {
            span.says("http.request.method", "POST");
            span.says("http.route", route);
            span.says("gen_ai.tool.name", tool);
            span.says("network.transport", "tcp");
        }
        Some(visit)
    }
}

impl Visit {
    fn begin(inner: &Arc<Inner>, caller: Option<Trace>, name: String) -> Visit {
        let trace = inner.begin(caller);
        let span = || Span::new(trace.clone(), name, Kind::Server, SystemTime::now());
        let span = trace.sampled.then(span);
        Visit { inner: inner.clone(), begun: Instant::now(), span, trace, target: None }
    }

    /// Handles an MCP request and records its result. `is_known` tells whether the tool or prompt exists: a client
    /// can send any name, so an unknown one does not become part of the span's name.
    pub(crate) async fn mcp(
        mut self,
        work: impl Future<Output = Result<Raw, RpcError>>,
        is_known: impl FnOnce(&str) -> bool,
    ) -> Result<Raw, RpcError> {
        let outcome = CURRENT.scope(self.trace.clone(), work).await;
        let target = self.target.take();
        self.over(|span| {
            if let Some(target) = target.filter(|it| is_known(it)) {
                span.name = format!("{} {target}", span.name);
            }
            settle(span, &outcome);
        });
        outcome
    }

    /// Handles a REST request and records its status. Only a 5xx status marks the span as failed.
    pub(crate) async fn rest<T>(
        mut self,
        work: impl Future<Output = T>,
        status: impl FnOnce(&T) -> StatusCode,
    ) -> T {
        let answer = CURRENT.scope(self.trace.clone(), work).await;
        let status = status(&answer);
        self.over(|span| {
            span.counts("http.response.status_code", status.as_u16().into());
            if status.is_server_error() {
                span.says("error.type", status.as_str());
                span.error = Some(String::new());
            }
        });
        answer
    }

    fn over(&mut self, describe: impl FnOnce(&mut Span)) {
        if let Some(mut span) = self.span.take() {
            span.took = self.begun.elapsed();
            describe(&mut span);
            self.inner.take(span);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.over(|span| {
            span.says("error.type", "cancelled");
            span.error = Some("the client left before there was an answer".to_owned());
        });
    }
}

fn settle(span: &mut Span, outcome: &Result<Raw, RpcError>) {
    match outcome {
        Err(error) => {
            span.failed_with(error.code);
            span.error = Some(error.message.to_string());
        }
        Ok(result) if result.member("isError").is_some_and(|it| it.as_bytes() == b"true") => {
            span.says("error.type", "tool_error");
            span.error = Some(String::new());
        }
        Ok(_) => {}
    }
}

fn describe(span: &mut Span, request: &Incoming, client: &Client, target: Option<&str>, uri: Option<&str>) {
    span.says("mcp.method.name", &request.method);
    span.says("mcp.protocol.version", &client.terms().version);
    let id = client.request_id();
    let id: String = id.decode().unwrap_or_else(|_| id.as_str().to_owned());
    span.says("jsonrpc.request.id", &id);
    match (request.method.as_str(), target) {
        ("tools/call", Some(tool)) => {
            span.says("gen_ai.operation.name", "execute_tool");
            span.says("gen_ai.tool.name", tool);
        }
        ("prompts/get", Some(prompt)) => span.says("gen_ai.prompt.name", prompt),
        _ => {}
    }
    uri.into_iter().for_each(|it| span.resource(it));
    match &request.http {
        None => span.says("network.transport", "pipe"),
        Some(parts) => {
            let protocol = if parts.uri.path() == "/ws" { "websocket" } else { "http" };
            span.says("network.transport", "tcp");
            span.says("network.protocol.name", protocol);
            let session = parts.headers.get("mcp-session-id").and_then(|it| it.to_str().ok());
            session.into_iter().for_each(|it| span.says("mcp.session.id", it));
        }
    }
}

fn from_meta(meta: &Raw) -> Option<Trace> {
    let text = |name: &str| meta.member(name)?.decode::<String>().ok();
    parent(&text(MetaKey::TRACE_PARENT)?, text(MetaKey::TRACE_STATE).as_deref())
}

fn from_headers(headers: &HeaderMap) -> Option<Trace> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    parent(text(MetaKey::TRACE_PARENT)?, text(MetaKey::TRACE_STATE))
}

fn parent(traceparent: &str, state: Option<&str>) -> Option<Trace> {
    let state = state.filter(|it| it.len() <= LONGEST_STATE && cut(it, LONGEST_STATE) == *it);
    Some(Trace { state: state.map(Into::into), ..Trace::parse(traceparent)? })
}
