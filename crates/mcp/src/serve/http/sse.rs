//! Serves the legacy SSE transport (2024-11-05): one event stream per client, and an endpoint for its POSTs.

use super::{
    HttpOptions, is_json,
    response::{self, Body},
    sessions::{Owner, random_id},
};
use crate::serve::{MessageReceiver, Service, connection};
use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Limited};
use std::{
    collections::HashMap,
    error::Error,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc;

/// Maximum number of received messages of one client waiting to be processed.
const MAX_QUEUED_MESSAGES: usize = 64;

/// Serves a handler over legacy SSE. Cheap to clone.
pub struct SseService {
    service: Service,
    options: Arc<HttpOptions>,
    /// Path that clients POST to; `sessionId` is added as a query parameter.
    post_path: Arc<str>,
    clients: Arc<Clients>,
}

/// Connected clients by session id.
#[derive(Debug, Default)]
struct Clients(Mutex<HashMap<String, ClientEntry>>);

/// Owner of a client, and the sender for its messages.
type ClientEntry = (Option<Owner>, mpsc::Sender<Bytes>);

/// Event stream of one client. Dropping it removes the client.
struct ClientStream {
    id: String,
    clients: Arc<Clients>,
    endpoint_event: Option<Bytes>,
    connection: Pin<Box<dyn Future<Output = ()> + Send>>,
    messages: MessageReceiver,
}

impl SseService {
    /// Creates a service whose clients POST to the path `post_path`.
    pub fn new(service: impl Into<Service>, options: HttpOptions, post_path: &str) -> SseService {
        SseService {
            service: service.into(),
            options: Arc::new(options),
            post_path: post_path.into(),
            clients: Arc::default(),
        }
    }

    /// Answers one HTTP request: a GET opens a stream, a POST delivers a message.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if self.options.guard.admit(request.headers()).is_err() {
            return response::empty(StatusCode::FORBIDDEN);
        }
        match *request.method() {
            Method::GET => self.open(request.into_parts().0),
            Method::POST if !is_json(request.headers()) => response::not_json(),
            Method::POST => self.receive(request).await,
            _ => response::empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    fn open(&self, parts: ::http::request::Parts) -> Response<Body> {
        let limit = self.options.stream_limit.min(self.options.session_limit);
        let Some(id) = random_id().filter(|_| self.clients.entries().len() < limit) else {
            return response::too_many(None, "streams", limit);
        };
        let (frames, received) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let owner = parts.extensions.get().cloned();
        let (connection, messages) = connection::serve(self.service.clone(), Some(Arc::new(parts)), received);
        self.clients.entries().insert(id.clone(), (owner, frames));
        let endpoint_event = format!("event: endpoint\ndata: {}?sessionId={id}\n\n", self.post_path);
        let (clients, endpoint_event) = (self.clients.clone(), Some(endpoint_event.into()));
        let state = ClientStream { id, clients, endpoint_event, connection, messages };
        response::event_stream(stream::unfold(state, |mut state| async {
            let event = state.next().await?;
            Some((Ok(Frame::data(event)), state))
        }))
    }

    async fn receive<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let id = request
            .uri()
            .query()
            .and_then(|query| query.split('&').find_map(|it| it.strip_prefix("sessionId=")));
        let client = id.and_then(|id| self.clients.entries().get(id).cloned());
        let client = client.filter(|(owner, _)| owner.as_ref() == request.extensions().get());
        let Some((_, client)) = client else { return response::empty(StatusCode::NOT_FOUND) };
        let Ok(body) = Limited::new(request.into_body(), self.options.body_limit).collect().await else {
            return response::empty(StatusCode::PAYLOAD_TOO_LARGE);
        };
        match client.send(body.to_bytes()).await {
            Ok(()) => response::empty(StatusCode::ACCEPTED),
            Err(_) => response::empty(StatusCode::NOT_FOUND),
        }
    }
}

impl ClientStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(endpoint_event) = self.endpoint_event.take() {
            return Some(endpoint_event);
        }
        tokio::select! {
            event = response::next_or_keep_alive(&mut self.messages) => event,
            () = &mut self.connection => None,
        }
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        self.clients.entries().remove(&self.id);
    }
}

impl Clients {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, ClientEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for SseService {
    fn clone(&self) -> SseService {
        let (options, post_path, clients) =
            (self.options.clone(), self.post_path.clone(), self.clients.clone());
        SseService { service: self.service.clone(), options, post_path, clients }
    }
}

impl std::fmt::Debug for SseService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseService").field("options", &self.options).finish_non_exhaustive()
    }
}
