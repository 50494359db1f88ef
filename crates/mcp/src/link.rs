//! A link carries JSON-RPC messages to and from one server.
//!
//! Every transport is one way of opening a link; past this file nobody knows which it was. Hanging up is dropping
//! `outbound`: the I/O task sees the closed channel, ends the conversation in its own way (EOF on stdin, DELETE on
//! HTTP, a close frame on WebSocket) and finishes with a [`Goodbye`].

use crate::{Failure, Goodbye, Message, Raw, RpcError, envelope, envelope::Reading};
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

/// How many messages may wait between a link and its session, either way.
const QUEUE: usize = 64;

/// An open connection to one server.
#[derive(Debug)]
pub struct Link {
    /// Where messages to the server go.
    pub outbound: mpsc::Sender<Outbound>,
    /// Where the server's messages come from; ends when the server is gone.
    pub inbound: mpsc::Receiver<Inbound>,
    /// Whether closing a request's own stream is how it is cancelled (HTTP).
    pub stream_per_request: bool,
    written: Written,
    parting: Arc<OnceLock<Goodbye>>,
    io: JoinHandle<Goodbye>,
}

/// How many outbound messages left this process whole.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<AtomicU64>);

/// The I/O task's half of a link.
#[derive(Debug)]
pub(crate) struct FarEnd {
    pub(crate) outbound: mpsc::Receiver<Outbound>,
    pub(crate) inbound: mpsc::Sender<Inbound>,
    pub(crate) written: Written,
    parting: Arc<OnceLock<Goodbye>>,
}

/// Something for the server.
#[derive(Clone, Debug)]
pub enum Outbound {
    /// A request of ours.
    Request {
        /// Its id, never used twice on one link.
        id: u64,
        /// What is asked.
        method: Cow<'static, str>,
        /// With which parameters.
        params: Option<Raw>,
        /// What an HTTP request says in its headers, beside the body.
        routing: Routing,
    },
    /// A notification of ours.
    Notification {
        /// What about.
        method: Cow<'static, str>,
        /// The details.
        params: Option<Raw>,
        /// What an HTTP request says in its headers, beside the body.
        routing: Routing,
    },
    /// The answer to a request of theirs.
    Answer {
        /// Their id.
        id: Raw,
        /// Our answer.
        outcome: Result<Raw, RpcError>,
        /// What an HTTP request says in its headers, beside the body.
        routing: Routing,
    },
    /// Nobody waits for this request any more.
    Abandon {
        /// The request.
        id: u64,
    },
}

/// What HTTP repeats of a message in its headers. Other transports ignore it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// The protocol version in force, once there is one.
    pub version: Option<Cow<'static, str>>,
    /// Whether the 2026-07-28 headers are to be sent.
    pub modern: bool,
    /// The tool, prompt or resource that is addressed.
    pub name: Option<String>,
    /// The arguments that the tool's schema wants repeated, as header suffix and value.
    pub params: Vec<(String, String)>,
}

/// Something from the server.
#[derive(Debug)]
pub enum Inbound {
    /// A message.
    Message(Message),
    /// A message that came on the stream of one request, and is not its answer.
    Aside {
        /// The request.
        request: u64,
        /// The message.
        message: Message,
    },
    /// Several messages in one frame.
    Batch(Vec<Inbound>),
    /// The server has shown its first sign of life, even if that was no message.
    Stirred,
    /// A request failed in a way that only concerns this request.
    Failed {
        /// The request.
        id: u64,
        /// How it failed.
        failure: Failure,
    },
    /// The connection has ended, and nothing follows.
    Gone(Goodbye),
    /// The server lost our session and the link began a new one: what was read before may be stale.
    Renewed,
}

/// Opens a link, as often as asked: a server that exits on an unknown request is started again.
pub trait Opener: Send + Sync {
    /// Opens one link.
    fn open(&self) -> Opening<'_>;

