//! Answers handshake-era HTTP requests: `initialize`, POSTs within a session, the GET notification stream and DELETE.

use super::{
    HttpService, guard,
    notification_stream::NotificationStream,
    replay_buffer::EventId,
    response::{self, Body},
    resumable_stream::{AttachedStream, ResumableStream, Resumed},
    sessions::{HttpSession, Owner},
};
use crate::{
    Message, Outbound, Raw, RpcError,
    http::headers,
    serve::{ClientRef, Incoming, MessageSender, RequestParams, dispatch},
    session::LEGACY,
};
use ::http::{HeaderMap, HeaderValue, Response, StatusCode, request::Parts};
use futures_util::{future::abortable, stream};
use http_body::Frame;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Maximum number of messages waiting for a slow client.
pub(super) const OUTBOUND_CAPACITY: usize = 64;

/// JSON-RPC error code for a request without a valid session.
pub(super) const NO_SESSION: i64 = -32000;

/// JSON-RPC error code for a cancelled request. It reaches the client only if its stream has already begun.
pub(super) const CANCELLED: i64 = -32800;

impl HttpService {
    pub(super) async fn answer_legacy(
        &self,
        message: Message,
        members: Box<RequestParams>,
        parts: Parts,
    ) -> Response<Body> {
        if let Message::Request { id, method, params } = &message
            && method == "initialize"
        {
            return Box::pin(self.initialize(id.clone(), params.clone(), parts)).await;
        }
        let session = match self.session(&parts.headers, parts.extensions.get()).await {
            Ok(session) => session,
            Err((status, what)) => {
                return response::error_response(status, None, RpcError::new(NO_SESSION, what));
            }
        };
        match message {
            Message::Request { id, method, params } => {
                let request = Incoming { method, params, members, http: Some(Arc::new(parts)) };
                self.request(session, id, request).await
            }
            Message::Answer { id, outcome } => {
                session.peer.answered(id, outcome);
                response::empty(StatusCode::ACCEPTED)
            }
            Message::Notification { method, params } => {
                self.handle_notification(&session, &method, params);
                response::empty(StatusCode::ACCEPTED)
            }
        }
    }

    pub(super) fn handle_notification(&self, session: &HttpSession, method: &str, params: Option<Raw>) {
        if method == "notifications/cancelled" {
            let id = params.and_then(|params| params.member("requestId"));
            id.into_iter().for_each(|id| session.cancel(id.as_bytes()));
        } else {
            self.service.handler().notified(method, params, &ClientRef::new(&session.peer, None));
        }
    }

    async fn initialize(&self, id: Raw, params: Option<Raw>, parts: Parts) -> Response<Body> {
        let owner = parts.extensions.get().cloned();
        let session = match self.options.session_store {
            None => Arc::new(self.sessions.new_session(owner)),
            Some(_) => Arc::new(self.sessions.new_shared_session(owner)),
        };
        let request = Incoming::new("initialize".to_owned(), params, Some(Arc::new(parts)));
        let mut response = self.request(session.clone(), id, request).await;
        if session.peer.terms.get().is_none() {
            return response;
        }
        let Some(name) = self.sessions.open(session.clone()) else {
            return response::too_many(None, "sessions", self.options.session_limit);
        };
        self.create_session(&name, &session).await;
        let Ok(name) = HeaderValue::try_from(name) else {
            return response::empty(StatusCode::SERVICE_UNAVAILABLE);
        };
        response.headers_mut().insert(headers::SESSION, name);
        response
    }

    async fn request(&self, session: Arc<HttpSession>, id: Raw, request: Incoming) -> Response<Body> {
        let (out, messages) = mpsc::channel(OUTBOUND_CAPACITY);
        // A stream runs after the response has begun, which is too late for the handshake.
        let prefers_stream = request.method != "initialize"
            && request.http.as_ref().is_some_and(|it| guard::prefers_stream(&it.headers));
        let pending = Box::pin(self.answer(session.clone(), id.clone(), request, out));
        let write_stream = |answer: &Outbound| session.whole_stream(answer);
        let write_stream = prefers_stream.then_some(&write_stream as _);
        let status_of = |_: &RpcError| StatusCode::OK;
        let response = response::json_or_messages(id, pending, messages, status_of, write_stream).await;
        response.unwrap_or_else(|messages| {
            stream_response(AttachedStream::new(Box::new(ResumableStream::new(session, messages))), None)
        })
    }

