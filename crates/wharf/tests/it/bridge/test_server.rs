//! An in-process test server of one era or both. It sends questions, log messages and change notifications.

use http::Request;
use hyper::{body::Incoming as Body, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc, watch},
    task::JoinSet,
    time::sleep,
};
use wharf_mcp::{
    News, Raw, RpcError,
    serve::{
        About, Client, ClientRef, ClientTerms, Eras, Handler, HandlerFuture, Incoming, InstructionsFuture,
        LogLevel, Service,
        http::{HttpOptions, HttpService},
    },
    session::Era,
};

/// Resource that the tool `touch` changes.
pub(super) const THING: &str = "island://thing";

const FORM: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

const TOOLS: [&str; 16] = [
    "form",
    "sample",
    "both",
    "roots",
    "link",
    "speak",
    "touch",
    "whoami",
    "echo",
    "grow",
    "push",
    "rounds",
    "structured",
    "finish",
    "blocked",
    "advance",
];

/// Prefix of the resources that no list names. Each server knows one of them.
const HIDDEN: &str = "hidden://";

/// Resource that a template names but that does not exist.
const MISSING: &str = "island://secret/missing";

/// Error of an SDK when a tool sends a request in 2026-07-28.
pub(super) const NO_REQUESTS: &str =
    "server-to-client requests are not allowed on protocol 2026-07-28 or later";

/// Error of an SDK when a tool asks for input in its result in the handshake era.
const NO_ROUNDS: &str = "InputRequiredResult requires negotiated protocol version 2026-07-28 or newer";

/// A running server, stopped on drop.
pub(super) struct TestServer {
    pub(super) url: String,
    /// The service; knows which resources are subscribed.
    pub(super) service: Service<TestHandler>,
    _serving: JoinSet<()>,
}

/// Request handler of the server.
pub(super) struct TestHandler {
    eras: Eras,
    /// Lifetime of its lists, and whether they are public.
    kept: (Duration, bool),
    /// Number of calls of `grow`. Each adds a tool without a notification.
    grown: AtomicU64,
    news: mpsc::UnboundedSender<News>,
    instructions: StdMutex<Option<String>>,
    /// Resource that it has but does not list.
    hidden: StdMutex<Option<String>>,
    /// Roots of the client that reported a change last.
    roots: Arc<watch::Sender<Value>>,
    /// Questions to clients outside any call.
    asking: StdMutex<JoinSet<()>>,
}

impl TestServer {
    pub(super) async fn start(eras: Eras) -> TestServer {
        TestServer::start_with(eras, (Duration::ZERO, false)).await
    }

    pub(super) async fn start_with(eras: Eras, kept: (Duration, bool)) -> TestServer {
        let (tell, mut news) = mpsc::unbounded_channel();
        let (grown, instructions, hidden) = (AtomicU64::new(0), StdMutex::default(), StdMutex::default());
        let (roots, asking) = (Arc::default(), StdMutex::default());
        let service =
            Service::new(TestHandler { eras, kept, grown, news: tell, instructions, hidden, roots, asking });
        let (url, mut serving) = listen(service.clone()).await;
        let announcer = service.clone();
        serving.spawn(async move {
            while let Some(news) = news.recv().await {
                announcer.announce(news);
            }
        });
        TestServer { url, service, _serving: serving }
    }

    /// Adds a resource that no list names.
    pub(super) fn hide(&self, uri: &str) {
        assert!(uri.starts_with(HIDDEN));
        *self.service.handler().hidden.lock().expect("a lock") = Some(uri.to_owned());
    }

    /// Waits until the server has read the roots of the client of this name, after a change.
    pub(super) async fn wait_for_roots_of(&self, name: &str) {
        let mut roots = self.service.handler().roots.subscribe();
        roots.wait_for(|it| it["roots"][0]["name"] == name).await.expect("the server runs");
    }

    /// Sets the instructions for later sessions.
    pub(super) fn set_instructions(&self, text: &str) {
        *self.service.handler().instructions.lock().expect("a lock") = Some(text.to_owned());
    }
}

/// Serves a handler over HTTP; returns its URL and the task that serves it.
pub(super) async fn listen<H: Handler>(service: Service<H>) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let http = HttpService::new(service, HttpOptions::default());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let http = http.clone();
            let respond = service_fn(move |request: Request<Body>| {
                let http = http.clone();
                async move { Ok::<_, Infallible>(http.respond(request).await) }
            });
            connections.spawn(async move {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await;
            });
        }
    });
    (url, serving)
}

impl TestHandler {
    /// Returns whether it has this resource, if it is one that no list names.
    fn knows(&self, uri: &str) -> bool {
        !uri.starts_with(HIDDEN) || self.hidden.lock().expect("a lock").as_deref() == Some(uri)
    }
}

