//! Defines links: a link carries JSON-RPC messages to and from one server.
//!
//! Each transport opens links in its own way; code above this module does not know which transport it uses. Dropping
//! `outbound` closes a link: the I/O task sees the closed channel, ends the connection (EOF on stdin, DELETE on HTTP,
//! a close frame on WebSocket) and returns a [`Disconnect`].

use crate::{Disconnect, Failure, Message, Raw, RpcError, envelope, envelope::ParsedFrame};
use bytes::{Bytes, BytesMut};
use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinHandle, time};

/// Capacity of the channels between a link and its session, in messages.
const CHANNEL_CAPACITY: usize = 64;

/// An open connection to one server.
#[derive(Debug)]
pub struct Link {
    /// Messages to the server.
    pub outbound: mpsc::Sender<Outbound>,
    /// Messages from the server; the channel closes when the connection ends.
    pub inbound: mpsc::Receiver<Inbound>,
    /// Whether each request has its own response stream (HTTP), so that closing the stream cancels the request.
    pub stream_per_request: bool,
    /// Sends requests in the task of the caller, if the transport can do that.
    pub(crate) direct: Option<Arc<dyn DirectLink>>,
    direct_answers: Arc<DirectAnswers>,
    written: Written,
    provisional: Arc<OnceLock<Disconnect>>,
    io: JoinHandle<Disconnect>,
}

/// Counter of outbound messages that were written completely.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<AtomicU64>);

/// I/O task's half of a link.
#[derive(Debug)]
pub(crate) struct LinkIo {
    pub(crate) outbound: mpsc::Receiver<Outbound>,
    pub(crate) inbound: mpsc::Sender<Inbound>,
    pub(crate) written: Written,
    pub(crate) direct_answers: Arc<DirectAnswers>,
    provisional: Arc<OnceLock<Disconnect>>,
}

/// Requests that the I/O task of a link may answer itself, which saves the session task a wakeup for each. An answer must not
/// overtake messages that the session has not handled yet.
#[derive(Debug, Default)]
pub(crate) struct DirectAnswers {
    /// The session's requests, once there is a session.
    requests: OnceLock<Arc<dyn AnswerSink>>,
    /// Number of inbound messages that the session has handled.
    handled: AtomicU64,
}

/// Completes requests.
pub(crate) trait AnswerSink: std::fmt::Debug + Send + Sync {
    /// Completes a request. Ignores an unknown id, which belongs to a late or unsolicited response.
    fn complete(&self, id: u64, outcome: Result<Raw, RpcError>);
}

/// Message to the server.
#[derive(Clone, Debug)]
pub enum Outbound {
    /// Request from the client.
    Request {
        /// Request id, unique on one link.
        id: u64,
        /// JSON-RPC method.
        method: Cow<'static, str>,
        /// JSON-RPC parameters.
        params: Option<Raw>,
        /// Values for HTTP headers.
        routing: Routing,
    },
    /// Notification from the client.
    Notification {
        /// JSON-RPC method.
        method: Cow<'static, str>,
        /// JSON-RPC parameters.
        params: Option<Raw>,
        /// Values for HTTP headers.
        routing: Routing,
    },
    /// Response to a request from the server.
    Answer {
        /// Id of the server's request.
        id: Raw,
        /// Result or error.
        outcome: Result<Raw, RpcError>,
        /// Values for HTTP headers.
        routing: Routing,
    },
    /// Tells the link that the caller no longer waits for this request; not sent as a message.
    Abandon {
        /// Id of the abandoned request.
        id: u64,
    },
}

/// Message fields that HTTP repeats in headers. Other transports ignore it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Negotiated protocol version, after the handshake.
    pub version: Option<Cow<'static, str>>,
    /// Whether to send the 2026-07-28 headers.
    pub modern: bool,
    /// Name of the tool or prompt, or URI of the resource.
    pub name: Option<String>,
    /// Arguments that the tool's schema wants repeated in headers, as header suffix and value.
    pub params: Vec<(String, String)>,
}

