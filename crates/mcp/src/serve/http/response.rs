//! Builds HTTP responses: empty, one JSON message, or an SSE stream.

use super::{
    body_parts::BodyParts,
    legacy::{CANCELLED, NO_SESSION},
    replay_buffer::EventId,
};
use crate::{Outbound, Raw, Routing, RpcError, envelope, serve::MessageReceiver};
use ::http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use std::{convert::Infallible, fmt::Write, future::Future, pin::Pin, time::Duration};
use tokio::time;

/// Generous size of the JSON-RPC envelope around a result, in bytes.
const ENVELOPE_BYTES: usize = 128;

/// Size from which a result is sent from the buffer it arrived in. Copying a smaller one costs less than another part.
const MIN_SHARED_BYTES: usize = 16 << 10;

/// Body of every response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A pending response to one request.
pub(super) type Pending = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;

/// Work that runs while a stream is open.
pub(super) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Interval between keep-alive comments on a silent stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Time after which a stream begins without a message, for a client that prefers a stream.
const STREAM_AFTER: Duration = Duration::from_millis(500);

/// Delay after which a client should resume a broken stream, in milliseconds.
const RETRY_MILLIS: u32 = 1_000;

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    respond(status, None, Bytes::new())
}

/// Responds with an error for the whole HTTP request.
pub(super) fn error_response(status: StatusCode, id: Option<Raw>, error: RpcError) -> Response<Body> {
    let id = id.unwrap_or_else(|| serde_json::Value::Null.into());
    json(status, &answer(id, Err(error)))
}

/// Rejects a message that is not declared as JSON, without reading its body.
pub(super) fn not_json() -> Response<Body> {
    let why = "the message has to be JSON: send `Content-Type: application/json`, and no `Content-Encoding`";
    let error = RpcError::new(RpcError::INVALID_REQUEST, why);
    error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, error)
}

