//! The handshake era over HTTP: sessions, POSTs within them, and the standing stream.

use super::{
    HttpService,
    response::{self, Body},
    sessions::{Owner, Session},
};
use crate::{
    Message, Outbound, Raw, Routing, RpcError,
    http::headers,
    serve::{Handler, Incoming, dispatch, listen},
    session::LEGACY,
};
use ::http::{HeaderMap, HeaderValue, Response, StatusCode, request::Parts};
use futures_util::{future::abortable, stream};
use http_body::Frame;
use std::sync::Arc;
use tokio::{sync::mpsc, time};

/// How many messages may wait for a slow reader.
pub(super) const QUEUE: usize = 64;

/// The code that servers use for a request outside a session.
pub(super) const NO_SESSION: i64 = -32000;

impl<H: Handler> HttpService<H> {
    pub(super) async fn legacy(&self, message: Message, parts: Parts) -> Response<Body> {
        if let Message::Request { id, method, params } = &message
            && method == "initialize"
        {
            return self.initialize(id.clone(), params.clone(), parts).await;
        }
        let session = match self.session(&parts.headers, parts.extensions.get()).await {
            Ok(session) => session,
            Err((status, what)) => return response::refusal(status, None, RpcError::new(NO_SESSION, what)),
        };
        match message {
            Message::Request { id, method, params } => self.request(session, id, method, params, parts).await,
            Message::Answer { id, outcome } => {
                session.peer.answered(id, outcome);
                response::empty(StatusCode::ACCEPTED)
            }
            Message::Notification { method, params } => {
                self.noted(&session, &method, params);
                response::empty(StatusCode::ACCEPTED)
            }
        }
    }

    pub(super) fn noted(&self, session: &Session, method: &str, params: Option<Raw>) {
        if method == "notifications/cancelled" {
            let id = params.and_then(|params| params.member("requestId"));
            id.into_iter().for_each(|id| session.cancel(id.as_bytes()));
        } else {
            self.service.handler().notified(method, params);
        }
    }

    async fn initialize(&self, id: Raw, params: Option<Raw>, parts: Parts) -> Response<Body> {
        let owner = parts.extensions.get().cloned();
        let session = match self.options.ledger {
            None => Arc::new(Session::of(owner)),
            Some(_) => Arc::new(Session::elsewhere(owner)),
        };
        let mut response = self.request(session.clone(), id, "initialize".into(), params, parts).await;
        if session.peer.terms.get().is_none() {
            return response;
        }
        let Some(name) = self.sessions.open(session.clone()) else {
            return response::crowded(None, "sessions", self.options.session_limit);
        };
        self.begun(&name, &session).await;
        let Ok(name) = HeaderValue::try_from(name) else {
            return response::empty(StatusCode::SERVICE_UNAVAILABLE);
        };
        response.headers_mut().insert(headers::SESSION, name);
        response
    }

    async fn request(
        &self,
        session: Arc<Session>,
        id: Raw,
        method: String,
        params: Option<Raw>,
        parts: Parts,
    ) -> Response<Body> {
        let request = Incoming { method, params, http: Some(Arc::new(parts)) };
        let (out, said) = mpsc::channel(QUEUE);
        let pending = self.answer(session, id.clone(), request, out);
        response::json_or_stream(id, Box::pin(pending), said, |_| StatusCode::OK).await
    }

    /// The answer to a request, which the session can cancel.
    pub(super) fn answer(
        &self,
        session: Arc<Session>,
        id: Raw,
        request: Incoming,
        out: mpsc::Sender<Box<Outbound>>,
    ) -> impl Future<Output = Result<Raw, RpcError>> + Send + use<H> {
        // Whatever is asked for beyond one request is asked for in one of these.
        let lasts = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
        let changing = self.options.ledger.is_some() && lasts.contains(&request.method.as_str());
        let changing = changing.then(|| self.clone());
        let answer = dispatch::answer(self.service.clone(), request, id.clone(), session.peer.clone(), out);
        let (answer, handle) = abortable(answer);
        session.began(id.as_bytes(), handle);
        async move {
            let outcome = answer.await;
            session.ended(id.as_bytes());
            if let Some(service) = changing {
                Box::pin(service.changed(&session)).await;
            }
            outcome.unwrap_or_else(|_| Err(RpcError::new(RpcError::INTERNAL, "the request was cancelled")))
        }
    }

    /// The standing stream, over which the session hears what it did not ask for.
    pub(super) async fn listen(&self, headers: &HeaderMap, owner: Option<&Owner>) -> Response<Body> {
        let session = match self.session(headers, owner).await {
            Ok(session) => session,
            // Without a session there is nothing to hear.
            Err((status @ (StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE), _)) => {
                return response::empty(status);
            }
            Err(_) => return response::empty(StatusCode::METHOD_NOT_ALLOWED),
        };
        let Some(leave) = self.may_stream() else { return self.too_many_streams(None) };
        let announcements = self.service.announcements();
        let state = (announcements, session, leave);
        response::event_stream(stream::unfold(state, |(mut announcements, session, leave)| async {
            let event = loop {
                match time::timeout(response::KEEP_ALIVE, announcements.next()).await {
                    Err(_) => break response::keep_alive(),
                    Ok(None) => return None,
                    Ok(Some(news)) => {
                        let wanted = listen::notification(&news).filter(|_| session.peer.wants(&news));
                        if let Some((method, params)) = wanted {
                            let (method, routing) = (method.into(), Routing::default());
                            break response::event(&Outbound::Notification { method, params, routing });
                        }
                    }
                }
            };
            Some((Ok(Frame::data(event)), (announcements, session, leave)))
        }))
    }

    pub(super) async fn end_session(&self, headers: &HeaderMap, owner: Option<&Owner>) -> Response<Body> {
        let id = headers.get(headers::SESSION).and_then(|id| id.to_str().ok());
        let Some(id) = id else { return response::empty(StatusCode::METHOD_NOT_ALLOWED) };
        match self.end(id, owner).await {
            Ok(()) => response::empty(StatusCode::NO_CONTENT),
            Err((status, _)) => response::empty(status),
        }
    }

    /// The session a request belongs to, or how it is refused.
    pub(super) async fn session(
        &self,
        headers: &HeaderMap,
        owner: Option<&Owner>,
    ) -> Result<Arc<Session>, (StatusCode, &'static str)> {
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