impl Handler for TestHandler {
    fn about(&self) -> About {
        let capabilities = json!({
            "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "logging": {}, "completions": {},
        });
        let (ttl, shared_cache) = self.kept;
        About { eras: self.eras, ttl, shared_cache, ..About::new("island", "1", capabilities.into()) }
    }

    fn instructions(&self) -> InstructionsFuture {
        Box::pin(ready(self.instructions.lock().expect("a lock").clone()))
    }

    fn watch(&self, uri: &str) -> Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>> {
        Box::pin(ready(match self.knows(uri) && !uri.starts_with("nowhere") {
            true => Ok(()),
            false => Err(no_resource(uri, Era::Legacy)),
        }))
    }

    fn notified(&self, method: &str, _params: Option<Raw>, client: &ClientRef) {
        let (client, roots) = (client.clone(), self.roots.clone());
        if method == "notifications/roots/list_changed" {
            assert!(client.offers("roots"));
            self.asking.lock().expect("a lock").spawn(async move {
                if let Ok(answer) = client.ask("roots/list", None).await {
                    roots.send_replace(answer.decode_or_default());
                }
            });
        }
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let params: Value = request.params.as_ref().map(|it| it.decode_or_default()).unwrap_or_default();
        let uri = params["uri"].as_str().or(params["ref"]["uri"].as_str()).unwrap_or_default();
        if !self.knows(uri) {
            let error = no_resource(uri, client.terms().era);
            return Box::pin(ready(Err(error)));
        }
        let news = self.news.clone();
        let calls = request.params.as_ref().and_then(|it| it.member("name"));
        if calls.is_some_and(|it| it.as_bytes() == b"\"grow\"") {
            self.grown.fetch_add(1, Ordering::Relaxed);
        }
        if request.method == "tools/list" {
            let grown = (0..self.grown.load(Ordering::Relaxed)).map(|it| format!("grown-{it}"));
            let tools: Vec<Value> = TOOLS.map(str::to_owned).into_iter().chain(grown).map(tool).collect();
            return Box::pin(async move { Ok(json!({ "tools": tools }).into()) });
        }
        Box::pin(async move { answer(&request, &client, &news).await.map(Raw::from) })
    }
}

async fn answer(
    request: &Incoming,
    client: &Client,
    news: &mpsc::UnboundedSender<News>,
) -> Result<Value, RpcError> {
    let params: Value = request.params.as_ref().map(|it| it.decode_or_default()).unwrap_or_default();
    let name = params["name"].as_str().unwrap_or_default();
    match request.method.as_str() {
        "prompts/list" => Ok(json!({ "prompts": [{ "name": "greet" }] })),
        "resources/list" => Ok(json!({ "resources": [{ "uri": THING, "name": "thing" }] })),
        "resources/templates/list" => {
            Ok(json!({ "resourceTemplates": [{ "uriTemplate": "island://secret/{id}", "name": "s" }] }))
        }
        "completion/complete" => Ok(json!({ "completion": { "values": ["done"] } })),
        "tools/call" => call(name, &params, client, news).await,
        "prompts/get" => {
            let said = asked(&[("who", FORM)], &params, client).await?;
            let text = |said: &Value| format!("Greet {}.", said["who"]["content"]["name"]);
            Ok(said.map_or_else(
                |wanted| wanted,
                |said| json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text(&said) } }] }),
            ))
        }
        "resources/read" if params["uri"] == THING => {
            Ok(json!({ "contents": [{ "uri": THING, "text": "a thing" }] }))
        }
        "resources/read" if params["uri"].as_str().is_some_and(|it| it.starts_with(HIDDEN)) => {
            Ok(json!({ "contents": [{ "uri": params["uri"], "text": "found" }] }))
        }
        "resources/read" if params["uri"] == MISSING => Err(no_resource(MISSING, client.terms().era)),
        "resources/read" => {
            let said = asked(&[("who", FORM)], &params, client).await?;
            let uri = &params["uri"];
            let text = |said: &Value| format!("for {}", said["who"]["content"]["name"]);
            Ok(said.map_or_else(
                |wanted| wanted,
                |said| json!({ "contents": [{ "uri": uri, "text": text(&said) }] }),
            ))
        }
        other => Err(RpcError::method_not_found(other)),
    }
}

