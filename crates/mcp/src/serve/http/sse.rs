//! Serves the legacy SSE transport (2024-11-05): one event stream per client, and an endpoint for its POSTs.

use super::{
    HttpOptions, is_json,
    response::{self, Body},
    sessions::{Owner, random_id},
};
use crate::serve::{Handler, Service, conversation, mailbox};
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
const QUEUE: usize = 64;

/// Serves a handler over legacy SSE. Cheap to clone.
pub struct SseService<H> {
    service: Service<H>,
    options: Arc<HttpOptions>,
    /// Path that clients POST to; `sessionId` is added as a query parameter.
    place: Arc<str>,
    clients: Arc<Clients>,
}

/// Connected clients by session id.
#[derive(Debug, Default)]
struct Clients(Mutex<HashMap<String, Heard>>);

/// Owner of a client, and the sender for its messages.
type Heard = (Option<Owner>, mpsc::Sender<Bytes>);

/// Event stream of one client. Dropping it removes the client.
struct Stream {
    id: String,
    clients: Arc<Clients>,
    greeting: Option<Bytes>,
    conversation: Pin<Box<dyn Future<Output = ()> + Send>>,
    said: mailbox::Receiver<crate::Outbound>,
}

impl<H: Handler> SseService<H> {
    /// Creates a service whose clients POST to the path `place`.
    pub fn new(service: Service<H>, options: HttpOptions, place: &str) -> SseService<H> {
        SseService { service, options: Arc::new(options), place: place.into(), clients: Arc::default() }
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
            Method::POST => self.take(request).await,
            _ => response::empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    fn open(&self, parts: ::http::request::Parts) -> Response<Body> {
        let limit = self.options.stream_limit.min(self.options.session_limit);
        let Some(id) = random_id().filter(|_| self.clients.entries().len() < limit) else {
            return response::crowded(None, "streams", limit);
        };
        let (frames, heard) = mpsc::channel(QUEUE);
        let owner = parts.extensions.get().cloned();
        let (conversation, said) = conversation::serve(self.service.clone(), Some(Arc::new(parts)), heard);
        self.clients.entries().insert(id.clone(), (owner, frames));
        let greeting = format!("event: endpoint\ndata: {}?sessionId={id}\n\n", self.place);
        let (clients, greeting) = (self.clients.clone(), Some(greeting.into()));
        let state = Stream { id, clients, greeting, conversation: Box::pin(conversation), said };
        response::event_stream(stream::unfold(state, |mut state| async {
            let event = state.next().await?;
            Some((Ok(Frame::data(event)), state))
        }))
    }

    async fn take<B>(&self, request: Request<B>) -> Response<Body>
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

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting);
        }
        tokio::select! {
            event = response::next_or_alive(&mut self.said) => event,
            () = &mut self.conversation => None,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.clients.entries().remove(&self.id);
    }
}

impl Clients {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H> Clone for SseService<H> {
    fn clone(&self) -> SseService<H> {
        let (options, place, clients) = (self.options.clone(), self.place.clone(), self.clients.clone());
        SseService { service: self.service.clone(), options, place, clients }
    }
}

impl<H> std::fmt::Debug for SseService<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseService").field("options", &self.options).finish_non_exhaustive()
    }
}
