//! Serves MCP over streamable HTTP, both eras at one URL.
//!
//! [`HttpService::respond`] maps a request to a response, so any HTTP server can mount it. A response is plain JSON
//! unless the handler sends a message before its result, or the client prefers a stream; then it is an SSE stream. The handler runs inside the
//! response body. A disconnect drops it, except on the resumable streams of handshake-era sessions. This module does
//! not listen on sockets and does not authenticate.

mod batch;
mod body_parts;
mod guard;
mod legacy;
mod modern;
mod notification_stream;
mod replay_buffer;
mod response;
mod resumable_stream;
mod session_store;
mod sessions;
mod sse;

use super::{RequestParams, Service};
use crate::{
    Message, Raw, RpcError,
    envelope::{self, ParsedFrame},
    http::headers,
    session::MODERN,
};
use ::http::{Method, Request, Response, StatusCode, request::Parts};
use bytes::Bytes;
pub use guard::{Guard, is_json};
use http_body_util::{BodyExt, Limited};
pub use response::Body;
pub use session_store::{SessionStore, StoreFuture, StoreUnavailable, StoredSession};
pub use sessions::Owner;
use sessions::Sessions;
pub(super) use sessions::random_id;
pub use sse::SseService;
use std::{error::Error, pin::Pin, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits, host policy and session store of an HTTP service.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Maximum size of a request body, in bytes.
    pub body_limit: usize,
    /// Allowed hosts and origins.
    pub guard: Guard,
    /// Maximum number of open handshake-era sessions.
    pub session_limit: usize,
    /// Maximum number of open notification streams: GET streams and `subscriptions/listen` requests.
    pub stream_limit: usize,
    /// Idle time after which a session may be evicted to make room for a new one.
    pub session_idle: Duration,
    /// Session store shared with other replicas. Without one, a session exists only in this process.
    pub session_store: Option<Arc<dyn SessionStore>>,
}

/// A pending response to an HTTP request.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

/// Serves a handler over streamable HTTP. Cheap to clone.
pub struct HttpService {
    service: Service,
    options: Arc<HttpOptions>,
    sessions: Arc<Sessions>,
    /// Permits for open notification streams.
    streams: Arc<Semaphore>,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            body_limit: 4 << 20,
            guard: Guard::default(),
            session_limit: 10_000,
            stream_limit: 2_000,
            session_idle: Duration::from_secs(30 * 60),
            session_store: None,
        }
    }
}

impl HttpService {
    /// Creates a service with these options.
    pub fn new(service: impl Into<Service>, options: HttpOptions) -> HttpService {
        let sessions = Arc::new(Sessions::new(options.session_limit, options.session_idle));
        let streams = Arc::new(Semaphore::new(options.stream_limit.min(Semaphore::MAX_PERMITS)));
        HttpService { service: service.into(), options: Arc::new(options), sessions, streams }
    }

    /// Takes a permit for one notification stream, or `None` if the limit is reached.
    fn acquire_stream(&self) -> Option<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().ok()
    }

    fn too_many_streams(&self, id: Option<Raw>) -> Response<Body> {
        response::too_many(id, "streams", self.options.stream_limit)
    }

    /// Answers one HTTP request: checks host, origin and content type, then reads the body.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if let Err(why) = self.options.guard.admit(request.headers()) {
            let error = RpcError::new(RpcError::INVALID_REQUEST, why);
            return response::error_response(StatusCode::FORBIDDEN, None, error);
        }
        let (parts, body) = request.into_parts();
        if parts.method != Method::POST {
            return self.respond_to(parts, Bytes::new()).await;
        }
        if !is_json(&parts.headers) {
            return response::not_json();
        }
        match Limited::new(body, self.options.body_limit).collect().await {
            Ok(body) => self.respond_to(parts, body.to_bytes()).await,
            Err(_) => {
                let error =
                    RpcError::new(RpcError::INVALID_REQUEST, "the request body is too large or incomplete");
                response::error_response(StatusCode::PAYLOAD_TOO_LARGE, None, error)
            }
        }
    }

    /// Answers one HTTP request that has passed the host and origin checks and whose body has been read.
    ///
    /// The future is boxed, so it is compiled in this crate and not again in the crate of the HTTP server.
    pub fn respond_to(&self, parts: Parts, body: Bytes) -> ResponseFuture<'_> {
        Box::pin(self.answer_body(parts, body))
    }

    /// Rare requests are boxed to keep the future of a single message small.
    async fn answer_body(&self, parts: Parts, body: Bytes) -> Response<Body> {
        match parts.method {
            Method::POST => {}
            Method::GET => return Box::pin(self.listen(&parts.headers, parts.extensions.get())).await,
            Method::DELETE => {
                return Box::pin(self.end_session(&parts.headers, parts.extensions.get())).await;
            }
            _ => return response::empty(StatusCode::METHOD_NOT_ALLOWED),
        }
        let why = match envelope::read(&body) {
            ParsedFrame::Message(message) => {
                let members = RequestParams::read(match &message {
                    Message::Request { params, .. } | Message::Notification { params, .. } => params.as_ref(),
                    Message::Answer { .. } => None,
                });
                let version = parts.headers.get(&headers::VERSION);
                return match members.has_version() || version.is_some_and(|version| version == MODERN) {
                    true => self.answer_modern(message, members, parts).await,
                    false => self.answer_legacy(message, members, parts).await,
                };
            }
            ParsedFrame::Batch(messages) => return Box::pin(self.batch(messages, parts)).await,
            ParsedFrame::Noise => "the body is not a JSON-RPC message".into(),
            ParsedFrame::Malformed { why, .. } => why,
        };
        let error = RpcError::new(RpcError::PARSE_ERROR, why);
        response::error_response(StatusCode::BAD_REQUEST, None, error)
    }
}

impl Clone for HttpService {
    fn clone(&self) -> HttpService {
        let (service, options) = (self.service.clone(), self.options.clone());
        let (sessions, streams) = (self.sessions.clone(), self.streams.clone());
        HttpService { service, options, sessions, streams }
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("options", &self.options).finish_non_exhaustive()
    }
}
