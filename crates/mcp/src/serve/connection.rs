//! Serves one client on one bidirectional message stream: stdio, WebSocket or legacy SSE.
//!
//! The conversation owns the tasks that answer requests. A cancelled request aborts its task. When the client closes
//! its side, pending tasks get [`DRAIN_TIMEOUT`] to finish and are then aborted.

use super::{
    Incoming, MessageReceiver, MessageSender, Service,
    announcements::Announcement,
    check_batch,
    client::{ClientRef, Peer},
    dispatch, listen,
};
use crate::{
    Message, News, Outbound, Raw, Routing, RpcError,
    envelope::{self, ParsedFrame},
};
use bytes::Bytes;
use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    task::{self, AbortHandle, JoinSet},
    time,
};

/// Maximum number of messages waiting to be written.
const OUTBOUND_CAPACITY: usize = 64;

/// Maximum number of requests of one client that run concurrently.
const MAX_CONCURRENT_REQUESTS: usize = 256;

/// Maximum number of `subscriptions/listen` requests on one connection.
const MAX_SUBSCRIPTIONS: usize = 64;

/// Time limit for pending responses after the client has closed its side.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves a client until the connection ends. Boxed, so it is compiled once for all kinds of streams.
pub(super) type ConnectionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// State of one client connection.
struct Connection {
    service: Service,
    peer: Arc<Peer>,
    out: MessageSender,
    answering: JoinSet<()>,
    /// Tasks of `subscriptions/listen` requests. They do not count towards [`MAX_CONCURRENT_REQUESTS`].
    listening: JoinSet<()>,
    running: HashMap<Vec<u8>, AbortHandle>,
    http: Option<Arc<::http::request::Parts>>,
}

/// Starts serving one client. Reads frames from `frames` and returns the receiver of outgoing messages.
///
/// The future completes when `frames` is closed and pending requests have ended.
pub(super) fn serve(
    service: Service,
    http: Option<Arc<::http::request::Parts>>,
    frames: mpsc::Receiver<Bytes>,
) -> (ConnectionFuture, MessageReceiver) {
    let (out, written) = mpsc::channel(OUTBOUND_CAPACITY);
    let (answering, listening, running) = (JoinSet::new(), JoinSet::new(), HashMap::new());
    let peer = Arc::default();
    let connection = Connection { service, peer, out, answering, listening, running, http };
    (Box::pin(connection.run(frames)), written)
}

impl Connection {
    async fn run(mut self, mut frames: mpsc::Receiver<Bytes>) {
        let mut announcements = self.service.announcements();
        loop {
            tokio::select! {
                frame = frames.recv(), if self.answering.len() < MAX_CONCURRENT_REQUESTS => match frame {
                    Some(frame) => self.handle_frame(envelope::read(&frame)).await,
                    None => break,
                },
                Some(_) = self.answering.join_next() => {}
                Some(_) = self.listening.join_next() => {}
                announcement = announcements.next() => match announcement {
                    Some(Announcement::News(news)) => self.announce(&news).await,
                    Some(Announcement::Direct(message)) => _ = self.out.send(Box::new(message)).await,
                    None => break,
                },
            }
        }
        self.listening.shutdown().await;
        // The client may have closed only its sending side and still be reading.
        let _ =
            time::timeout(DRAIN_TIMEOUT, async { while self.answering.join_next().await.is_some() {} }).await;
        self.answering.shutdown().await;
    }

    async fn handle_frame(&mut self, reading: ParsedFrame) {
        match reading {
            ParsedFrame::Message(Message::Request { id, method, params }) => {
                self.handle_request(id, method, params).await;
            }
            ParsedFrame::Message(Message::Notification { method, params }) => {
                self.handle_notification(&method, params)
            }
            ParsedFrame::Message(Message::Answer { id, outcome }) => self.peer.answered(id, outcome),
            ParsedFrame::Batch(items) => match check_batch(items.len()) {
                Ok(()) => {
                    for item in items {
                        self.wait_for_capacity().await;
                        Box::pin(self.handle_frame(item)).await;
                    }
                }
                Err(error) => self.send_answer(serde_json::Value::Null.into(), Err(error)).await,
            },
            ParsedFrame::Noise => {}
            ParsedFrame::Malformed { id, why } => {
                let id = id.map_or_else(|| serde_json::Value::Null.into(), |id| serde_json::json!(id).into());
                self.send_answer(id, Err(RpcError::new(RpcError::PARSE_ERROR, why))).await;
            }
        }
    }

    /// Waits until another request may start within [`MAX_CONCURRENT_REQUESTS`].
    async fn wait_for_capacity(&mut self) {
        while self.answering.len() >= MAX_CONCURRENT_REQUESTS && self.answering.join_next().await.is_some() {}
    }

    /// Checks whether the client may open another subscription.
    async fn can_subscribe(&mut self) -> bool {
        if self.listening.len() >= MAX_SUBSCRIPTIONS {
            // Give subscriptions that were just cancelled a chance to end.
            task::yield_now().await;
            while self.listening.try_join_next().is_some() {}
        }
        self.listening.len() < MAX_SUBSCRIPTIONS
    }

    async fn handle_request(&mut self, id: Raw, method: String, params: Option<Raw>) {
        let key = id.as_bytes().to_vec();
        let is_subscription = method == "subscriptions/listen";
        if is_subscription && !self.can_subscribe().await {
            let why =
                format!("too many subscriptions on this connection (limit {MAX_SUBSCRIPTIONS}); cancel one");
            return self.send_answer(id, Err(RpcError::new(RpcError::INVALID_REQUEST, why))).await;
        }
        let request = Incoming::new(method, params, self.http.clone());
        let answer = dispatch::answer(
            self.service.clone(),
            request,
            None,
            id.clone(),
            self.peer.clone(),
            self.out.clone(),
        );
        let out = self.out.clone();
        let tasks = if is_subscription { &mut self.listening } else { &mut self.answering };
        let task = tasks.spawn(async move {
            let outcome = answer.await;
            let answer = Outbound::Answer { id, outcome, routing: Routing::default() };
            let _ = out.send(Box::new(answer)).await;
        });
        self.running.retain(|_, task| !task.is_finished());
        self.running.insert(key, task);
    }

    fn handle_notification(&mut self, method: &str, params: Option<Raw>) {
        if method == "notifications/cancelled" {
            let id = params.and_then(|params| params.member("requestId"));
            if let Some(task) = id.and_then(|id| self.running.remove(id.as_bytes())) {
                task.abort();
            }
            return;
        }
        let client = ClientRef::new(&self.peer, Some(&self.out));
        self.service.handler().notified(method, params, &client);
    }

    /// Sends a notification to a handshake-era client. 2026-07-28 clients receive it through their subscriptions.
    async fn announce(&self, news: &News) {
        let Some((method, params)) = listen::notification(news).filter(|_| self.peer.should_receive(news))
        else {
            return;
        };
        let routing = Routing::default();
        let message = Outbound::Notification { method: method.into(), params, routing };
        match news {
            // Drop log lines when the client reads slowly, so that they never block the conversation.
            News::Log(_) => _ = self.out.try_send(Box::new(message)),
            _ => _ = self.out.send(Box::new(message)).await,
        }
    }

    async fn send_answer(&self, id: Raw, outcome: Result<Raw, RpcError>) {
        let answer = Outbound::Answer { id, outcome, routing: Routing::default() };
        let _ = self.out.send(Box::new(answer)).await;
    }
}
