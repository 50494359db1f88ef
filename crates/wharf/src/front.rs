//! The gateway's address: MCP over every transport, REST, and what operators look at, on one port.
//!
//! Every request passes the same steps: is this us it speaks to, who is it, which door. What goes wrong on the way is a
//! problem document.

mod keys;
mod problem;
mod rest;
mod websocket;

use crate::{
    door::{self, accept, over_http},
    exit::Exit,
    gateway::{Gateway, announce},
    journal::Journal,
};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
pub(crate) use keys::{Key, make_or_read};
use problem::Problem;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{net::TcpListener, sync::watch};
use wharf_mcp::serve::{
    Service,
    http::{Body, Guard, HttpOptions, HttpService, SseService},
};
use wharf_runtime::Handle;

/// Everything that can be reached.
#[derive(Clone)]
pub(crate) struct Front {
    shared: Arc<Shared>,
}

struct Shared {
    handle: Handle,
    journal: Journal,
    service: Service<Gateway>,
    mcp: HttpService<Gateway>,
    sse: SseService<Gateway>,
    guard: Guard,
    /// What has to be shown to come in, unless everybody may.
    key: Option<Key>,
    draining: watch::Receiver<bool>,
}

impl Front {
    /// What is served at this listener.
    pub(crate) fn new(
        handle: Handle,
        journal: Journal,
        listener: &TcpListener,
        key: Option<Key>,
        draining: watch::Receiver<bool>,
    ) -> Front {
        let service = Service::new(Gateway::new(handle.clone(), Some(journal.clone())));
        let guard = door::guard(listener);
        let options = HttpOptions { guard: guard.clone(), ..HttpOptions::default() };
        let mcp = HttpService::new(service.clone(), options.clone());
        let sse = SseService::new(service.clone(), options, "/messages");
        Front { shared: Arc::new(Shared { handle, journal, service, mcp, sse, guard, key, draining }) }
    }

    /// Serves everybody who comes, until it is time to leave.
    pub(crate) async fn serve(self, listener: TcpListener, leave: impl Future<Output = Exit>) -> Exit {
        let announcing = announce(self.shared.service.clone(), self.shared.handle.clone());
        let following = self.shared.journal.clone().follow(self.shared.handle.clone());
        let front = self.clone();
        let serving = accept(listener, leave, move |stream, leaving| {
            let front = front.clone();
            over_http(stream, leaving, move |request| front.clone().respond(request))
        });
        tokio::select! {
            exit = serving => exit,
            () = announcing => Exit::OurBug,
            () = following => Exit::OurBug,
        }
    }

    async fn respond(self, request: Request<Incoming>) -> Response<Body> {
        let mut response = match self.admit(&request) {
            Ok(()) => self.route(request).await,
            Err(problem) => problem.into(),
        };
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    /// Whether this request speaks to us, and may.
    fn admit(&self, request: &Request<Incoming>) -> Result<(), Problem> {
        let headers = request.headers();
        if headers.get_all(header::HOST).iter().count() != 1 {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "a request names exactly one host"));
        }
        self.shared.guard.admit(headers).map_err(|why| Problem::new(StatusCode::FORBIDDEN, why))?;
        if matches!(request.uri().path(), "/health" | "/ready") {
            return Ok(());
        }
        self.shared.key.as_ref().map_or(Ok(()), |key| key.admit(headers))
    }

    async fn route(&self, request: Request<Incoming>) -> Response<Body> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        match (&method, path.as_str()) {
            (_, "/mcp") => self.shared.mcp.respond(request).await,
            (_, "/sse" | "/messages") => self.shared.sse.respond(request).await,
            (&Method::GET, "/ws") => websocket::upgrade(request, self.shared.service.clone()),
            (&Method::GET, "/health") => json_response(StatusCode::OK, &json!({ "status": "ok" })),
            (&Method::GET, "/ready") => self.ready(),
            (&Method::GET, "/metrics") => {
                let text = self.shared.journal.metrics().text(&self.shared.handle);
                document(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
            }
            (_, "/health" | "/ready" | "/ws" | "/metrics") => Problem::not_allowed("GET").into(),
            (_, path) if path.starts_with("/api/v1/") => {
                rest::respond(&self.shared.handle, &self.shared.journal, request)
                    .await
                    .unwrap_or_else(Response::from)
            }
            _ => Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at `{path}`")).into(),
        }
    }

    /// Whether new work is welcome. Says nothing about what there is.
    fn ready(&self) -> Response<Body> {
        match *self.shared.draining.borrow() {
            false => json_response(StatusCode::OK, &json!({ "status": "ready" })),
            true => json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "draining" })),
        }
    }
}

/// A JSON document.
fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    document(status, "application/json", value.to_string())
}

fn document(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