    /// Answers a request so that the session can cancel it.
    pub(super) fn answer(
        &self,
        session: Arc<HttpSession>,
        id: Raw,
        request: Incoming,
        out: MessageSender,
    ) -> impl Future<Output = Result<Raw, RpcError>> + Send + use<> {
        // Only these methods change state that outlasts the request.
        let stateful_methods = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
        let store_after =
            self.options.session_store.is_some() && stateful_methods.contains(&request.method.as_str());
        let store_after = store_after.then(|| self.clone());
        let answer =
            dispatch::answer(self.service.clone(), request, None, id.clone(), session.peer.clone(), out);
        // Boxed, because each of the layers around it would move the whole future.
        let (answer, handle) = abortable(Box::pin(answer));
        let running = session.clone().register_request(id, handle);
        async move {
            let outcome = answer.await;
            drop(running);
            if let Some(service) = store_after {
                Box::pin(service.update_session(&session)).await;
            }
            outcome.unwrap_or_else(|_| Err(RpcError::new(CANCELLED, "the request was cancelled")))
        }
    }

    /// Opens or resumes the GET stream, which carries notifications that belong to no request.
    pub(super) async fn listen(&self, headers: &HeaderMap, owner: Option<&Owner>) -> Response<Body> {
        let session = match self.session(headers, owner).await {
            Ok(session) => session,
            // Without a session there are no notifications.
            Err((status @ (StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE), _)) => {
                return response::empty(status);
            }
            Err(_) => return response::empty(StatusCode::METHOD_NOT_ALLOWED),
        };
        let Some(permit) = self.acquire_stream() else { return self.too_many_streams(None) };
        let last = headers.get(headers::LAST_EVENT).and_then(|it| EventId::read(it.to_str().ok()?));
        let resumed = match last {
            None => Resumed::NotificationStream(None, Vec::new(), None),
            Some(last) => session.streams.resume(last).await,
        };
        match resumed {
            Resumed::Running(stream) => stream_response(stream, Some(permit)),
            Resumed::Finished(events) => {
                let frames = events.into_iter().map(|it| Ok(Frame::data(it)));
                response::event_stream(stream::iter(frames))
            }
            Resumed::NotificationStream(at, missed, announcements) => {
                let announcements =
                    announcements.unwrap_or_else(|| self.service.client_announcements(&session.peer));
                let notification_stream = NotificationStream::new(session, at, missed, announcements);
                response::event_stream(stream::unfold(
                    (notification_stream, permit),
                    |(mut notification_stream, permit)| async {
                        let event = notification_stream.next().await?;
                        Some((Ok(Frame::data(event)), (notification_stream, permit)))
                    },
                ))
            }
        }
    }

    pub(super) async fn end_session(&self, headers: &HeaderMap, owner: Option<&Owner>) -> Response<Body> {
        let id = headers.get(headers::SESSION).and_then(|id| id.to_str().ok());
        let Some(id) = id else { return response::empty(StatusCode::METHOD_NOT_ALLOWED) };
        match self.end(id, owner).await {
            Ok(()) => response::empty(StatusCode::NO_CONTENT),
            Err((status, _)) => response::empty(status),
        }
    }

    /// Returns the session that a request belongs to, or status and message of the rejection.
    pub(super) async fn session(
        &self,
        headers: &HeaderMap,
        owner: Option<&Owner>,
    ) -> Result<Arc<HttpSession>, (StatusCode, &'static str)> {
        let version = headers.get(headers::VERSION).map(|version| version.to_str().unwrap_or("?"));
        if version.is_some_and(|version| !LEGACY.contains(&version)) {
            return Err((StatusCode::BAD_REQUEST, "unsupported protocol version"));
        }
        let Some(id) = headers.get(headers::SESSION).and_then(|id| id.to_str().ok()) else {
            return Err((StatusCode::BAD_REQUEST, "no session: initialize first"));
        };
        self.find(id, owner).await
    }
}

/// Streams a request's events. A resumed stream also holds a stream permit.
fn stream_response(attached: AttachedStream, permit: Option<OwnedSemaphorePermit>) -> Response<Body> {
    response::event_stream(stream::unfold((attached, permit), |(mut attached, permit)| async {
        let event = attached.next().await?;
        Some((Ok(Frame::data(event)), (attached, permit)))
    }))
}
