//! The task that holds one conversation: owns the link and the table of unanswered requests.
//!
//! The loop never waits for the link to take a message: what does not fit waits in `queue`, and callers wait while
//! that is long. So a server that stops reading never keeps us from reading it.

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

/// How many messages may wait for the link before callers have to.
const QUEUE: usize = 64;

/// How many messages may wait for the link before we stop listening: a server that asks much and reads nothing.
const FLOOD: usize = 1_024;

/// How many things that came together are looked at before anything else is.
const AT_ONCE: usize = 64;

/// How long a closing link is waited for when its time was up before.
const OVERDUE_GRACE: Duration = Duration::from_millis(400);

/// How often, while nothing is taken from the handles, we look whether there are any left.
const LOOK: Duration = Duration::from_secs(1);

/// What a handle wants.
pub(crate) enum Ask {
    Request { message: Outbound, reply: Reply, ears: Ears, departure: Departure },
    Say(Outbound),
    Tell(News),
}

type Reply = oneshot::Sender<Result<Raw, Failure>>;

pub(crate) struct Conversation {
    link: Link,
    written: Written,
    shared: Arc<Shared>,
    desk: NewsDesk,
    close_grace: Duration,
    unanswered: HashMap<u64, Waiting>,
    queue: VecDeque<Outbound>,
    /// How many messages the link was given.
    given: u64,
    answers: Answers,
    goodbye: Option<Goodbye>,
}

struct Waiting {
    reply: Reply,
    ears: Ears,
    /// Whether it is part of the handshake, which must not be cancelled.
    handshake: bool,
    /// Whether it is work for somebody: what the server says and asks meanwhile may belong to it.
    is_work: bool,
    departure: Departure,
    /// The position of the request among all that the link was given; `None` while it is still queued here.
    given: Option<u64>,
}

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
                // While nothing is taken from the handles, their end has to be looked for.
                () = time::sleep(LOOK), if self.queue.len() >= QUEUE => Event::Waited,
            };
            match event {
                Event::Asked(Some(ask)) => self.take_up_with(ask, &mut asked),
                Event::Asked(None) | Event::Heard(None) => break,
                Event::Abandoned(id) => self.abandon(id),
                Event::Heard(Some(heard)) => self.hear_with(heard),
                // What they still ask then is asked for nobody.
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
        // Not only dropped: what is being put in at this very moment would lie there, and its asker would wait for ever.
        asked.close();
        while asked.recv().await.is_some() {}
        self.take_leave();
        self.shared.unanswered.store(0, Ordering::Release);
        self.end(farewell).await;
    }

    /// Tells a server on a byte stream that nobody waits for its answers any more: some end only after the last one,
    /// which for a subscription would be never.
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

    /// Answers every waiter, then lets the link end in its own time.
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

    fn disappoint(&mut self, goodbye: &Arc<Goodbye>) {
        let ordered = !self.link.stream_per_request;
        for (_, waiting) in self.unanswered.drain() {
            waiting.disappoint(&self.written, ordered, goodbye);
        }
    }

    /// Takes up what is asked, and what is asked at the same time: to come back for each would cost more than it takes.
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

    /// The same of what is heard.
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
            // Whoever asked has left meanwhile.
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

    /// Gives the link what it has room for.
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

    /// Says that the answer to a request is not wanted any more.
    fn cancel(&mut self, id: u64) {
        // Over HTTP in the stateless era, closing the stream says it.
        let closing = |terms: &Terms| terms.era == Era::Modern && self.link.stream_per_request;
        if let Some(terms) = self.shared.terms.get().filter(|terms| !closing(terms)) {
            let params = Some(json!({ "requestId": id, "reason": "nobody waits for it any more" }).into());
            let routing = terms.routing(None, Vec::new());
            let method = "notifications/cancelled".into();
            self.queue.push_back(Outbound::Notification { method, params, routing });
        }
    }
}

/// Whether a request is made for somebody, rather than to keep the conversation going.
fn is_work(method: &str) -> bool {
    let upkeep = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    !upkeep.contains(&method) && !method.ends_with("/list") && !method.ends_with("/listen")
}

impl Waiting {
    fn disappoint(self, written: &Written, ordered: bool, goodbye: &Arc<Goodbye>) {
        let sent = match self.given {
            None => Sent::No,
            Some(place) if ordered && place > written.count() => Sent::No,
            Some(_) => Sent::Unknown,
        };
        let _ = self.reply.send(Err(Failure::closed(sent, goodbye.clone())));
    }
}