/// Event from the server's connection.
#[derive(Debug)]
pub enum Inbound {
    /// One JSON-RPC message.
    Message(Message),
    /// Message other than the response that arrived on the response stream of one request.
    OnRequestStream {
        /// Id of the request that owns the stream.
        request: u64,
        /// JSON-RPC message.
        message: Message,
    },
    /// Several messages in one frame.
    Batch(Vec<Inbound>),
    /// First output of the server, even if it was not a message.
    FirstOutput,
    /// Failure of one request that leaves the connection intact.
    Failed {
        /// Id of the failed request.
        id: u64,
        /// Reason of the failure.
        failure: Failure,
    },
    /// End of the connection; nothing follows.
    Disconnected(Disconnect),
    /// The server lost the session and the link started a new one: lists and other cached data may be stale.
    Renewed,
    /// The server completed the handshake without starting a session, so it cannot send requests.
    Stateless,
}

/// Opens links to one server, any number of times: a server that exits on an unknown request needs a second start.
pub trait Opener: Send + Sync {
    /// Opens one link.
    fn open(&self) -> Opening<'_>;

    /// Returns whether opening a link starts a process, so that a silent server may still be starting.
    fn starts_process(&self) -> bool {
        false
    }
}

/// Future that resolves to an open link.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Link, Failure>> + Send + 'a>>;

/// Sends requests in the tasks of their callers. HTTP can do that, because each request has a response of its own.
pub(crate) trait DirectLink: std::fmt::Debug + Send + Sync {
    /// Returns whether a request can be sent now, and need not wait for the handshake.
    fn is_ready(&self) -> bool;

    /// Sends a request that the session knows. Dropping the future closes the stream of its response.
    fn request(&self, message: Outbound) -> DirectRequest;
}

/// Future that resolves to the answer to a request.
pub(crate) type DirectRequest = Pin<Box<dyn Future<Output = DirectAnswer> + Send>>;

/// Outcome of a request on a [`DirectLink`].
#[derive(Debug)]
pub(crate) enum DirectAnswer {
    /// The answer, or why there is none.
    Answered(Result<Raw, Failure>),
    /// The session receives the answer, because it has to handle other messages first, or because the link's task
    /// sends the request again.
    ThroughSession,
}

impl Link {
    /// Spawns the I/O task of a link.
    #[expect(clippy::disallowed_methods, reason = "the link owns the handle and `close` joins it")]
    pub(crate) fn start<F, Fut>(stream_per_request: bool, io: F) -> Link
    where
        F: FnOnce(LinkIo) -> Fut,
        Fut: Future<Output = Disconnect> + Send + 'static,
    {
        let (outbound, to_send) = mpsc::channel(CHANNEL_CAPACITY);
        let (to_session, inbound) = mpsc::channel(CHANNEL_CAPACITY);
        let written = Written::default();
        let provisional = Arc::<OnceLock<_>>::default();
        let direct_answers = Arc::<DirectAnswers>::default();
        let link_io = LinkIo {
            outbound: to_send,
            inbound: to_session,
            written: written.clone(),
            direct_answers: direct_answers.clone(),
            provisional: provisional.clone(),
        };
        let io = tokio::spawn(io(link_io));
        Link { outbound, inbound, stream_per_request, direct: None, direct_answers, written, provisional, io }
    }

    /// Returns where the session sets its requests and counts the messages it has handled.
    pub(crate) fn direct_answers(&self) -> Arc<DirectAnswers> {
        self.direct_answers.clone()
    }

    /// Returns the counter of written messages, which stays readable after the link is gone.
    pub fn written(&self) -> Written {
        self.written.clone()
    }

    /// Closes the link and waits at most `grace` for the I/O task; then aborts it.
    pub async fn close(self, grace: Duration) -> Disconnect {
        let Link { outbound, inbound, provisional, mut io, .. } = self;
        drop((outbound, inbound));
        match time::timeout(grace, &mut io).await {
            Ok(Ok(disconnect)) => disconnect,
            Ok(Err(_panic)) => Disconnect::because("the connection's task failed"),
            Err(_) => {
                io.abort();
                let _ = io.await;
                let provisional = provisional.get().cloned();
                provisional.unwrap_or_else(|| Disconnect::because("the connection did not end in time"))
            }
        }
    }
}

