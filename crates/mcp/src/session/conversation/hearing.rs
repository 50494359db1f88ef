//! Handles inbound messages: matches each to a pending request, the host or the news feed.

use super::{Conversation, Terms};
use crate::{
    Failure, Inbound, Message, Outbound, Raw, RpcError,
    session::{
        MetaKey, News,
        ears::{Belongs, Progress},
    },
};
use serde::Deserialize;
use std::sync::atomic::Ordering;

impl Conversation {
    pub(super) fn hear(&mut self, heard: Inbound) {
        match heard {
            Inbound::Stirred => self.shared.stirred.notify_one(),
            Inbound::Message(Message::Answer { id, outcome }) => self.answer(id, outcome),
            Inbound::Message(message) => self.hear_of(None, message),
            Inbound::Aside { request, message } => self.hear_of(Some(request), message),
            Inbound::Failed { id, failure } => self.settle(id, Err(failure)),
            Inbound::Batch(items) => self.hear_batch(items),
            Inbound::Renewed => {
                self.shared.log_level.store(0, Ordering::Release);
                self.desk.tell(News::Renewed);
            }
            Inbound::Gone(goodbye) => self.goodbye = Some(goodbye),
        }
    }

    /// Handles a message; `origin` is the request on whose response stream it arrived.
    fn hear_of(&mut self, origin: Option<u64>, message: Message) {
        match message {
            Message::Answer { id, outcome } => self.answer(id, outcome),
            Message::Request { id, method, params } => self.asked(origin, id, &method, params),
            Message::Notification { method, params } => self.noted(origin, &method, params),
        }
    }

    /// Finds the pending request that owns a message from the stream of `origin`, or from a shared stream if `None`.
    fn belongs(&self, origin: Option<u64>) -> Belongs {
        if let Some(waiting) = origin.and_then(|id| Some((id, self.unanswered.get(&id)?))) {
            return if waiting.1.is_work { Belongs::To(waiting.0) } else { Belongs::Nowhere };
        }
        let mut work = self.unanswered.iter().filter(|(_, waiting)| waiting.is_work).map(|(id, _)| *id);
        match (work.next(), work.next()) {
            (None, _) => Belongs::Nowhere,
            (Some(only), None) => Belongs::To(only),
            (Some(_), Some(_)) => Belongs::Unclear,
        }
    }

    /// Handles a batch. Where the protocol version has no batches, its responses fail and the rest is ignored.
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
            // An error without an id means that the server could not parse a request; a sole pending request must be
            // the one.
            (None, Err(error)) if self.unanswered.len() == 1 => {
                let id = self.unanswered.keys().next().copied();
                id.into_iter().for_each(|id| self.settle(id, Err(Failure::rpc(error.clone()))));
            }
            (None, _) => {}
        }
    }

    /// Completes a pending request.
    fn settle(&mut self, id: u64, answer: Result<Raw, Failure>) {
        // An unknown id belongs to a late or unsolicited response.
        if let Some(waiting) = self.unanswered.remove(&id) {
            let _ = waiting.reply.send(answer);
        }
    }

    /// Handles a request from the server.
    fn asked(&mut self, origin: Option<u64>, id: Raw, method: &str, params: Option<Raw>) {
        if method == "ping" {
            return self.say_answer(id, Ok(Raw::empty_object()));
        }
        if method == "roots/list" {
            self.shared.asked_roots.store(true, Ordering::Release);
        }
        let work = match self.belongs(origin) {
            Belongs::To(request) => self.unanswered.get(&request),
            Belongs::Unclear | Belongs::Nowhere => None,
        };
        let host = work.and_then(|it| it.ears.host.clone());
        let asking = work.and_then(|it| it.ears.patience.as_ref()).map(|it| it.ask());
        if let Err(error) = self.answers.begin(id.clone(), (method, params), host, asking) {
            self.say_answer(id, Err(error));
        }
    }

    /// Queues the response to a server request.
    pub(super) fn say_answer(&mut self, id: Raw, outcome: Result<Raw, RpcError>) {
        let routing =
            self.shared.terms.get().map(|terms| terms.routing(None, Vec::new())).unwrap_or_default();
        self.queue.push_back(Outbound::Answer { id, outcome, routing });
        self.shared.answered.notify_one();
    }

    /// Handles a notification from the server.
    fn noted(&mut self, origin: Option<u64>, method: &str, params: Option<Raw>) {
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
            "notifications/message" => params.into_iter().for_each(|line| self.logged(origin, line)),
            "notifications/subscriptions/acknowledged" => self.acknowledged(origin, params),
            "notifications/cancelled" => {
                let id = params.and_then(|params| params.member("requestId"));
                id.into_iter().for_each(|id| self.answers.cancel(&id));
            }
            _ => {}
        }
    }

    /// Delivers a log line to the request that owns it, and publishes it in the news feed.
    fn logged(&mut self, origin: Option<u64>, line: Raw) {
        let belongs = self.belongs(origin);
        if let Belongs::To(request) = belongs
            && let Some(told) = self.unanswered.get(&request).and_then(|it| it.ears.on_log.as_ref())
        {
            told(&line);
        }
        self.desk.tell(if belongs == Belongs::Nowhere { News::Log(line) } else { News::LogOfCall(line) });
    }

    fn acknowledged(&mut self, origin: Option<u64>, params: Option<Raw>) {
        let Some(params) = params else { return };
        let named = || params.member("_meta")?.member(MetaKey::SUBSCRIPTION)?.decode().ok();
        let waiting = origin.or_else(named).and_then(|id| self.unanswered.get_mut(&id));
        if let Some(told) = waiting.and_then(|it| it.ears.on_ack.take()) {
            let _ = told.send(params);
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
            self.unanswered.get_mut(&progress_token).and_then(|it| it.ears.on_progress.as_mut())
        {
            on_progress(Progress { progress, total, message, raw });
        }
    }
}
