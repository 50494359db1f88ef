//! Runs the session task, which owns the link and the table of pending requests.
//!
//! The loop never waits for the link to accept a message: overflow goes to `queue`, and callers wait while that is
//! full. A server that stops reading therefore never blocks us from reading its messages.

mod hearing;

use super::{
    answers::Answers,
    departure::Departure,
    ears::Ears,
    host::Host,
    news::{News, NewsDesk},
    terms::{Era, Terms},
    wire::Shared,
};
use crate::{Failure, Goodbye, Inbound, Link, Outbound, Raw, RpcError, Sent, Written};
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time,
};

/// Length of `queue` at which the task stops accepting requests from handles.
const QUEUE: usize = 64;

/// Length of `queue` at which the task stops reading: the server sends many requests and does not read our responses.
const FLOOD: usize = 1_024;

/// Maximum number of ready items handled before the next `select!`.
const AT_ONCE: usize = 64;

/// Grace period for closing the link when the caller's deadline has already passed.
const OVERDUE_GRACE: Duration = Duration::from_millis(400);

/// Interval for checking whether all handles were dropped, while `queue` is full and the task does not read from
/// them.
const LOOK: Duration = Duration::from_secs(1);

/// Command from a handle to the session task.
pub(crate) enum Ask {
    Request { message: Outbound, reply: Reply, ears: Ears, departure: Departure },
    Say(Outbound),
    Tell(News),
}

/// Channel for the outcome of a request.
type Reply = oneshot::Sender<Result<Raw, Failure>>;

/// State of the session task.
pub(crate) struct Conversation {
    link: Link,
    written: Written,
    shared: Arc<Shared>,
    desk: NewsDesk,
    close_grace: Duration,
    unanswered: HashMap<u64, Waiting>,
    queue: VecDeque<Outbound>,
    /// Number of messages passed to the link.
    given: u64,
    answers: Answers,
    goodbye: Option<Goodbye>,
}

/// Pending request.
struct Waiting {
    reply: Reply,
    ears: Ears,
    /// Whether this is a handshake request; those must not be cancelled.
    handshake: bool,
    /// Whether a caller made this request, so that the server's log lines and questions may belong to it.
    is_work: bool,
    departure: Departure,
    /// Position among all messages passed to the link; `None` while the request is still in `queue`.
    given: Option<u64>,
}

/// Event in the loop of the session task.
enum Event {
    Asked(Option<Ask>),
    Abandoned(u64),
    Heard(Option<Inbound>),
    Room,
    Waited,
    Answered(Raw, Result<Raw, RpcError>),
}

impl Conversation {
    pub(crate) fn new(
        link: Link,
        host: Arc<dyn Host>,
        shared: Arc<Shared>,
        desk: NewsDesk,
        close_grace: Duration,
    ) -> Conversation {
        Conversation {
            written: link.written(),
            link,
            shared,
            desk,
            close_grace,
            unanswered: HashMap::new(),
            queue: VecDeque::new(),
            given: 0,
            answers: Answers::new(host),
            goodbye: None,
        }
    }

    /// Runs until the link ends or the last handle is dropped, then publishes the [`Goodbye`] in `farewell`.
    pub(crate) async fn run(
        mut self,
        mut asked: mpsc::Receiver<Ask>,
        mut abandoned: mpsc::UnboundedReceiver<u64>,
        farewell: &watch::Sender<Option<Arc<Goodbye>>>,
    ) {
        loop {
            let event = tokio::select! {
                heard = self.link.inbound.recv(), if self.queue.len() < FLOOD => Event::Heard(heard),
                ask = asked.recv(), if self.queue.len() < QUEUE => Event::Asked(ask),
                Some(id) = abandoned.recv() => Event::Abandoned(id),
                Ok(_) = self.link.outbound.reserve(), if !self.queue.is_empty() => Event::Room,
                Some((id, outcome)) = self.answers.next() => Event::Answered(id, outcome),
                // A full queue stops `asked.recv()`, so the closed channel needs polling.
                () = time::sleep(LOOK), if self.queue.len() >= QUEUE => Event::Waited,
            };
            match event {
                Event::Asked(Some(ask)) => self.take_up_with(ask, &mut asked),
                Event::Asked(None) | Event::Heard(None) => break,
                Event::Abandoned(id) => self.abandon(id),
                Event::Heard(Some(heard)) => self.hear_with(heard),
                // No handle is left, so nothing waits for the queued requests.
                Event::Waited if asked.is_closed() => break,
                Event::Room | Event::Waited => {}
                Event::Answered(id, outcome) => self.say_answer(id, outcome),
            }
            if self.goodbye.is_some() {
                break;
            }
            self.pass_on();
            self.shared.unanswered.store(self.unanswered.len(), Ordering::Release);
        }
        // Close before draining: a request that is being sent concurrently would stay in the channel and its caller
        // would wait forever.
        asked.close();
        while asked.recv().await.is_some() {}
        self.take_leave();
        self.shared.unanswered.store(0, Ordering::Release);
        self.end(farewell).await;
    }

    /// Cancels pending requests on a byte-stream link: some servers exit only after their last response, which a
    /// subscription never gets.
    fn take_leave(&mut self) {
        if self.goodbye.is_some() || self.link.stream_per_request {
            return;
        }
        let given =
            self.unanswered.iter().filter(|(_, waiting)| waiting.given.is_some() && !waiting.handshake);
        let given: Vec<u64> = given.map(|(id, _)| *id).collect();
        given.into_iter().for_each(|id| self.cancel(id));
        self.pass_on();
    }

