//! Handles inbound messages: matches each to a pending request, the host or the news feed.

use super::{SessionLoop, Terms};
use crate::{
    Failure, Inbound, Message, Outbound, Raw, RpcError,
    session::{
        MetaKey, News,
        hooks::{Progress, RequestOwner},
    },
};
use serde::Deserialize;
use std::sync::atomic::Ordering;

impl SessionLoop {
    pub(super) fn handle_inbound(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::FirstOutput => self.shared.first_output.notify_one(),
            Inbound::Message(Message::Answer { id, outcome }) => self.answer(id, outcome),
            Inbound::Message(message) => self.handle_message(None, message),
            Inbound::OnRequestStream { request, message } => self.handle_message(Some(request), message),
            Inbound::Failed { id, failure } => self.complete(id, Err(failure)),
            Inbound::Batch(items) => self.handle_batch(items),
            Inbound::Renewed => {
                self.shared.log_level.store(0, Ordering::Release);
                self.news.publish(News::Renewed);
            }
            Inbound::Stateless => self.shared.stateless.store(true, Ordering::Release),
            Inbound::Disconnected(disconnect) => self.disconnect = Some(disconnect),
        }
    }

    /// Handles a message; `origin` is the request on whose response stream it arrived.
    fn handle_message(&mut self, origin: Option<u64>, message: Message) {
        match message {
            Message::Answer { id, outcome } => self.answer(id, outcome),
            Message::Request { id, method, params } => self.handle_request(origin, id, &method, params),
            Message::Notification { method, params } => self.handle_notification(origin, &method, params),
        }
    }

    /// Finds the pending request that owns a message from the stream of `origin`, or from a shared stream if `None`.
    fn find_owner(&self, origin: Option<u64>) -> RequestOwner {
        if let Some(pending) = origin.and_then(|id| Some((id, self.unanswered.get(&id)?))) {
            return if pending.1.is_caller_request {
                RequestOwner::Known(pending.0)
            } else {
                RequestOwner::NoRequest
            };
        }
        let mut work =
            self.unanswered.iter().filter(|(_, pending)| pending.is_caller_request).map(|(id, _)| *id);
        match (work.next(), work.next()) {
            (None, _) => RequestOwner::NoRequest,
            (Some(only), None) => RequestOwner::Known(only),
            (Some(_), Some(_)) => RequestOwner::Ambiguous,
        }
    }

    /// Handles a batch. Where the protocol version has no batches, its responses fail and the rest is ignored.
    fn handle_batch(&mut self, items: Vec<Inbound>) {
        let allowed = self.shared.terms.get().is_none_or(Terms::allows_batches);
        for item in items {
            match item {
                Inbound::Message(Message::Answer { id: Some(id), .. }) if !allowed => {
                    let why = "the response arrived in a batch, which this protocol version does not support";
                    self.complete(id, Err(Failure::protocol(why)));
                }
                item if allowed => self.handle_inbound(item),
                _ => {}
            }
        }
    }

    fn answer(&mut self, id: Option<u64>, outcome: Result<Raw, RpcError>) {
        match (id, outcome) {
            (Some(id), outcome) => self.complete(id, outcome.map_err(Failure::rpc)),
            // An error without an id means that the server could not parse a request; a sole pending request must be
            // the one.
            (None, Err(error)) if self.unanswered.len() == 1 => {
                let id = self.unanswered.keys().next().copied();
                id.into_iter().for_each(|id| self.complete(id, Err(Failure::rpc(error.clone()))));
            }
            (None, _) => {}
        }
    }

    /// Completes a pending request.
    fn complete(&mut self, id: u64, answer: Result<Raw, Failure>) {
        // An unknown id belongs to a late or unsolicited response.
        if let Some(pending) = self.unanswered.remove(&id) {
            let _ = pending.reply.send(answer);
        }
    }

    /// Handles a request from the server.
    fn handle_request(&mut self, origin: Option<u64>, id: Raw, method: &str, params: Option<Raw>) {
        if method == "ping" {
            return self.send_answer(id, Ok(Raw::empty_object()));
        }
        if method == "roots/list" {
            self.shared.asked_roots.store(true, Ordering::Release);
        }
        let work = match self.find_owner(origin) {
            RequestOwner::Known(request) => self.unanswered.get(&request),
            RequestOwner::Ambiguous | RequestOwner::NoRequest => None,
        };
        let host = work.and_then(|it| it.hooks.host.clone());
        let pause = work.and_then(|it| it.hooks.extension.as_ref()).map(|it| it.pause());
        if let Err(error) = self.answers.start(id.clone(), (method, params), host, pause) {
            self.send_answer(id, Err(error));
        }
    }

    /// Queues the response to a server request.
    pub(super) fn send_answer(&mut self, id: Raw, outcome: Result<Raw, RpcError>) {
        let routing =
            self.shared.terms.get().map(|terms| terms.routing(None, Vec::new())).unwrap_or_default();
        self.queue.push_back(Outbound::Answer { id, outcome, routing });
        self.shared.answered.notify_one();
    }

    /// Handles a notification from the server.
    fn handle_notification(&mut self, origin: Option<u64>, method: &str, params: Option<Raw>) {
        match method {
            "notifications/progress" => self.deliver_progress(params),
            "notifications/tools/list_changed" => self.news.publish(News::ToolsChanged),
            "notifications/prompts/list_changed" => self.news.publish(News::PromptsChanged),
            "notifications/resources/list_changed" => self.news.publish(News::ResourcesChanged),
            "notifications/resources/updated" => {
                if let Some(uri) = params.and_then(|params| params.member("uri")?.decode().ok()) {
                    self.news.publish(News::ResourceUpdated(uri));
                }
            }
            "notifications/message" => params.into_iter().for_each(|line| self.deliver_log(origin, line)),
            "notifications/subscriptions/acknowledged" => self.deliver_acknowledgement(origin, params),
            "notifications/cancelled" => {
                let id = params.and_then(|params| params.member("requestId"));
                id.into_iter().for_each(|id| self.answers.cancel(&id));
            }
            _ => {}
        }
    }

    /// Delivers a log line to the request that owns it, and publishes it in the news feed.
    fn deliver_log(&mut self, origin: Option<u64>, line: Raw) {
        let owner = self.find_owner(origin);
        if let RequestOwner::Known(request) = owner
            && let Some(callback) = self.unanswered.get(&request).and_then(|it| it.hooks.on_log.as_ref())
        {
            callback(&line);
        }
        self.news.publish(if owner == RequestOwner::NoRequest {
            News::Log(line)
        } else {
            News::LogOfCall(line)
        });
    }

    fn deliver_acknowledgement(&mut self, origin: Option<u64>, params: Option<Raw>) {
        let Some(params) = params else { return };
        let subscription = || params.member("_meta")?.member(MetaKey::SUBSCRIPTION)?.decode().ok();
        let pending = origin.or_else(subscription).and_then(|id| self.unanswered.get_mut(&id));
        if let Some(callback) = pending.and_then(|it| it.hooks.on_ack.take()) {
            let _ = callback.send(params);
        }
    }

    fn deliver_progress(&mut self, params: Option<Raw>) {
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
            self.unanswered.get_mut(&progress_token).and_then(|it| it.hooks.on_progress.as_mut())
        {
            on_progress(Progress { progress, total, message, raw });
        }
    }
}