async fn call(
    name: &str,
    params: &Value,
    client: &Client,
    news: &mpsc::UnboundedSender<News>,
) -> Result<Value, RpcError> {
    let questions: &[(&str, &'static str)] = match name {
        "form" => &[("who", FORM)],
        "sample" => &[("what", SAMPLE)],
        "both" => &[("who", FORM), ("what", SAMPLE)],
        "roots" => &[("where", ROOTS)],
        "link" => &[("link", FORM)],
        "push" if client.terms().era == Era::Legacy => &[("who", FORM), ("what", SAMPLE), ("where", ROOTS)],
        "rounds" if client.terms().era == Era::Modern => &[("who", FORM), ("what", SAMPLE), ("where", ROOTS)],
        _ => &[],
    };
    if !questions.is_empty() {
        let said = asked(questions, params, client).await?;
        return Ok(said.map_or_else(|wanted| wanted, |said| text(&said.to_string())));
    }
    let era = client.terms().era;
    match name {
        // Like a tool that was written for one era only.
        "push" if era == Era::Modern => return Err(RpcError::new(RpcError::INVALID_REQUEST, NO_REQUESTS)),
        "rounds" if era == Era::Legacy => return Err(RpcError::new(RpcError::INVALID_REQUEST, NO_ROUNDS)),
        "speak" => {
            for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Error] {
                client.log(level, Some("island"), json!(level.name()).into()).await;
            }
        }
        "structured" => {
            let own = json!({ "resultType": "mine", "ttlMs": 1, "cacheScope": "mine" });
            return Ok(json!({ "content": [], "structuredContent": own }));
        }
        // The user of an earlier `link` has finished, with or without an error that asks for it.
        "finish" => {
            let params = json!({ "elicitationId": params["arguments"]["id"] });
            client.notify("notifications/elicitation/complete", Some(params.into())).await;
        }
        "blocked" => {
            let link =
                json!({ "mode": "url", "message": "?", "url": "https://example.com/", "elicitationId": "2" });
            let data = json!({ "elicitations": [link] });
            let error = RpcError::new(-32042, "open a URL first");
            return Err(RpcError { data: Some(data.into()), ..error });
        }
        // Progress without a token.
        "advance" => {
            client.notify("notifications/progress", Some(json!({ "progress": 1, "total": 2 }).into())).await;
        }
        "touch" => drop(news.send(News::ResourceUpdated(THING.to_owned()))),
        "whoami" => {
            let meta: Value = client.meta().map(|it| it.decode_or_default()).unwrap_or_default();
            let ClientTerms { version, capabilities, .. } = client.terms();
            let capabilities: Value = capabilities.decode_or_default();
            let seen = json!({ "version": version, "meta": meta, "capabilities": capabilities });
            return Ok(text(&seen.to_string()));
        }
        _ => {
            sleep(Duration::from_millis(params["arguments"]["wait"].as_u64().unwrap_or_default())).await;
            return Ok(text(&params["arguments"]["nonce"].to_string()));
        }
    }
    Ok(text(name))
}

/// Asks the client these questions. The inner `Err` is the result that requests the input, where the era has no
/// other way.
async fn asked(
    questions: &[(&str, &'static str)],
    params: &Value,
    client: &Client,
) -> Result<Result<Value, Value>, RpcError> {
    let mut wanted = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    if questions.iter().any(|(key, _)| *key == "link") {
        wanted =
            json!({ "mode": "url", "message": "?", "url": "https://example.com/", "elicitationId": "1" });
    }
    if client.terms().era == Era::Legacy {
        let said = Arc::new(Mutex::new(json!({})));
        let mut asking = JoinSet::new();
        for (key, method) in questions {
            let (client, said, wanted, key) =
                (client.clone(), said.clone(), wanted.clone(), (*key).to_owned());
            let method = *method;
            asking.spawn(async move {
                let answer = client.ask(method, Some(wanted.into())).await?;
                said.lock().await[key] = answer.decode_or_default();
                Ok::<(), RpcError>(())
            });
        }
        for asked in asking.join_all().await {
            asked?;
        }
        return Ok(Ok(said.lock().await.clone()));
    }
    let given = &params["inputResponses"];
    if questions.iter().all(|(key, _)| given[*key].is_object()) {
        return match params["requestState"] == "of the island" {
            true => Ok(Ok(given.clone())),
            false => Err(RpcError::new(RpcError::INVALID_PARAMS, "the state is not mine")),
        };
    }
    let asks: Value =
        questions.iter().map(|(key, it)| (*key, json!({ "method": it, "params": wanted }))).collect();
    Ok(Err(json!({ "resultType": "input_required", "inputRequests": asks, "requestState": "of the island" })))
}

/// Returns the error for an unknown resource, with the code of the era.
fn no_resource(uri: &str, era: Era) -> RpcError {
    let code = if era == Era::Modern { RpcError::INVALID_PARAMS } else { -32002 };
    RpcError { data: Some(json!({ "uri": uri }).into()), ..RpcError::new(code, "no such resource") }
}

fn tool(name: String) -> Value {
    let mut schema = json!({ "type": "object" });
    if name == "echo" {
        let city = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        schema["properties"] = json!({ "wait": { "type": "integer" }, "place": city });
    }
    json!({ "name": name, "inputSchema": schema })
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
