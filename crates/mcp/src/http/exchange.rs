//! One POST and the processing of its response.

use super::{
    Answer, Context, HttpEndpoint, authorized, headers, no_response,
    plain_head::EncodedRequest,
    plain_http_pool::Posted,
    response_body::{read_body, status_failure, too_long},
};
use crate::{
    Class, Failure, Inbound, Message, Outbound, Phase, Raw, RpcError, Sent,
    events::SseParser,
    link::{DirectAnswer, Verdict, decode_frame},
    oauth::AccessToken,
};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode};
use bytes::{Bytes, BytesMut};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time;
use url::Url;

/// Default delay before a stream is resumed; the server may set another.
pub(super) const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// Maximum delay before a stream is resumed that a server may set.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// Maximum number of consecutive resumptions without a new event.
const MAX_IDLE_RESUMPTIONS: usize = 5;

/// Time limit for both messages of a session renewal.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(30);

/// One POST in flight.
pub(super) struct Exchange {
    message: Outbound,
    /// Whether this is the first attempt. A second 404 does not renew the session again.
    is_first: bool,
}

/// Result of an exchange. Its messages have already been delivered.
pub(super) enum ExchangeResult {
    /// Finished. Holds the id if the message was a request.
    Over(Option<u64>),
    /// The server has received `notifications/initialized`.
    Initialized,
    /// The server has lost the session and did not process this message.
    SessionLost(Outbound),
    /// The session has been renewed.
    Renewed,
}

/// Whether a frame contained the answer to the request.
enum FrameOutcome {
    /// The answer.
    Answer(Result<Raw, RpcError>),
    /// The session has the answer.
    Delivered,
    Other,
}

/// The answer to a request; `None` if the session has it.
type RequestAnswer = Option<Result<Raw, RpcError>>;

/// The stream of the response to one request.
pub(super) struct RequestStream {
    id: u64,
    /// Whether messages of the stream went to the session. Then the answer has to follow them.
    has_delivered: bool,
}

impl Exchange {
    pub(super) fn new(message: Outbound) -> Exchange {
        Exchange { message, is_first: true }
    }

    pub(super) fn retry(message: Outbound) -> Exchange {
        Exchange { message, is_first: false }
    }

    pub(super) fn request_id(&self) -> Option<u64> {
        match self.message {
            Outbound::Request { id, .. } => Some(id),
            _ => None,
        }
    }

    pub(super) async fn run(self, context: Arc<Context>) -> ExchangeResult {
        let id = self.request_id();
        let response = match self.post(&context).await {
            Ok(Some(response)) => Ok(response),
            Ok(None) => return ExchangeResult::SessionLost(self.message),
            Err(failure) => Err(failure),
        };
        if let Ok(response) = &response {
            context.store_session_id(&self.message, response);
            if is_initialize(&self.message) && context.session.borrow().is_none() {
                context.deliver(Inbound::Stateless).await;
            }
        }
        if let Some(id) = id {
            let answer = match response {
                Ok(response) => context.read_answer(id, response).await,
                Err(failure) => Err(failure),
            };
            context.deliver_answer(id, answer).await;
        }
        match &self.message {
            Outbound::Notification { method, .. } if method == "notifications/initialized" => {
                ExchangeResult::Initialized
            }
            _ => ExchangeResult::Over(id),
        }
    }

    /// Sends a request in the task that waits for its answer.
    pub(super) async fn run_directly(self, context: Arc<Context>) -> DirectAnswer {
        let answer = match (self.post(&context).await, self.request_id()) {
            (Ok(Some(response)), Some(id)) => context.read_answer(id, response).await,
            (Ok(_), _) => match context.lost.send(self.message) {
                Ok(()) => return DirectAnswer::ThroughSession,
                Err(_) => Err(lost_again()),
            },
            (Err(failure), _) => Err(failure),
        };
        match answer {
            Ok(None) => DirectAnswer::ThroughSession,
            Ok(Some(outcome)) => DirectAnswer::Answered(outcome.map_err(Failure::rpc)),
            Err(failure) => DirectAnswer::Answered(Err(failure)),
        }
    }

