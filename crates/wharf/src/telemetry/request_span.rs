//! The span of a client's request, from its arrival to its response. A request that is cancelled is recorded too.

use super::{
    CURRENT_TRACE, SpanSender, Telemetry,
    span::{Span, SpanKind},
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
const MAX_TRACESTATE_BYTES: usize = 512;

/// The span of a request in progress.
pub(crate) struct RequestSpan {
    sender: Arc<SpanSender>,
    started: Instant,
    /// The span until the request ends; `None` if it is not sampled.
    span: Option<Span>,
    trace: Trace,
    /// Name of the requested tool or prompt.
    target: Option<String>,
}

impl Telemetry {
    /// Starts the span of an MCP request.
    pub(crate) fn start_mcp(&self, request: &Incoming, client: &Client) -> Option<RequestSpan> {
        let sender = self.0.as_ref()?;
        let headers = request.http.as_ref().map(|it| &it.headers);
        let in_meta = client.meta().and_then(from_meta);
        let caller = in_meta.or_else(|| headers.and_then(from_headers));
        let text = |member: &Option<Raw>| member.as_ref().and_then(|it| it.decode::<String>().ok());
        let target = match request.method.as_str() {
            "tools/call" | "prompts/get" => text(&request.members.name),
            _ => None,
        };
        let mut request_span = RequestSpan::start(sender, caller, request.method.clone());
        if let Some(span) = &mut request_span.span {
            add_attributes(span, request, client, target.as_deref(), text(&request.members.uri).as_deref());
        }
        request_span.target = target;
        Some(request_span)
    }

    /// Starts the span of a call over REST.
    pub(crate) fn start_rest(&self, headers: &HeaderMap, tool: &str) -> Option<RequestSpan> {
        let sender = self.0.as_ref()?;
        let route = "/api/v1/tools/{tool_id}/call";
        let mut request_span = RequestSpan::start(sender, from_headers(headers), format!("POST {route}"));
        if let Some(span) = &mut request_span.span {
            span.add("http.request.method", "POST");
            span.add("http.route", route);
            span.add("gen_ai.tool.name", tool);
            span.add("network.transport", "tcp");
        }
        Some(request_span)
    }
}

impl RequestSpan {
    fn start(sender: &Arc<SpanSender>, caller: Option<Trace>, name: String) -> RequestSpan {
        let trace = sender.start_trace(caller);
        let span = || Span::new(trace.clone(), name, SpanKind::Server, SystemTime::now());
        let span = trace.sampled.then(span);
        RequestSpan { sender: sender.clone(), started: Instant::now(), span, trace, target: None }
    }

    /// Handles an MCP request and records its result. `is_known` tells whether the tool or prompt exists: a client
    /// can send any name, so an unknown one does not become part of the span's name.
    pub(crate) async fn run_mcp(
        mut self,
        work: impl Future<Output = Result<Raw, RpcError>>,
        is_known: impl FnOnce(&str) -> bool,
    ) -> Result<Raw, RpcError> {
        let outcome = CURRENT_TRACE.scope(self.trace.clone(), work).await;
        let target = self.target.take();
        self.finish(|span| {
            if let Some(target) = target.filter(|it| is_known(it)) {
                span.name = format!("{} {target}", span.name);
            }
            set_outcome(span, &outcome);
        });
        outcome
    }

    /// Handles a REST request and records its status. Only a 5xx status marks the span as failed.
    pub(crate) async fn run_rest<T>(
        mut self,
        work: impl Future<Output = T>,
        status: impl FnOnce(&T) -> StatusCode,
    ) -> T {
        let answer = CURRENT_TRACE.scope(self.trace.clone(), work).await;
        let status = status(&answer);
        self.finish(|span| {
            span.attributes.push(("http.response.status_code", status.as_u16().into()));
            if status.is_server_error() {
                span.add("error.type", status.as_str());
                span.set_error("");
            }
        });
        answer
    }

    fn finish(&mut self, describe: impl FnOnce(&mut Span)) {
        if let Some(mut span) = self.span.take() {
            span.duration = self.started.elapsed();
            describe(&mut span);
            self.sender.send(span);
        }
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        self.finish(|span| {
            span.add("error.type", "cancelled");
            span.set_error("the client disconnected before the response");
        });
    }
}

fn set_outcome(span: &mut Span, outcome: &Result<Raw, RpcError>) {
    match outcome {
        Err(error) => {
            span.set_rpc_error(error.code);
            span.set_error(&error.message);
        }
        Ok(result) if result.member("isError").is_some_and(|it| it.as_bytes() == b"true") => {
            span.add("error.type", "tool_error");
            span.set_error("");
        }
        Ok(_) => {}
    }
}

fn add_attributes(
    span: &mut Span,
    request: &Incoming,
    client: &Client,
    target: Option<&str>,
    uri: Option<&str>,
) {
    span.add("mcp.method.name", &request.method);
    span.add("mcp.protocol.version", &client.terms().version);
    let id = client.request_id();
    let id: String = id.decode().unwrap_or_else(|_| id.as_str().to_owned());
    span.add("jsonrpc.request.id", &id);
    match (request.method.as_str(), target) {
        ("tools/call", Some(tool)) => {
            span.add("gen_ai.operation.name", "execute_tool");
            span.add("gen_ai.tool.name", tool);
        }
        ("prompts/get", Some(prompt)) => span.add("gen_ai.prompt.name", prompt),
        _ => {}
    }
    uri.into_iter().for_each(|it| span.add_resource_uri(it));
    match &request.http {
        None => span.add("network.transport", "pipe"),
        Some(parts) => {
            let protocol = if parts.uri.path() == "/ws" { "websocket" } else { "http" };
            span.add("network.transport", "tcp");
            span.add("network.protocol.name", protocol);
            let session = parts.headers.get("mcp-session-id").and_then(|it| it.to_str().ok());
            session.into_iter().for_each(|it| span.add("mcp.session.id", it));
        }
    }
}

fn from_meta(meta: &Raw) -> Option<Trace> {
    let text = |name: &str| meta.member(name)?.decode::<String>().ok();
    parse_parent(&text(MetaKey::TRACE_PARENT)?, text(MetaKey::TRACE_STATE).as_deref())
}

fn from_headers(headers: &HeaderMap) -> Option<Trace> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    parse_parent(text(MetaKey::TRACE_PARENT)?, text(MetaKey::TRACE_STATE))
}

fn parse_parent(traceparent: &str, state: Option<&str>) -> Option<Trace> {
    let state = state.filter(|it| it.len() <= MAX_TRACESTATE_BYTES);
    Some(Trace { state: state.map(Into::into), ..Trace::parse(traceparent)? })
}