/// Rejects a request because a limit on sessions or streams is reached.
pub(super) fn too_many(id: Option<Raw>, what: &str, limit: usize) -> Response<Body> {
    let why = format!("too many open {what} (limit {limit}); close one or try again later");
    let mut response = error_response(StatusCode::SERVICE_UNAVAILABLE, id, RpcError::new(NO_SESSION, why));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Responds with an SSE stream of all messages of a request.
pub(super) fn stream_messages(messages: MessageStream) -> Response<Body> {
    event_stream(stream::unfold(messages, |mut messages| async {
        let event = match messages.next().await? {
            StreamItem::Message(message) => event(&message),
            StreamItem::KeepAlive => keep_alive(),
        };
        Some((Ok(Frame::data(event)), messages))
    }))
}

/// Responds with JSON if the result comes first. Otherwise returns all messages of the request for streaming.
///
/// For a client that prefers a stream, `write_stream` writes the whole stream of a result that comes first. An error with
/// a status of its own is JSON all the same. If the result takes longer than [`STREAM_AFTER`], it is streamed.
pub(super) async fn json_or_messages(
    id: Raw,
    mut pending: Pending,
    mut messages: MessageReceiver,
    status_of: fn(&RpcError) -> StatusCode,
    write_stream: Option<&(dyn Fn(&Outbound) -> Bytes + Sync)>,
) -> Result<Response<Body>, MessageStream> {
    let first = tokio::select! {
        biased;
        Some(message) = messages.recv() => Some(message),
        outcome = &mut pending => match messages.try_recv().ok() {
            Some(message) => {
                pending = Box::pin(std::future::ready(outcome));
                Some(message)
            }
            // The client cancelled the request and expects no response.
            None if outcome.as_ref().is_err_and(|it| it.code == CANCELLED) => {
                return Ok(event_stream(stream::empty()));
            }
            None => {
                let status = outcome.as_ref().map_or_else(status_of, |_| StatusCode::OK);
                let answer = answer(id, outcome);
                return Ok(match write_stream {
                    Some(write_stream) if status == StatusCode::OK => whole_stream(write_stream(&answer)),
                    _ => json(status, &answer),
                });
            }
        },
        () = wait_before_stream(), if write_stream.is_some() => None,
    };
    Err(MessageStream { first, messages, pending: Some(pending), id })
}

/// A function, so that a request without a stream creates no timer.
async fn wait_before_stream() {
    time::sleep(STREAM_AFTER).await;
}

/// Streams all messages that are sent while `work` runs.
pub(super) fn stream_while(work: Work, messages: MessageReceiver) -> Response<Body> {
    event_stream(stream::unfold((Some(work), messages), |(mut work, mut messages)| async {
        let event = loop {
            tokio::select! {
                biased;
                message = messages.recv() => break event(message.as_ref()?),
                // Dropping `work` drops its sender. The stream ends when the channel is empty.
                () = pending(&mut work) => work = None,
                () = time::sleep(KEEP_ALIVE) => break keep_alive(),
            }
        };
        Some((Ok(Frame::data(event)), (work, messages)))
    }))
}

/// Waits for `work`; never completes without any.
async fn pending(work: &mut Option<Work>) {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// Builds an SSE response from `frames`, with headers that disable caching and proxy buffering.
pub(super) fn event_stream(
    frames: impl futures_util::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static,
) -> Response<Body> {
    event_response(StreamBody::new(frames).boxed_unsync())
}

/// Builds an SSE response whose events are all known.
pub(super) fn whole_stream(events: Bytes) -> Response<Body> {
    event_response(Full::new(events).boxed_unsync())
}

fn event_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Formats the event that begins a stream before its first message: an id from which the client can resume.
pub(super) fn opening_event(id: EventId) -> Bytes {
    format!("id: {id}\nretry: {RETRY_MILLIS}\ndata: \n\n").into()
}

/// Formats a message as an SSE event.
pub(super) fn event(message: &Outbound) -> Bytes {
    write_event(BytesMut::new(), message)
}

/// Formats a message as an SSE event with an id.
pub(super) fn event_with_id(id: EventId, message: &Outbound) -> Bytes {
    let mut out = BytesMut::new();
    let _ = writeln!(out, "id: {id}");
    write_event(out, message)
}

fn write_event(mut out: BytesMut, message: &Outbound) -> Bytes {
    out.put_slice(b"data: ");
    message.write(&mut out);
    out.put_slice(b"\n\n");
    out.freeze()
}

/// Returns an SSE comment that keeps a silent connection open.
pub(super) fn keep_alive() -> Bytes {
    Bytes::from_static(b": \n\n")
}

/// Returns the next message as an SSE event, or a keep-alive comment after [`KEEP_ALIVE`] without one.
pub(super) async fn next_or_keep_alive(messages: &mut MessageReceiver) -> Option<Bytes> {
    match time::timeout(KEEP_ALIVE, messages.recv()).await {
        Ok(message) => message.map(|message| event(&message)),
        Err(_) => Some(keep_alive()),
    }
}

/// One item of a request's stream.
pub(super) enum StreamItem {
    Message(Box<Outbound>),
    /// A keep-alive; more messages may follow.
    KeepAlive,
}

/// The messages of one request, followed by its response.
pub(super) struct MessageStream {
    first: Option<Box<Outbound>>,
    messages: MessageReceiver,
    /// The pending response; `None` once it has been sent.
    pending: Option<Pending>,
    id: Raw,
}

impl MessageStream {
    /// Checks whether the stream begins before its first message.
    pub(super) fn is_silent(&self) -> bool {
        self.first.is_none()
    }

    /// Checks whether the response has been sent.
    pub(super) fn is_over(&self) -> bool {
        self.pending.is_none()
    }

    /// Returns the next item, or `None` after the response. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<StreamItem> {
        if let Some(first) = self.first.take() {
            return Some(StreamItem::Message(first));
        }
        let pending = self.pending.as_mut()?;
        let outcome = tokio::select! {
            biased;
            Some(message) = self.messages.recv() => return Some(StreamItem::Message(message)),
            outcome = pending => outcome,
            () = time::sleep(KEEP_ALIVE) => return Some(StreamItem::KeepAlive),
        };
        // Messages sent before the response go first.
        if let Ok(message) = self.messages.try_recv() {
            self.pending = Some(Box::pin(std::future::ready(outcome)));
            return Some(StreamItem::Message(message));
        }
        self.pending = None;
        Some(StreamItem::Message(Box::new(answer(self.id.clone(), outcome))))
    }
}

fn answer(id: Raw, outcome: Result<Raw, RpcError>) -> Outbound {
    Outbound::Answer { id, outcome, routing: Routing::default() }
}

fn json(status: StatusCode, message: &Outbound) -> Response<Body> {
    let result = match message {
        Outbound::Answer { id, outcome: Ok(result), .. } => Some((id, result)),
        _ => None,
    };
    if let Some((id, result)) = result.filter(|(_, it)| it.as_bytes().len() >= MIN_SHARED_BYTES) {
        let mut head = BytesMut::with_capacity(ENVELOPE_BYTES);
        let tail = envelope::write_around_result(&mut head, id);
        let parts = [head.freeze(), result.clone().into_bytes(), Bytes::from_static(tail)];
        return respond_with(status, Some("application/json"), BodyParts::new(parts).boxed_unsync());
    }
    let length = result.map_or(0, |(_, it)| it.as_bytes().len());
    let mut body = BytesMut::with_capacity(length + ENVELOPE_BYTES);
    message.write(&mut body);
    respond(status, Some("application/json"), body.freeze())
}

fn respond(status: StatusCode, kind: Option<&'static str>, body: Bytes) -> Response<Body> {
    respond_with(status, kind, Full::new(body).boxed_unsync())
}

fn respond_with(status: StatusCode, kind: Option<&'static str>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}
