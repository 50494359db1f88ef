//! An in-process MCP server behind a gateway. It records the requests it receives, and can be slow.

use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming as Body, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, runtime::Runtime, task::JoinSet, time};
use wharf_mcp::{
    News, Raw, RpcError,
    serve::{
        About, Client, Handler, HandlerFuture, Incoming, InstructionsFuture, Service,
        http::{HttpOptions, HttpService},
    },
};

/// Number of progress notifications of the tool `chatty`.
pub(super) const REPORTS: usize = 20_000;

/// A running server, stopped on drop.
pub(super) struct Upstream {
    pub(super) address: String,
    pub(super) heard: Arc<Heard>,
    service: Service<Server>,
    _runtime: Runtime,
}

/// Requests that the server received, and its controls.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) calls: AtomicUsize,
    /// Whether the tool `chatty` is unavailable.
    pub(super) silent: AtomicBool,
    /// If set, responds to every request with this status and `Retry-After`.
    busy: Mutex<Option<(u16, &'static str)>>,
    headers: Mutex<String>,
    params: Mutex<String>,
    /// Description of the tool `slow`.
    description: Mutex<Option<&'static str>>,
    /// If set, the server has instructions, a prompt and a template, each with this text.
    text: Mutex<Option<&'static str>>,
}

impl Upstream {
    pub(super) fn start() -> Upstream {
        Upstream::start_as(Heard::default())
    }

    /// Starts a server that also has instructions, a prompt and a template, each with this text.
    pub(super) fn start_describing(text: &'static str) -> Upstream {
        Upstream::start_as(Heard { text: Mutex::new(Some(text)), ..Heard::default() })
    }

    fn start_as(heard: Heard) -> Upstream {
        let heard = Arc::new(heard);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let service = Service::new(Server(heard.clone()));
        runtime.spawn(serve(listener, service.clone(), heard.clone()));
        Upstream { address, heard, service, _runtime: runtime }
    }

    /// Removes or restores the tool `chatty`, and sends a notification.
    pub(super) fn hide_chatty(&self, silent: bool) {
        self.heard.silent.store(silent, Ordering::Relaxed);
        self.service.announce(News::ToolsChanged);
    }

    /// Changes the description of the tool `slow`, and sends a notification.
    pub(super) fn describe_slow(&self, description: &'static str) {
        *self.heard.description.lock().unwrap_or_else(PoisonError::into_inner) = Some(description);
        self.service.announce(News::ToolsChanged);
    }

    /// Changes the instructions, and the descriptions of the prompt and the template.
    pub(super) fn describe_others(&self, text: &'static str) {
        *self.heard.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        self.service.announce(News::PromptsChanged);
        self.service.announce(News::ResourcesChanged);
    }

    /// Makes the server respond as busy, or normally again.
    pub(super) fn set_busy(&self, busy: Option<(u16, &'static str)>) {
        *self.heard.busy.lock().unwrap_or_else(PoisonError::into_inner) = busy;
    }

    /// Returns the agent file of a gateway in front of it.
    pub(super) fn agent_file(&self) -> String {
        let url = format!("http://{}/mcp", self.address);
        format!(
            "tools:\n  - {{name: far, description: d, type: mcp, server: x, transport: http, url: '{url}'}}\n"
        )
    }
}

impl Heard {
    /// Returns all headers of all requests.
    pub(super) fn headers(&self) -> String {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn text(&self) -> Option<&'static str> {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the parameters of all requests.
    pub(super) fn params(&self) -> String {
        self.params.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, service: Service<Server>, heard: Arc<Heard>) {
    let service = HttpService::new(service, HttpOptions::default());
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (service, heard) = (service.clone(), heard.clone());
        let respond = service_fn(move |request: hyper::Request<Body>| {
            let service = service.clone();
            let busy = *heard.busy.lock().unwrap_or_else(PoisonError::into_inner);
            async move {
                Ok::<_, Infallible>(match busy {
                    Some((status, wait)) => {
                        let response = hyper::Response::builder().status(status).header("retry-after", wait);
                        response.body(Empty::new().boxed_unsync()).expect("a response")
                    }
                    None => service.respond(request).await,
                })
            }
        });
        connections.spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await;
        });
    }
}

struct Server(Arc<Heard>);

impl Handler for Server {
    fn about(&self) -> About {
        let mut capabilities = json!({ "tools": { "listChanged": true } });
        if self.0.text().is_some() {
            capabilities["prompts"] = json!({ "listChanged": true });
            capabilities["resources"] = json!({ "listChanged": true });
        }
        About::new("upstream", "1", capabilities.into())
    }

    fn instructions(&self) -> InstructionsFuture {
        Box::pin(std::future::ready(self.0.text().map(str::to_owned)))
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let heard = self.0.clone();
        if let Some(http) = &request.http {
            let mut headers = heard.headers.lock().unwrap_or_else(PoisonError::into_inner);
            http.headers.iter().for_each(|(name, value)| *headers += &format!("{name}: {value:?}\n"));
        }
        if let Some(params) = &request.params {
            *heard.params.lock().unwrap_or_else(PoisonError::into_inner) += params.as_str();
        }
        Box::pin(async move {
            match request.method.as_str() {
                "tools/list" => Ok(tools(&heard)),
                "prompts/list" => {
                    Ok(json!({ "prompts": [{ "name": "plan", "description": heard.text() }] }).into())
                }
                "resources/list" => Ok(json!({ "resources": [] }).into()),
                "resources/templates/list" => {
                    let template =
                        json!({ "name": "a", "uriTemplate": "file:///{path}", "description": heard.text() });
                    Ok(json!({ "resourceTemplates": [template] }).into())
                }
                "tools/call" => {
                    Ok(call(&heard, &request.params.unwrap_or_else(Raw::empty_object), client).await)
                }
                unknown => Err(RpcError::method_not_found(unknown)),
            }
        })
    }
}

fn tools(heard: &Heard) -> Raw {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let mut slow = tool("slow");
    if let Some(description) = *heard.description.lock().unwrap_or_else(PoisonError::into_inner) {
        slow["description"] = json!(description);
    }
    match heard.silent.load(Ordering::Relaxed) {
        true => json!({ "tools": [slow] }).into(),
        false => json!({ "tools": [slow, tool("chatty")] }).into(),
    }
}

async fn call(heard: &Heard, params: &Raw, client: Client) -> Raw {
    let params: Value = params.decode_or_default();
    let number = heard.calls.fetch_add(1, Ordering::Relaxed) + 1;
    if params["name"] == "chatty" {
        for report in 0..REPORTS {
            client.progress(report as f64, None, None).await;
        }
    }
    time::sleep(Duration::from_millis(params["arguments"]["millis"].as_u64().unwrap_or_default())).await;
    let headers = if params["arguments"]["tell"] == true { heard.headers() } else { String::new() };
    json!({ "content": [{ "type": "text", "text": format!("call {number} {headers}").trim_end() }] }).into()
}
