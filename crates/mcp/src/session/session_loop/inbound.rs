//! Handles inbound messages: matches each to a pending request, the host or the news feed.

use super::{SessionLoop, Terms};
use crate::{
    Failure, Inbound, Message, Outbound, Raw, RpcError,
    session::{
        MetaKey, News,
        hooks::{OnLog, Progress, RequestHooks, RequestOwner},
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
        let pending = self.shared.pending.lock();
        if let Some((id, it)) = origin.and_then(|id| Some((id, pending.get(&id)?))) {
            return if it.is_caller_request { RequestOwner::Known(id) } else { RequestOwner::NoRequest };
        }
        let mut work = pending.iter().filter(|(_, it)| it.is_caller_request).map(|(id, _)| *id);
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
            (None, Err(error)) => {
                let pending = self.shared.pending.lock();
                let only = pending.keys().next().copied().filter(|_| pending.len() == 1);
                drop(pending);
                only.into_iter().for_each(|id| self.complete(id, Err(Failure::rpc(error.clone()))));
            }
            (None, Ok(_)) => {}
        }
    }

    /// Completes a pending request.
    fn complete(&mut self, id: u64, answer: Result<Raw, Failure>) {
        // An unknown id belongs to a late or unsolicited response.
        let pending = self.shared.pending.lock().remove(&id);
        if let Some(pending) = pending {
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
        let hooks_of = |request| {
            let pending = self.shared.pending.lock();
            let hooks = &pending.get(&request)?.hooks;
            Some((hooks.host.clone(), hooks.extension.as_ref().map(|it| it.pause())))
        };
        let (host, pause) = match self.find_owner(origin) {
            RequestOwner::Known(request) => hooks_of(request).unwrap_or_default(),
            RequestOwner::Ambiguous | RequestOwner::NoRequest => (None, None),
        };
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
            "notifications/progress" => self.deliver_progress(origin, params),
            "notifications/tools/list_changed" => self.news.publish(News::ToolsChanged),
            "notifications/prompts/list_changed" => self.news.publish(News::PromptsChanged),
            "notifications/resources/list_changed" => self.news.publish(News::ResourcesChanged),
            "notifications/resources/updated" => {
                if let Some(uri) = params.and_then(|params| params.member("uri")?.decode().ok()) {
                    self.news.publish(News::ResourceUpdated(uri));
                }
            }
            "notifications/message" => params.into_iter().for_each(|line| self.deliver_log(origin, line)),
            "notifications/elicitation/complete" => {
                params.into_iter().for_each(|params| self.news.publish(News::ElicitationComplete(params)));
            }
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
        match owner {
            RequestOwner::Known(request) => {
                let pending = self.shared.pending.lock();
                let callback = pending.get(&request).and_then(|it| it.hooks.on_log.clone());
                drop(pending);
                callback.into_iter().for_each(|callback| callback(&line));
            }
            RequestOwner::Ambiguous => self.share_log(&line),
            RequestOwner::NoRequest => {}
        }
        self.news.publish(if owner == RequestOwner::NoRequest {
            News::Log(line)
        } else {
            News::LogOfCall(line)
        });
    }

    /// Delivers a log line that may belong to any pending request: once to each client, and only if one principal made
    /// all of these requests, because a line may hold what only its own caller may see.
    fn share_log(&self, line: &Raw) {
        let callbacks = {
            let pending = self.shared.pending.lock();
            let mut requests: Vec<(&u64, &RequestHooks)> = pending
                .iter()
                .filter(|(_, it)| it.is_caller_request)
                .map(|(id, it)| (id, &it.hooks))
                .collect();
            requests.sort_unstable_by_key(|(id, _)| **id);
            let is_shared =
                |pair: &[(&u64, &RequestHooks)]| pair[0].1.audience.principal == pair[1].1.audience.principal;
            if !requests.windows(2).all(is_shared) {
                return;
            }
            let mut reached = Vec::new();
            requests.retain(|(_, hooks)| {
                let is_new = hooks.on_log.is_some() && !reached.contains(&hooks.audience.client);
                reached.extend(is_new.then_some(hooks.audience.client));
                is_new
            });
            requests.into_iter().filter_map(|(_, hooks)| hooks.on_log.clone()).collect::<Vec<OnLog>>()
        };
        callbacks.into_iter().for_each(|callback| callback(line));
    }

    fn deliver_acknowledgement(&mut self, origin: Option<u64>, params: Option<Raw>) {
        let Some(params) = params else { return };
        let subscription = || params.member("_meta")?.member(MetaKey::SUBSCRIPTION)?.decode().ok();
        let request = origin.or_else(subscription);
        let callback = request.and_then(|id| self.shared.pending.lock().get_mut(&id)?.hooks.on_ack.take());
        if let Some(callback) = callback {
            let _ = callback.send(params);
        }
    }

    /// Delivers progress to the request of its token. Progress with no token, or with one that is not ours, belongs
    /// to the request on whose stream it arrives, or to the only one.
    fn deliver_progress(&mut self, origin: Option<u64>, params: Option<Raw>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            #[serde(default)]
            progress_token: serde_json::Value,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let Some(raw) = params else { return };
        let Ok(Params { progress_token, progress, total, message }) = raw.decode() else { return };
        // Some servers turn the number into a string.
        let token = progress_token.as_u64().or_else(|| progress_token.as_str()?.parse().ok());
        let request = token.or_else(|| match self.find_owner(origin) {
            RequestOwner::Known(request) => Some(request),
            RequestOwner::Ambiguous | RequestOwner::NoRequest => None,
        });
        let Some(request) = request else { return };
        let taken = self.shared.pending.lock().get_mut(&request).and_then(|it| it.hooks.on_progress.take());
        if let Some(mut on_progress) = taken {
            on_progress(Progress { progress, total, message, raw });
            if let Some(pending) = self.shared.pending.lock().get_mut(&request) {
                pending.hooks.on_progress = Some(on_progress);
            }
        }
    }
}