impl DirectAnswers {
    /// Sets the requests that may be answered.
    pub(crate) fn set_requests(&self, requests: Arc<dyn AnswerSink>) {
        let _ = self.requests.set(requests);
    }

    /// Counts a message that the session has handled.
    pub(crate) fn count_handled(&self) {
        self.handled.fetch_add(1, Ordering::Release);
    }

    /// Returns whether the session has handled this many messages: all that it was sent.
    pub(crate) fn has_handled(&self, delivered: u64) -> bool {
        self.handled.load(Ordering::Acquire) == delivered
    }

    /// Returns the requests, if the session has handled all messages that it was sent.
    pub(crate) fn requests(&self, delivered: u64) -> Option<&Arc<dyn AnswerSink>> {
        self.requests.get().filter(|_| self.has_handled(delivered))
    }
}

impl LinkIo {
    /// Records a provisional [`Disconnect`] before shutdown, for a [`Link::close`] that times out.
    pub(crate) fn set_provisional_disconnect(&self, disconnect: Disconnect) {
        let _ = self.provisional.set(disconnect);
    }
}

impl Written {
    /// Returns the number of messages written so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn add(&self, messages: u64) {
        self.0.fetch_add(messages, Ordering::AcqRel);
    }
}

impl Outbound {
    /// Appends the message as JSON on one line, without a line end. An [`Outbound::Abandon`] writes nothing.
    pub fn write(&self, out: &mut BytesMut) {
        let start = out.len();
        self.write_json(out);
        // Payloads are forwarded verbatim and may span several lines. Between JSON tokens a space is equivalent, and
        // JSON strings contain no raw line ends.
        let written = &mut out[start..];
        if memchr::memchr2(b'\n', b'\r', written).is_some() {
            written.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
    }

    fn write_json(&self, out: &mut BytesMut) {
        match self {
            Outbound::Request { id, method, params, .. } => {
                envelope::write_request(out, *id, method, params.as_ref());
            }
            Outbound::Notification { method, params, .. } => {
                envelope::write_notification(out, method, params.as_ref());
            }
            Outbound::Answer { id, outcome, .. } => envelope::write_answer(out, id, outcome),
            Outbound::Abandon { .. } => {}
        }
    }
}

/// Result of reading one frame.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Deliver this to the session.
    Deliver(Inbound),
    /// Not JSON-RPC: skip and count it.
    Noise,
    /// Protocol violation that ends the connection.
    Violation(String),
}

/// Decodes a frame. An unreadable response fails its own request; a frame without a request id fails the connection.
pub(crate) fn decode_frame(frame: &Bytes) -> Verdict {
    classify(envelope::read(frame))
}

pub(crate) fn classify(reading: ParsedFrame) -> Verdict {
    match reading {
        ParsedFrame::Message(message) => Verdict::Deliver(Inbound::Message(message)),
        ParsedFrame::Noise => Verdict::Noise,
        ParsedFrame::Malformed { id: Some(id), why } => Verdict::Deliver(failed_request(id, why)),
        ParsedFrame::Malformed { id: None, why } => Verdict::Violation(why.into_owned()),
        ParsedFrame::Batch(readings) => {
            let mut items = Vec::with_capacity(readings.len());
            for reading in readings {
                match classify(reading) {
                    Verdict::Deliver(item) => items.push(item),
                    Verdict::Noise => {}
                    violation @ Verdict::Violation(_) => return violation,
                }
            }
            Verdict::Deliver(Inbound::Batch(items))
        }
    }
}

/// Builds the failure of a request whose response arrived unreadable.
pub(crate) fn failed_request(id: u64, why: impl Into<String>) -> Inbound {
    Inbound::Failed { id, failure: Failure::protocol(why) }
}
