//! Serving over streamable HTTP, both eras on one address.
//!
//! [`HttpService::respond`] is a function from a request to a response, for any HTTP server to mount. An answer is plain
//! JSON unless something has to be said before it; then it is a stream of events. The handler runs inside the response:
//! a client that closes the connection drops it.

mod batch;
mod guard;
mod kept;
mod ledger;
mod legacy;
mod modern;
mod response;
mod sessions;
mod sse;
mod standing;
mod trail;

use super::{Handler, Service};
use crate::{
    Message, Raw, RpcError,
    envelope::{self, Reading},
    http::headers,
    session::{MODERN, MetaKey, meta},
};
use ::http::{Method, Request, Response, StatusCode, request::Parts};
use bytes::Bytes;
pub use guard::{Guard, is_json};
use http_body_util::{BodyExt, Limited};
pub use ledger::{Keeping, KeptSession, Ledger, OutOfReach};
pub use response::Body;
pub use sessions::Owner;
use sessions::Sessions;
pub use sse::SseService;
use std::{error::Error, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits and the doorkeeper of an HTTP service.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The longest body a client may send.
    pub body_limit: usize,
    /// Who may come in.
    pub guard: Guard,
    /// How many sessions of the handshake era there may be.
    pub session_limit: usize,
    /// How many streams may stand open on which clients hear what they did not ask for.
    pub stream_limit: usize,
    /// How long a session may be idle before it can be forgotten.
    pub session_idle: Duration,
    /// Where those sessions are kept that a client may go on with elsewhere, if it may.
    pub ledger: Option<Arc<dyn Ledger>>,
}

/// A handler served over HTTP; cheap to clone.
pub struct HttpService<H> {
    service: Service<H>,
    options: Arc<HttpOptions>,
    sessions: Arc<Sessions>,
    /// Leave to hold a stream open.
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
            ledger: None,
        }
    }
}

impl<H: Handler> HttpService<H> {
    /// Serves `service` under these options.
    pub fn new(service: Service<H>, options: HttpOptions) -> HttpService<H> {
        let sessions = Arc::new(Sessions::new(options.session_limit, options.session_idle));
        let streams = Arc::new(Semaphore::new(options.stream_limit.min(Semaphore::MAX_PERMITS)));
        HttpService { service, options: Arc::new(options), sessions, streams }
    }

    /// Leave to hold one more stream open, for as long as it is kept, if there may be one more.
    fn may_stream(&self) -> Option<OwnedSemaphorePermit> {
        self.streams.clone().try_acquire_owned().ok()
    }

    fn too_many_streams(&self, id: Option<Raw>) -> Response<Body> {
        response::crowded(id, "streams", self.options.stream_limit)
    }

    /// Answers one HTTP request.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if let Err(refused) = self.options.guard.admit(request.headers()) {
            return response::refusal(
                StatusCode::FORBIDDEN,
                None,
                RpcError::new(RpcError::INVALID_REQUEST, refused),
            );
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
                    RpcError::new(RpcError::INVALID_REQUEST, "the message is too long, or was cut off");
                response::refusal(StatusCode::PAYLOAD_TOO_LARGE, None, error)
            }
        }
    }

    /// Answers one HTTP request that was let in already, and whose body is at hand. What is asked for rarely is boxed, so
    /// that the rest does not carry it along.
    pub async fn respond_to(&self, parts: Parts, body: Bytes) -> Response<Body> {
        match parts.method {
            Method::POST => self.post(parts, &body).await,
            Method::GET => Box::pin(self.listen(&parts.headers, parts.extensions.get())).await,
            Method::DELETE => Box::pin(self.end_session(&parts.headers, parts.extensions.get())).await,
            _ => response::empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    async fn post(&self, parts: Parts, body: &Bytes) -> Response<Body> {
        match envelope::read(body) {
            Reading::Message(message) if is_modern(&message, &parts) => self.modern(message, parts).await,
            Reading::Message(message) => self.legacy(message, parts).await,
            Reading::Batch(messages) => Box::pin(self.batch(messages, parts)).await,
            Reading::Noise => {
                let error = RpcError::new(RpcError::PARSE_ERROR, "the body is no message");
                response::refusal(StatusCode::BAD_REQUEST, None, error)
            }
            Reading::Garbled { why, .. } => {
                response::refusal(StatusCode::BAD_REQUEST, None, RpcError::new(RpcError::PARSE_ERROR, why))
            }
        }
    }
}

/// Whether a message belongs to the stateless era: it says so itself, or its header does.
fn is_modern(message: &Message, parts: &Parts) -> bool {
    let header = parts.headers.get(&headers::VERSION).and_then(|version| version.to_str().ok());
    let says_so = match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => {
            let meta = params.as_ref().and_then(meta::given);
            meta.is_some_and(|meta| meta.member(MetaKey::VERSION).is_some())
        }
        Message::Answer { .. } => false,
    };
    says_so || header == Some(MODERN)
}

impl<H> Clone for HttpService<H> {
    fn clone(&self) -> HttpService<H> {
        let (service, options) = (self.service.clone(), self.options.clone());
        let (sessions, streams) = (self.sessions.clone(), self.streams.clone());
        HttpService { service, options, sessions, streams }
    }
}

impl<H> std::fmt::Debug for HttpService<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("options", &self.options).finish_non_exhaustive()
    }
}