    /// Posts the message. Returns `None` if the server has lost the session and a new one may help.
    async fn post(&self, context: &Context) -> Result<Option<Answer>, Failure> {
        let session = context.session.borrow().clone();
        let has_session = session.is_some();
        let response = context.post(&self.message, session).await?;
        match response.status() {
            StatusCode::NOT_FOUND if has_session && self.is_first => Ok(None),
            StatusCode::NOT_FOUND if has_session => Err(lost_again()),
            _ => Ok(Some(response)),
        }
    }
}

fn is_initialize(message: &Outbound) -> bool {
    matches!(message, Outbound::Request { method, .. } if method == "initialize")
}

/// Builds the failure of a message that got a 404 in the renewed session too.
fn lost_again() -> Failure {
    let what = "the server has lost the session, and the new one too (404)";
    Failure::unreached(what).with_status(StatusCode::NOT_FOUND.as_u16())
}

/// Opens a new session by repeating the handshake, then reports that cached lists may be stale.
pub(super) async fn renew(context: Arc<Context>) -> ExchangeResult {
    context.session.send_replace(None);
    let handshake = async {
        let Some(initialize) = context.initialize.get() else { return };
        if let Ok(response) = context.post(initialize, None).await {
            context.store_session_id(initialize, &response);
            let _ = read_body(response, context.endpoint.frame_limit).await;
        }
        let session = context.session.borrow().clone();
        let method = "notifications/initialized".into();
        let version = context.version.get().cloned();
        let routing = crate::Routing { version, ..Default::default() };
        let initialized = Outbound::Notification { method, params: None, routing };
        let _ = context.post(&initialized, session).await;
    };
    let _ = time::timeout(RENEWAL_TIMEOUT, handshake).await;
    context.deliver(Inbound::Renewed).await;
    ExchangeResult::Renewed
}

impl Context {
    pub(super) async fn deliver(&self, received: Inbound) {
        self.delivered.fetch_add(1, Ordering::AcqRel);
        // A failed send means that the session has been dropped.
        let _ = self.inbound.send(received).await;
    }

    /// Delivers the answer to a request, unless the session has it.
    async fn deliver_answer(&self, id: u64, answer: Result<RequestAnswer, Failure>) {
        match answer {
            Ok(Some(outcome)) => {
                self.deliver(Inbound::Message(Message::Answer { id: Some(id), outcome })).await;
            }
            Ok(None) => {}
            Err(failure) => self.deliver(Inbound::Failed { id, failure }).await,
        }
    }

    /// Returns whether the session task has not handled all messages yet.
    fn has_undelivered(&self) -> bool {
        !self.direct_answers.has_handled(self.delivered.load(Ordering::Acquire))
    }

    async fn post(&self, message: &Outbound, session: Option<HeaderValue>) -> Result<Answer, Failure> {
        let mut body = BytesMut::with_capacity(512);
        message.write(&mut body);
        let body = body.freeze();
        let headers = |token: Option<&AccessToken>, url: &Url| {
            let mut headers = headers::of(message, &self.endpoint.headers, session.clone());
            token.map_or(Ok(()), |token| token.authorize(&mut headers, &Method::POST, url))?;
            Ok(headers)
        };
        let (headers, body) = (&headers, &body);
        let send = |token: Option<AccessToken>| {
            let plain_pool = self.plain_pool.as_ref().filter(|_| token.is_none());
            let encoded = plain_pool.and_then(|it| it.encode(message, session.as_ref(), body));
            self.post_once(encoded, move |url| headers(token.as_ref(), url), body.clone())
        };
        authorized::send_authorized(self.endpoint.authorizer.as_ref(), send).await
    }

    /// Posts through the keep-alive pool for plain HTTP if there is one, and through `reqwest` otherwise.
    ///
    /// Calls `headers` unless the message is encoded already, and again for a redirect: redirects are rare, so keeping a
    /// copy for each message would cost more.
    async fn post_once(
        &self,
        encoded: Option<EncodedRequest>,
        headers: impl Fn(&Url) -> Result<HeaderMap, Failure>,
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let url = &self.endpoint.url;
        match &self.plain_pool {
            None => Box::pin(self.post_general(url.clone(), headers, body)).await,
            Some(plain_pool) => {
                let request = match encoded {
                    Some(encoded) => encoded,
                    None => plain_pool.encode_with(&headers(url)?, &body),
                };
                match plain_pool.post(&request).await? {
                    Posted::Answered(response) => Ok(Answer::Pooled(response)),
                    // Boxed to keep the future of the common path small.
                    Posted::Redirected(target) => Box::pin(self.post_general(target, headers, body)).await,
                }
            }
        }
    }

