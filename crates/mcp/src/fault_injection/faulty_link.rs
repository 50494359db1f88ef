//! A link that passes messages on to another link, and injects faults into requests.

use super::{FaultInjector, InjectedFault};
use crate::{
    Disconnect, Inbound, Link, Message, Outbound, Raw,
    envelope::write_answer,
    frame::{FRAME_LIMIT, Lines},
    link::{LinkIo, Verdict, Written},
    reader::decode_line,
};
use bytes::BytesMut;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Time limit for the inner link to close, including signals to a process and their grace periods.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Passes requests to the inner link.
struct FaultySender {
    to_server: mpsc::Sender<Outbound>,
    to_session: mpsc::Sender<Inbound>,
    written: Written,
    injector: Arc<dyn FaultInjector>,
    /// Delayed requests, by due time and id.
    delayed: BTreeMap<(Instant, u64), Outbound>,
}

/// Wraps a link. Requests no longer run in the tasks of their callers, which a fault could not delay.
pub(super) fn wrap(inner: Link, injector: Arc<dyn FaultInjector>) -> Link {
    Link::start(inner.stream_per_request, |link_io| run(inner, injector, link_io))
}

async fn run(mut inner: Link, injector: Arc<dyn FaultInjector>, link_io: LinkIo) -> Disconnect {
    let LinkIo { outbound, inbound, written, .. } = link_io;
    let sender = FaultySender {
        to_server: inner.outbound.clone(),
        to_session: inbound.clone(),
        written,
        injector,
        delayed: BTreeMap::new(),
    };
    let injected = tokio::select! {
        injected = sender.run(outbound) => injected,
        () = pass_inbound(&mut inner.inbound, &inbound) => None,
    };
    if let Some(disconnect) = &injected {
        let _ = inbound.send(Inbound::Disconnected(disconnect.clone())).await;
    }
    let disconnect = inner.close(CLOSE_TIMEOUT).await;
    injected.unwrap_or(disconnect)
}

/// Passes messages of the server on until its link ends. A session that is gone does not end it: the last messages to
/// the server are still being sent.
async fn pass_inbound(from_server: &mut mpsc::Receiver<Inbound>, to_session: &mpsc::Sender<Inbound>) {
    while let Some(message) = from_server.recv().await {
        let _ = to_session.send(message).await;
    }
}

impl FaultySender {
    /// Sends messages until the session closes the link, or until a fault ends it.
    async fn run(mut self, mut from_session: mpsc::Receiver<Outbound>) -> Option<Disconnect> {
        loop {
            let due = self.delayed.keys().next().map(|(due, _)| *due);
            tokio::select! {
                message = from_session.recv() => {
                    if let Some(disconnect) = self.send(message?).await {
                        return Some(disconnect);
                    }
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some((_, message)) = self.delayed.pop_first() {
                        self.pass(message).await;
                    }
                }
            }
        }
    }

    /// Sends one message, or injects its fault. Returns how the link ends, if it does.
    async fn send(&mut self, message: Outbound) -> Option<Disconnect> {
        self.written.add(1);
        let fault = match &message {
            Outbound::Request { id, method, params, .. } => {
                self.injector.inject(method, params.as_ref()).map(|fault| (*id, fault))
            }
            Outbound::Abandon { id } => {
                self.delayed.retain(|(_, delayed), _| delayed != id);
                None
            }
            _ => None,
        };
        match fault {
            None => self.pass(message).await,
            Some((id, InjectedFault::Delay(delay))) => {
                self.delayed.insert((Instant::now() + delay, id), message);
            }
            Some((_, InjectedFault::Drop)) => {}
            Some((_, InjectedFault::Disconnect)) => {
                return Some(Disconnect::because("an injected fault ended the connection"));
            }
            Some((id, InjectedFault::Answer(outcome))) => {
                let mut frame = BytesMut::new();
                write_answer(&mut frame, &request_id(id), &outcome);
                return self.deliver(frame).await;
            }
            Some((id, InjectedFault::Malformed)) => {
                let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[}}"#);
                return self.deliver(BytesMut::from(frame.as_bytes())).await;
            }
            Some((_, InjectedFault::ToolsChanged(times))) => {
                for _ in 0..times {
                    let method = "notifications/tools/list_changed".to_owned();
                    let news = Message::Notification { method, params: None };
                    let _ = self.to_session.send(Inbound::Message(news)).await;
                }
                self.pass(message).await;
            }
        }
        None
    }

    /// Passes a message to the inner link. If that has ended, its end is on the way to the session.
    async fn pass(&self, message: Outbound) {
        let _ = self.to_server.send(message).await;
    }

    /// Reads a frame as one from the server. Returns how the link ends, if the frame violates the protocol.
    async fn deliver(&self, frame: BytesMut) -> Option<Disconnect> {
        let mut lines = Lines::new(FRAME_LIMIT);
        lines.space().unsplit(frame);
        lines.space().extend_from_slice(b"\n");
        match decode_line(lines.next_line()?) {
            Verdict::Deliver(message) => {
                let _ = self.to_session.send(message).await;
                None
            }
            Verdict::Noise => None,
            Verdict::Violation(why) => Some(Disconnect::protocol_violation(why)),
        }
    }
}

fn request_id(id: u64) -> Raw {
    Raw::spliced(id.to_string())
}