    /// Fails every pending request and closes the link.
    async fn end(mut self, farewell: &watch::Sender<Option<Arc<Goodbye>>>) {
        self.answers.abort_all();
        let overdue = self.shared.overdue.load(Ordering::Acquire);
        let grace = if overdue { self.close_grace.min(OVERDUE_GRACE) } else { self.close_grace };
        if let Some(goodbye) = self.goodbye.take() {
            let goodbye = Arc::new(goodbye);
            farewell.send_replace(Some(goodbye.clone()));
            self.disappoint(&goodbye);
            self.link.close(grace).await;
        } else {
            let unanswered = std::mem::take(&mut self.unanswered);
            let (written, ordered) = (self.written.clone(), !self.link.stream_per_request);
            let goodbye = Arc::new(self.link.close(grace).await);
            farewell.send_replace(Some(goodbye.clone()));
            for waiting in unanswered.into_values() {
                waiting.disappoint(&written, ordered, &goodbye);
            }
        }
    }

    /// Fails all pending requests.
    fn disappoint(&mut self, goodbye: &Arc<Goodbye>) {
        let ordered = !self.link.stream_per_request;
        for (_, waiting) in self.unanswered.drain() {
            waiting.disappoint(&self.written, ordered, goodbye);
        }
    }

    /// Accepts one command and those already queued behind it; one `select!` per command would cost more than the
    /// command.
    fn take_up_with(&mut self, first: Ask, asked: &mut mpsc::Receiver<Ask>) {
        self.take_up(first);
        for _ in 1..AT_ONCE {
            if self.queue.len() >= QUEUE {
                return;
            }
            let Ok(ask) = asked.try_recv() else { return };
            self.take_up(ask);
        }
    }

    /// Handles one inbound event and those already queued behind it.
    fn hear_with(&mut self, first: Inbound) {
        self.hear(first);
        for _ in 1..AT_ONCE {
            if self.queue.len() >= FLOOD || self.goodbye.is_some() {
                return;
            }
            let Ok(heard) = self.link.inbound.try_recv() else { return };
            self.hear(heard);
        }
    }

    fn take_up(&mut self, ask: Ask) {
        match ask {
            // The caller has dropped its request.
            Ask::Request { reply, .. } if reply.is_closed() => {}
            Ask::Request { message, reply, ears, departure } => {
                if let Outbound::Request { id, method, .. } = &message {
                    let handshake = matches!(&**method, "initialize" | "server/discover");
                    let is_work = !handshake && is_work(method);
                    let waiting = Waiting { reply, ears, handshake, is_work, departure, given: None };
                    self.unanswered.insert(*id, waiting);
                }
                self.queue.push_back(message);
            }
            Ask::Say(message) => self.queue.push_back(message),
            Ask::Tell(news) => self.desk.tell(news),
        }
    }

    /// Passes queued messages to the link while it has capacity.
    fn pass_on(&mut self) {
        while !self.queue.is_empty() {
            let Ok(permit) = self.link.outbound.try_reserve() else { return };
            let Some(message) = self.queue.pop_front() else { return };
            if let Outbound::Request { id, .. } = message
                && let Some(waiting) = self.unanswered.get_mut(&id)
            {
                if !waiting.departure.leave() {
                    continue;
                }
                waiting.given = Some(self.given + 1);
            }
            self.given += 1;
            permit.send(message);
        }
    }

    /// Drops a request that its caller no longer waits for, and cancels it at the server if it was sent.
    fn abandon(&mut self, id: u64) {
        let Some(waiting) = self.unanswered.remove(&id) else { return };
        if waiting.given.is_none() {
            self.queue
                .retain(|message| !matches!(message, Outbound::Request { id: queued, .. } if *queued == id));
            return;
        }
        if !waiting.handshake {
            self.cancel(id);
        }
        self.queue.push_back(Outbound::Abandon { id });
    }

    /// Queues `notifications/cancelled` for a request.
    fn cancel(&mut self, id: u64) {
        // Over HTTP in the 2026-07-28 era, closing the stream cancels the request.
        let closing = |terms: &Terms| terms.era == Era::Modern && self.link.stream_per_request;
        if let Some(terms) = self.shared.terms.get().filter(|terms| !closing(terms)) {
            let params = Some(json!({ "requestId": id, "reason": "nobody waits for it any more" }).into());
            let routing = terms.routing(None, Vec::new());
            let method = "notifications/cancelled".into();
            self.queue.push_back(Outbound::Notification { method, params, routing });
        }
    }
}

/// Returns whether a request does work for a caller, as opposed to maintaining the session.
fn is_work(method: &str) -> bool {
    let upkeep = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    !upkeep.contains(&method) && !method.ends_with("/list") && !method.ends_with("/listen")
}

impl Waiting {
    /// Fails the request. On an ordered link, the count of written messages tells whether it was sent.
    fn disappoint(self, written: &Written, ordered: bool, goodbye: &Arc<Goodbye>) {
        let sent = match self.given {
            None => Sent::No,
            Some(place) if ordered && place > written.count() => Sent::No,
            Some(_) => Sent::Unknown,
        };
        let _ = self.reply.send(Err(Failure::closed(sent, goodbye.clone())));
    }
}
