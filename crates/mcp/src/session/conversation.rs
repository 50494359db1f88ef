//! The task that holds one conversation: owns the link and the table of unanswered requests.
//!
//! The loop never waits for the link to take a message: what does not fit waits in `queue`, and callers wait while
//! that is long. So a server that stops reading never keeps us from reading it.

use super::{
    answers::Answers,
    departure::Departure,
    host::Host,
    news::{News, NewsDesk},
    terms::{Era, Terms},
    wire::{OnProgress, Progress, Shared},
};
use crate::{Failure, Goodbye, Inbound, Link, Message, Outbound, Raw, RpcError, Sent, Written};
use serde::Deserialize;
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

/// How long a closing link is waited for when its time was up before.
const OVERDUE_GRACE: Duration = Duration::from_millis(400);

/// How often, while nothing is taken from the handles, we look whether there are any left.
const LOOK: Duration = Duration::from_secs(1);

/// What a handle wants.
pub(crate) enum Ask {
    Request { message: Outbound, reply: Reply, on_progress: Option<OnProgress>, departure: Departure },
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
    on_progress: Option<OnProgress>,
    /// Whether it is part of the handshake, which must not be cancelled.
    handshake: bool,
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
                Event::Asked(Some(ask)) => self.take_up(ask),
                Event::Asked(None) | Event::Heard(None) => break,
                Event::Abandoned(id) => self.abandon(id),
                Event::Heard(Some(heard)) => self.hear(heard),
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

    fn take_up(&mut self, ask: Ask) {
        match ask {
            // Whoever asked has left meanwhile.
            Ask::Request { reply, .. } if reply.is_closed() => {}
            Ask::Request { message, reply, on_progress, departure } => {
                if let Outbound::Request { id, method, .. } = &message {
                    let handshake = matches!(&**method, "initialize" | "server/discover");
                    let waiting = Waiting { reply, on_progress, handshake, departure, given: None };
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

    fn hear(&mut self, heard: Inbound) {
        match heard {
            Inbound::Stirred => self.shared.stirred.notify_one(),
            Inbound::Message(Message::Answer { id, outcome }) => self.answer(id, outcome),
            Inbound::Message(Message::Request { id, method, params }) => {
                self.asked(id, &method, params);
            }
            Inbound::Message(Message::Notification { method, params }) => {
                self.noted(&method, params);
            }
            Inbound::Failed { id, failure } => self.settle(id, Err(failure)),
            Inbound::Batch(items) => self.hear_batch(items),
            Inbound::Renewed => self.desk.tell(News::Renewed),
            Inbound::Gone(goodbye) => self.goodbye = Some(goodbye),
        }
    }

    fn hear_batch(&mut self, items: Vec<Inbound>) {
        let allowed = self.shared.terms.get().is_none_or(Terms::allows_batches);
        for item in items {
            match item {
                Inbound::Message(Message::Answer { id: Some(id), .. }) if !allowed => {
                    let why = "an answer came in a batch, which this protocol version does not have";
                    self.settle(id, Err(Failure::protocol(why)));
                }
                item if allowed => self.hear(item),
                _ => {}
            }
        }
    }

    fn answer(&mut self, id: Option<u64>, outcome: Result<Raw, RpcError>) {
        match (id, outcome) {
            (Some(id), outcome) => self.settle(id, outcome.map_err(Failure::rpc)),
            // "I could not read you": if only one request is under way, it was that one.
            (None, Err(error)) if self.unanswered.len() == 1 => {
                let id = self.unanswered.keys().next().copied();
                id.into_iter().for_each(|id| self.settle(id, Err(Failure::rpc(error.clone()))));
            }
            (None, _) => {}
        }
    }

    fn settle(&mut self, id: u64, answer: Result<Raw, Failure>) {
        // An unknown id is a late answer, or a stray one.
        if let Some(waiting) = self.unanswered.remove(&id) {
            let _ = waiting.reply.send(answer);
        }
    }

    fn asked(&mut self, id: Raw, method: &str, params: Option<Raw>) {
        if method == "ping" {
            return self.say_answer(id, Ok(Raw::empty_object()));
        }
        if method == "roots/list" {
            self.shared.asked_roots.store(true, Ordering::Release);
        }
        if let Err(error) = self.answers.begin(id.clone(), method, params) {
            self.say_answer(id, Err(error));
        }
    }

    fn say_answer(&mut self, id: Raw, outcome: Result<Raw, RpcError>) {
        let routing =
            self.shared.terms.get().map(|terms| terms.routing(None, Vec::new())).unwrap_or_default();
        self.queue.push_back(Outbound::Answer { id, outcome, routing });
        self.shared.answered.notify_one();
    }

    fn noted(&mut self, method: &str, params: Option<Raw>) {
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/tools/list_changed" => self.desk.tell(News::ToolsChanged),
            "notifications/prompts/list_changed" => self.desk.tell(News::PromptsChanged),
            "notifications/resources/list_changed" => self.desk.tell(News::ResourcesChanged),
            "notifications/resources/updated" => {
                if let Some(uri) = params.and_then(|params| params.member("uri")?.decode().ok()) {
                    self.desk.tell(News::ResourceUpdated(uri));
                }
            }
            "notifications/message" => {
                params.into_iter().for_each(|params| self.desk.tell(News::Log(params)));
            }
            "notifications/cancelled" => {
                let id = params.and_then(|params| params.member("requestId"));
                id.into_iter().for_each(|id| self.answers.cancel(&id));
            }
            _ => {}
        }
    }

    fn progressed(&mut self, params: Option<Raw>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: u64,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let Some(raw) = params else { return };
        let Ok(Params { progress_token, progress, total, message }) = raw.decode() else { return };
        if let Some(on_progress) =
            self.unanswered.get_mut(&progress_token).and_then(|it| it.on_progress.as_mut())
        {
            on_progress(Progress { progress, total, message, raw });
        }
    }
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
