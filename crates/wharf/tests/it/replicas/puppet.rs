//! A test server behind the gateways that the test controls: it responds, is slow, or is broken. It counts its calls.

use http::{Response, StatusCode};
use hyper::{body::Incoming as Body, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinSet},
};
use wharf_mcp::{
    Raw, RpcError,
    serve::{
        About, Client, Handler, HandlerFuture, Incoming, OfferedTasks, Service, TaskStore,
        http::{HttpOptions, HttpService},
    },
};

/// A running server, stopped on drop.
pub(super) struct Puppet {
    address: String,
    pub(super) controls: Arc<Controls>,
    serving: AbortHandle,
    _tasks: JoinSet<()>,
}

/// Controls and counters of the server.
#[derive(Debug, Default)]
pub(super) struct Controls {
    pub(super) broken: AtomicBool,
    /// Number of calls so far, including failed ones.
    pub(super) calls: AtomicUsize,
    /// Number of tasks that ended before their work was done.
    pub(super) cancelled: AtomicUsize,
    tasks: TaskStore,
}

/// Counts a task that is dropped while it works.
struct CountCancelled {
    controls: Arc<Controls>,
    done: bool,
}

impl Drop for CountCancelled {
    fn drop(&mut self) {
        if !self.done {
            self.controls.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Puppet {
    pub(super) async fn start() -> Puppet {
        let controls = Arc::<Controls>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let mut tasks = JoinSet::new();
        let serving = tasks.spawn(serve(listener, controls.clone()));
        Puppet { address, controls, serving, _tasks: tasks }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the agent file of a gateway in front of it.
    pub(super) fn agent_file(&self) -> String {
        let url = self.url();
        format!(
            "tools:\n  - {{name: puppet, description: d, type: mcp, server: x, transport: http, url: '{url}'}}\n"
        )
    }

    pub(super) fn calls(&self) -> usize {
        self.controls.calls.load(Ordering::SeqCst)
    }

    pub(super) fn set_broken(&self, broken: bool) {
        self.controls.broken.store(broken, Ordering::SeqCst);
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, controls: Arc<Controls>) {
    let service = HttpService::new(Service::new(Server(controls.clone())), HttpOptions::default());
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (service, controls) = (service.clone(), controls.clone());
        let respond = service_fn(move |request: hyper::Request<Body>| {
            let (service, controls) = (service.clone(), controls.clone());
            async move {
                let mut response = service.respond(request).await;
                if controls.broken.load(Ordering::SeqCst) {
                    response = Response::default();
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                }
                Ok::<_, Infallible>(response)
            }
        });
        connections.spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await;
        });
    }
}

struct Server(Arc<Controls>);

impl Handler for Server {
    fn about(&self) -> About {
        let about = About::new("puppet", "1", json!({ "tools": {} }).into());
        About { tasks: OfferedTasks::Listed, ..about }
    }

    fn tasks(&self) -> Option<&TaskStore> {
        Some(&self.0.tasks)
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let controls = self.0.clone();
        let copy = request.clone();
        Box::pin(async move {
            match request.method.as_str() {
                "tools/list" => {
                    let tool = json!({ "name": "echo", "inputSchema": { "type": "object" } });
                    Ok(json!({ "tools": [tool] }).into())
                }
                "tools/call" => {
                    controls.calls.fetch_add(1, Ordering::SeqCst);
                    let params: Value = request.params.unwrap_or_else(Raw::empty_object).decode_or_default();
                    let arguments = &params["arguments"];
                    let millis = arguments["millis"].as_u64().unwrap_or_default();
                    if TaskStore::accepts(&copy, &client) {
                        let counted = controls.clone();
                        return controls.tasks.start(&copy, &client, move |_| async move {
                            let mut counting = CountCancelled { controls: counted, done: false };
                            tokio::time::sleep(Duration::from_millis(millis)).await;
                            counting.done = true;
                            Ok(json!({ "content": [{ "type": "text", "text": "done" }] }).into())
                        });
                    }
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                    Ok(json!({ "content": [{ "type": "text", "text": arguments.to_string() }] }).into())
                }
                unknown => Err(RpcError::method_not_found(unknown)),
            }
        })
    }
}