    /// Posts through `reqwest`.
    async fn post_general(
        &self,
        target: Url,
        headers: impl Fn(&Url) -> Result<HeaderMap, Failure>,
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let HttpEndpoint { url, client, .. } = &self.endpoint;
        let headers = headers(&target)?;
        let request = client.pool(&target)?.post(target).headers(headers).body(body);
        let sent = request.send().await;
        sent.map(Answer::from).map_err(|error| no_response(url, &error))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Answer, Failure> {
        authorized::send_request(self.endpoint.authorizer.as_ref(), &self.endpoint.url, request).await
    }

    /// Opens an SSE stream by GET, from the start or after `last_event`.
    pub(super) async fn get(&self, last_event: Option<&str>) -> Result<Answer, Failure> {
        let HttpEndpoint { url, client, .. } = &self.endpoint;
        let mut request = client.pool(url)?.get(url.clone());
        request = request.headers(self.session_headers());
        request = request.header(::http::header::ACCEPT, headers::EVENTS);
        if let Some(last_event) = last_event {
            request = request.header(headers::LAST_EVENT, last_event);
        }
        self.send(request).await
    }

    pub(super) async fn delete(&self) {
        let HttpEndpoint { url, client, .. } = &self.endpoint;
        let Ok(pool) = client.pool(url) else { return };
        let request = pool.delete(url.clone());
        let _ = self.send(request.headers(self.session_headers())).await;
    }

    /// Builds the headers of a GET or DELETE: configured headers, session id and protocol version.
    fn session_headers(&self) -> ::http::HeaderMap {
        let mut headers = self.endpoint.headers.clone();
        if let Some(session) = self.session.borrow().clone() {
            headers.insert(headers::SESSION, session);
        }
        if let Some(version) = self.version.get().and_then(|version| version.parse().ok()) {
            headers.insert(headers::VERSION, version);
        }
        headers
    }

    /// Stores the session id from the response to `initialize`, before any other message can be sent.
    fn store_session_id(&self, message: &Outbound, response: &Answer) {
        if is_initialize(message)
            && let Some(session) = response.headers().get(&headers::SESSION)
        {
            self.session.send_replace(Some(session.clone()));
        }
    }

    /// Delivers the messages of a response until the answer to `id`, and returns that.
    async fn read_answer(&self, id: u64, response: Answer) -> Result<RequestAnswer, Failure> {
        let status = response.status();
        if !status.is_success() {
            return Err(status_failure(response).await);
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Err(Failure::protocol("the server accepted a request without answering it"));
        }
        if response.is_event_stream() {
            // Boxed to keep the future of a JSON response small.
            return Box::pin(self.read_stream(id, response)).await;
        }
        let body = read_body(response, self.endpoint.frame_limit).await?;
        match self.deliver_frame(&body, Some(&mut RequestStream { id, has_delivered: false })).await? {
            FrameOutcome::Answer(outcome) => Ok(Some(outcome)),
            FrameOutcome::Delivered => Ok(None),
            FrameOutcome::Other => Err(Failure::protocol("the response contains no answer to the request")),
        }
    }

    async fn read_stream(&self, id: u64, response: Answer) -> Result<RequestAnswer, Failure> {
        let mut events = SseParser::new(self.endpoint.frame_limit);
        let (mut response, mut stream) = (response, RequestStream { id, has_delivered: false });
        let mut attempts = 0;
        loop {
            let previous = events.last_id.clone();
            if let Some(answer) = self.read_events(&mut response, &mut events, Some(&mut stream)).await? {
                return Ok(answer);
            }
            attempts = if events.last_id == previous { attempts + 1 } else { 0 };
            let Some(last) = events.last_id.clone().filter(|_| attempts < MAX_IDLE_RESUMPTIONS) else {
                let what = "the server's stream ended before the answer";
                return Err(Failure::new(Class::Closed, Phase::Request, Sent::Unknown, what));
            };
            time::sleep(events.retry.unwrap_or(DEFAULT_RETRY).min(MAX_RETRY)).await;
            if let Ok(resumed) = self.get(Some(&last)).await
                && resumed.status().is_success()
            {
                response = resumed;
            }
        }
    }

    /// Delivers the events of a stream until the answer to its request, and returns that; `None` at the end of the
    /// stream.
    pub(super) async fn read_events(
        &self,
        response: &mut Answer,
        events: &mut SseParser,
        mut stream: Option<&mut RequestStream>,
    ) -> Result<Option<RequestAnswer>, Failure> {
        while let Some(chunk) = self.next_chunk(response).await? {
            let received = events.push(&chunk).map_err(|_| too_long())?;
            for event in
                received.into_iter().filter(|event| event.kind == "message" && !event.data.is_empty())
            {
                match self.deliver_frame(&event.data, stream.as_deref_mut()).await? {
                    FrameOutcome::Answer(outcome) => return Ok(Some(Some(outcome))),
                    FrameOutcome::Delivered => return Ok(Some(None)),
                    FrameOutcome::Other => {}
                }
            }
            if events.is_broken() {
                return Err(too_long());
            }
        }
        Ok(None)
    }

    /// Returns the next chunk, or `None` when the stream has ended or broken. Fails after the read timeout.
    async fn next_chunk(&self, response: &mut Answer) -> Result<Option<Bytes>, Failure> {
        let chunk = response.chunk();
        match self.endpoint.read_timeout {
            None => Ok(chunk.await.ok().flatten()),
            Some(read_timeout) => match time::timeout(read_timeout, chunk).await {
                Ok(chunk) => Ok(chunk.ok().flatten()),
                Err(_) => {
                    let what = "the server's stream was silent for too long";
                    Err(Failure::new(Class::Timeout, Phase::Request, Sent::Unknown, what))
                }
            },
        }
    }

    /// Returns the answer to the request of a stream if the frame is that; delivers any other frame.
    async fn deliver_frame(
        &self,
        frame: &Bytes,
        stream: Option<&mut RequestStream>,
    ) -> Result<FrameOutcome, Failure> {
        let received = match decode_frame(frame) {
            Verdict::Deliver(received) => received,
            Verdict::Noise => {
                return Err(Failure::protocol("the server sent something that is not a JSON-RPC message"));
            }
            Verdict::Violation(why) => return Err(Failure::protocol(why)),
        };
        let id = stream.as_ref().map(|it| it.id);
        // The answer must not overtake messages that the session has not handled yet.
        let goes_first = stream.as_ref().is_some_and(|it| !it.has_delivered) && !self.has_undelivered();
        match received {
            Inbound::Message(Message::Answer { id: None, outcome: Err(error) }) => Err(Failure::rpc(error)),
            Inbound::Message(Message::Answer { id: Some(answered), outcome })
                if Some(answered) == id && goes_first =>
            {
                Ok(FrameOutcome::Answer(outcome))
            }
            Inbound::Failed { id: failed, failure } if Some(failed) == id => Err(failure),
            received => {
                let answers = id.is_some_and(|id| is_answer_to(&received, id));
                self.deliver(assign_to_request(received, id)).await;
                stream.into_iter().for_each(|it| it.has_delivered = true);
                Ok(if answers { FrameOutcome::Delivered } else { FrameOutcome::Other })
            }
        }
    }
}

/// Assigns a server request or notification on a request's own stream to that request.
fn assign_to_request(received: Inbound, id: Option<u64>) -> Inbound {
    match (received, id) {
        (
            Inbound::Message(message @ (Message::Request { .. } | Message::Notification { .. })),
            Some(request),
        ) => Inbound::OnRequestStream { request, message },
        (received, _) => received,
    }
}

fn is_answer_to(received: &Inbound, id: u64) -> bool {
    match received {
        Inbound::Message(Message::Answer { id: Some(answered), .. }) => *answered == id,
        Inbound::Failed { id: failed, .. } => *failed == id,
        Inbound::Batch(items) => items.iter().any(|item| is_answer_to(item, id)),
        _ => false,
    }
}
