//! A remote test source that records the trace context it receives.

use super::SECRET;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, task::JoinSet};
use wharf_mcp::{
    Raw, RpcError,
    serve::{
        About, Client, Handler, HandlerFuture, Incoming, Service,
        http::{HttpOptions, HttpService},
    },
};

pub(super) struct FakeSource {
    pub(super) url: String,
    calls: Calls,
    _tasks: JoinSet<()>,
}

type Calls = Arc<Mutex<Vec<(String, ReceivedTrace)>>>;

/// Trace context of one call.
#[derive(Clone, Debug)]
pub(super) struct ReceivedTrace {
    pub(super) meta: Value,
    /// The HTTP header.
    pub(super) header: Option<String>,
}

struct Tools(Calls);

impl FakeSource {
    pub(super) async fn start() -> FakeSource {
        let calls = Calls::default();
        let http = HttpService::new(Service::new(Tools(calls.clone())), HttpOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let http = http.clone();
                let service = service_fn(move |request| {
                    let http = http.clone();
                    async move { Ok::<_, Infallible>(http.respond(request).await) }
                });
                connections.spawn(async move {
                    _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        FakeSource { url, calls, _tasks: tasks }
    }

    pub(super) fn all_received(&self, tool: &str) -> Vec<ReceivedTrace> {
        let calls = self.calls.lock().expect("nobody panicked");
        calls.iter().filter(|(name, _)| name == tool).map(|(_, received)| received.clone()).collect()
    }

    pub(super) fn received(&self, tool: &str) -> ReceivedTrace {
        let all = self.all_received(tool);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }
}

impl ReceivedTrace {
    pub(super) fn is_sampled(&self) -> bool {
        self.meta["traceparent"].as_str().expect("a parent").ends_with("-01")
    }
}

impl Handler for Tools {
    fn about(&self) -> About {
        About::new("far", "1", json!({ "tools": {}, "prompts": {}, "resources": {} }).into())
    }

    fn handle(&self, request: Incoming, _client: Client) -> HandlerFuture {
        let calls = self.0.clone();
        Box::pin(async move { answer(&calls, &request) })
    }
}

fn list(method: &str) -> Option<Value> {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    Some(match method {
        "tools/list" => json!({ "tools": [tool("echo"), tool("refuse"), tool("break")] }),
        "prompts/list" => json!({ "prompts": [{ "name": "greet" }] }),
        "resources/list" => json!({ "resources": [{ "name": "one", "uri": "far://one?key=hunter4" }] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        _ => return None,
    })
}

fn answer(calls: &Calls, request: &Incoming) -> Result<Raw, RpcError> {
    if let Some(list) = list(&request.method) {
        return Ok(list.into());
    }
    let params: Value = request.params.as_ref().map(Raw::decode_or_default).unwrap_or_default();
    let header = request.http.as_ref().and_then(|it| it.headers.get("traceparent")?.to_str().ok());
    let received = ReceivedTrace { meta: params["_meta"].clone(), header: header.map(str::to_owned) };
    let tool = params["name"].as_str().filter(|_| request.method == "tools/call");
    let name = tool.unwrap_or(&request.method).to_owned();
    calls.lock().expect("nobody panicked").push((name.clone(), received));
    let text = |text: String, is_error: bool| {
        Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }).into())
    };
    match name.as_str() {
        "echo" => text("heard".to_owned(), false),
        "prompts/get" => Ok(json!({ "messages": [] }).into()),
        "resources/read" => Ok(json!({ "contents": [{ "uri": params["uri"], "text": "one" }] }).into()),
        "refuse" => text(format!("no, and {SECRET}"), true),
        _ => Err(RpcError::new(-32050, "it is broken")),
    }
}