    /// Whether a server that does not answer yet may still be starting.
    fn starts_process(&self) -> bool {
        false
    }
}

/// A link being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Link, Failure>> + Send + 'a>>;

impl Link {
    /// Starts the I/O task of a link.
    #[expect(clippy::disallowed_methods, reason = "the link owns the handle and `close` joins it")]
    pub(crate) fn start<F, Fut>(stream_per_request: bool, io: F) -> Link
    where
        F: FnOnce(FarEnd) -> Fut,
        Fut: Future<Output = Goodbye> + Send + 'static,
    {
        let (outbound, to_send) = mpsc::channel(QUEUE);
        let (heard, inbound) = mpsc::channel(QUEUE);
        let written = Written::default();
        let parting = Arc::<OnceLock<_>>::default();
        let far_end =
            FarEnd { outbound: to_send, inbound: heard, written: written.clone(), parting: parting.clone() };
        let io = tokio::spawn(io(far_end));
        Link { outbound, inbound, stream_per_request, written, parting, io }
    }

    /// The count of messages that left whole, readable after the link is gone.
    pub fn written(&self) -> Written {
        self.written.clone()
    }

    /// Hangs up and waits for the I/O task, at most `grace`; then drops what it holds.
    pub async fn close(self, grace: Duration) -> Goodbye {
        let Link { outbound, inbound, parting, mut io, .. } = self;
        drop((outbound, inbound));
        match time::timeout(grace, &mut io).await {
            Ok(Ok(goodbye)) => goodbye,
            Ok(Err(_panic)) => Goodbye::because("the connection's task failed"),
            Err(_) => {
                io.abort();
                let _ = io.await;
                let parting = parting.get().cloned();
                parting.unwrap_or_else(|| Goodbye::because("the connection did not end in time"))
            }
        }
    }
}

impl FarEnd {
    /// Says how things stand at the beginning of an end that may take too long to be waited for.
    pub(crate) fn part(&self, so_far: Goodbye) {
        let _ = self.parting.set(so_far);
    }
}

impl Written {
    /// How many messages left whole so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn add(&self, messages: u64) {
        self.0.fetch_add(messages, Ordering::AcqRel);
    }
}

impl Outbound {
    /// Appends the message as JSON on one line, without a line end. An [`Outbound::Abandon`] has no text.
    pub fn write(&self, out: &mut BytesMut) {
        let start = out.len();
        self.write_json(out);
        // Payloads are passed on as they came, which may be on several lines. Between JSON's tokens a space is as
        // good; inside its strings there are no line ends.
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

/// What reading a frame means for the connection.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Pass it on.
    Deliver(Inbound),
    /// Chatter; count it.
    Noise,
    /// The connection cannot be trusted any further.
    Breach(String),
}

/// Reads a frame into what the session hears: a garbled answer fails its own request, and only a frame that names
/// none fails the connection.
pub(crate) fn hear(frame: &Bytes) -> Verdict {
    judge(envelope::read(frame))
}

pub(crate) fn judge(reading: Reading) -> Verdict {
    match reading {
        Reading::Message(message) => Verdict::Deliver(Inbound::Message(message)),
        Reading::Noise => Verdict::Noise,
        Reading::Garbled { id: Some(id), why } => Verdict::Deliver(lost(id, why)),
        Reading::Garbled { id: None, why } => Verdict::Breach(why.into_owned()),
        Reading::Batch(readings) => {
            let mut items = Vec::with_capacity(readings.len());
            for reading in readings {
                match judge(reading) {
                    Verdict::Deliver(item) => items.push(item),
                    Verdict::Noise => {}
                    breach @ Verdict::Breach(_) => return breach,
                }
            }
            Verdict::Deliver(Inbound::Batch(items))
        }
    }
}

/// The answer to this request arrived, but not in one piece.
pub(crate) fn lost(id: u64, why: impl Into<String>) -> Inbound {
    Inbound::Failed { id, failure: Failure::protocol(why) }
}
