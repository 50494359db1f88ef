//! A test collector that decodes what it receives, or one that never responds.

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

pub(super) struct Collector {
    pub(super) url: String,
    received: Arc<Mutex<Received>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Received {
    headers: http::HeaderMap,
    bodies: Vec<Value>,
    asked: bool,
}

/// A decoded span.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) kind: u64,
    pub(super) start: u128,
    pub(super) end: u128,
    pub(super) status: u64,
    pub(super) message: String,
    pub(super) attributes: BTreeMap<String, String>,
}

impl Collector {
    pub(super) async fn start(answers: bool) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::<Mutex<Received>>::default();
        let (mut tasks, kept) = (JoinSet::new(), received.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let received = kept.clone();
                let service = service_fn(move |request| receive(request, received.clone(), answers));
                connections.spawn(async move {
                    // An early disconnect is not an error.
                    _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Collector { url, received, _tasks: tasks }
    }

    pub(super) fn has_requests(&self) -> bool {
        self.received.lock().expect("nobody panicked").asked
    }

    /// Returns everything received, as text.
    pub(super) fn text(&self) -> String {
        self.received.lock().expect("nobody panicked").bodies.iter().map(Value::to_string).collect()
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        let received = self.received.lock().expect("nobody panicked");
        received.headers.get(name).and_then(|it| it.to_str().ok()).map(str::to_owned)
    }

    pub(super) fn resource(&self, name: &str) -> Option<String> {
        let received = self.received.lock().expect("nobody panicked");
        let resource = received.bodies.first().map(|it| attributes(&it["resourceSpans"][0]["resource"]));
        resource.and_then(|it| it.get(name).cloned())
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().expect("nobody panicked");
        let list = |it: &Value, key: &str| it[key].as_array().cloned().unwrap_or_default();
        let resources = received.bodies.iter().flat_map(|it| list(it, "resourceSpans"));
        let scopes = resources.flat_map(|it| list(&it, "scopeSpans"));
        scopes.flat_map(|it| list(&it, "spans")).map(|it| Span::read(&it)).collect()
    }
}

async fn receive(
    request: Request<Incoming>,
    received: Arc<Mutex<Received>>,
    answers: bool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    received.lock().expect("nobody panicked").asked = true;
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/json");
    if !answers {
        std::future::pending::<()>().await;
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    let mut received = received.lock().expect("nobody panicked");
    received.headers = parts.headers;
    received.bodies.push(serde_json::from_slice(&body).expect("JSON"));
    Ok(Response::new(Full::new(Bytes::from_static(b"{}"))))
}

impl Span {
    fn read(span: &Value) -> Span {
        let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| text(key).parse().expect("nanoseconds");
        let span = Span {
            trace: text("traceId"),
            id: text("spanId"),
            parent: Some(text("parentSpanId")).filter(|it| !it.is_empty()),
            name: text("name"),
            kind: span["kind"].as_u64().expect("a kind"),
            start: number("startTimeUnixNano"),
            end: number("endTimeUnixNano"),
            status: span["status"]["code"].as_u64().unwrap_or_default(),
            message: span["status"]["message"].as_str().unwrap_or_default().to_owned(),
            attributes: attributes(span),
        };
        assert!(span.trace.len() == 32 && span.id.len() == 16 && span.start <= span.end, "{span:?}");
        span
    }
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let pair = |it: &Value| {
        let value = &it["value"];
        let value = value["stringValue"].as_str().or(value["intValue"].as_str()).expect("a value");
        (it["key"].as_str().expect("a key").to_owned(), value.to_owned())
    };
    of["attributes"].as_array().into_iter().flatten().map(pair).collect()
}

/// Sends a request to the gateway and returns the JSON response.
pub(super) async fn post(address: &str, path: &str, headers: &[&str], body: &str) -> Value {
    let headers: String = headers.iter().map(|it| format!("{it}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}
