//! Runs the session task, which owns the link and the table of pending requests.
//!
//! The loop never waits for the link to accept a message: overflow goes to `queue`, and callers wait while that is
//! full. A server that stops reading therefore never blocks us from reading its messages.

mod inbound;

use super::{
    answers::Answers,
    hooks::RequestHooks,
    host::Host,
    news::{News, NewsSender},
    pending_requests::{PendingRequest, Reply, SendProgress},
    send_once::SendOnce,
    sender::SessionState,
    terms::{Era, Terms},
};
use crate::{Disconnect, Inbound, Link, Outbound, Raw, RpcError, Written, link::DirectAnswers};
use serde_json::json;
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time,
};

/// Length of `queue` at which the task stops accepting requests from handles.
const PAUSE_COMMANDS_AT: usize = 64;

/// Length of `queue` at which the task stops reading: the server sends many requests and does not read our responses.
const PAUSE_READING_AT: usize = 1_024;

/// Maximum number of ready items handled before the next `select!`.
const MAX_EVENTS_PER_TURN: usize = 64;

/// Grace period for closing the link when the caller's deadline has already passed.
const OVERDUE_GRACE: Duration = Duration::from_millis(400);

/// Interval for checking whether all handles were dropped, while `queue` is full and the task does not read from
/// them.
const HANDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Command from a handle to the session task.
pub(crate) enum SessionCommand {
    Request { message: Outbound, reply: Reply, hooks: RequestHooks, send_once: SendOnce },
    Send(Outbound),
    Publish(News),
}

/// State of the session task.
pub(crate) struct SessionLoop {
    link: Link,
    direct_answers: Arc<DirectAnswers>,
    written: Written,
    shared: Arc<SessionState>,
    news: NewsSender,
    close_grace: Duration,
    queue: VecDeque<Outbound>,
    answers: Answers,
    disconnect: Option<Disconnect>,
}

/// Event in the loop of the session task.
enum SessionEvent {
    Command(Option<SessionCommand>),
    Abandoned(u64),
    Inbound(Option<Inbound>),
    LinkReady,
    HandleCheck,
    Answered(Raw, Result<Raw, RpcError>),
}

impl SessionLoop {
    pub(crate) fn new(
        link: Link,
        host: Arc<dyn Host>,
        shared: Arc<SessionState>,
        news: NewsSender,
        close_grace: Duration,
    ) -> SessionLoop {
        SessionLoop {
            written: link.written(),
            direct_answers: link.direct_answers(),
            link,
            shared,
            news,
            close_grace,
            queue: VecDeque::new(),
            answers: Answers::new(host),
            disconnect: None,
        }
    }

    /// Runs until the link ends or the last handle is dropped, then publishes the [`Disconnect`] in `ended`.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<SessionCommand>,
        mut abandoned: mpsc::UnboundedReceiver<u64>,
        ended: &watch::Sender<Option<Arc<Disconnect>>>,
    ) {
        loop {
            let event = tokio::select! {
                inbound = self.link.inbound.recv(), if self.queue.len() < PAUSE_READING_AT => SessionEvent::Inbound(inbound),
                command = commands.recv(), if self.queue.len() < PAUSE_COMMANDS_AT => SessionEvent::Command(command),
                Some(id) = abandoned.recv() => SessionEvent::Abandoned(id),
                Ok(_) = self.link.outbound.reserve(), if !self.queue.is_empty() => SessionEvent::LinkReady,
                Some((id, outcome)) = self.answers.next() => SessionEvent::Answered(id, outcome),
                // A full queue stops `commands.recv()`, so the closed channel needs polling.
                () = time::sleep(HANDLE_CHECK_INTERVAL), if self.queue.len() >= PAUSE_COMMANDS_AT => SessionEvent::HandleCheck,
            };
            match event {
                SessionEvent::Command(Some(command)) => self.accept_commands(command, &mut commands),
                SessionEvent::Command(None) | SessionEvent::Inbound(None) => break,
                SessionEvent::Abandoned(id) => self.abandon(id),
                SessionEvent::Inbound(Some(inbound)) => self.handle_all_inbound(inbound),
                // No handle is left, so nothing waits for the queued requests.
                SessionEvent::HandleCheck if commands.is_closed() => break,
                SessionEvent::LinkReady | SessionEvent::HandleCheck => {}
                SessionEvent::Answered(id, outcome) => self.send_answer(id, outcome),
            }
            if self.disconnect.is_some() {
                break;
            }
            self.flush_queue();
        }
        // Close before draining: a request that is being sent concurrently would stay in the channel and its caller
        // would wait forever.
        commands.close();
        while commands.recv().await.is_some() {}
        self.cancel_pending();
        self.end(ended).await;
    }

    /// Cancels pending requests on a byte-stream link: some servers exit only after their last response, which a
    /// subscription never gets.
    fn cancel_pending(&mut self) {
        if self.disconnect.is_some() || self.link.stream_per_request {
            return;
        }
        let is_passed = |it: &PendingRequest| matches!(it.progress, SendProgress::Passed(_)) && !it.handshake;
        let pending = self.shared.pending.lock();
        let passed: Vec<u64> = pending.iter().filter(|(_, it)| is_passed(it)).map(|(id, _)| *id).collect();
        drop(pending);
        passed.into_iter().for_each(|id| self.cancel(id));
        self.flush_queue();
    }

    /// Fails every pending request and closes the link.
    async fn end(mut self, ended: &watch::Sender<Option<Arc<Disconnect>>>) {
        self.answers.abort_all();
        let overdue = self.shared.overdue.load(Ordering::Acquire);
        let grace = if overdue { self.close_grace.min(OVERDUE_GRACE) } else { self.close_grace };
        let (written, ordered) = (self.written.clone(), !self.link.stream_per_request);
        let (disconnect, link) = match self.disconnect.take() {
            Some(disconnect) => (disconnect, Some(self.link)),
            None => (self.link.close(grace).await, None),
        };
        let disconnect = Arc::new(disconnect);
        ended.send_replace(Some(disconnect.clone()));
        let pending = std::mem::take(&mut *self.shared.pending.lock());
        pending.into_values().for_each(|it| it.fail(&written, ordered, &disconnect));
        if let Some(link) = link {
            link.close(grace).await;
        }
    }

    /// Accepts one command and those already queued behind it; one `select!` per command would cost more than the
    /// command.
    fn accept_commands(&mut self, first: SessionCommand, commands: &mut mpsc::Receiver<SessionCommand>) {
        self.accept_command(first);
        for _ in 1..MAX_EVENTS_PER_TURN {
            if self.queue.len() >= PAUSE_COMMANDS_AT {
                return;
            }
            let Ok(command) = commands.try_recv() else { return };
            self.accept_command(command);
        }
    }

    /// Handles one inbound event and those already queued behind it.
    fn handle_all_inbound(&mut self, first: Inbound) {
        self.handle_inbound(first);
        self.direct_answers.count_handled();
        for _ in 1..MAX_EVENTS_PER_TURN {
            if self.queue.len() >= PAUSE_READING_AT || self.disconnect.is_some() {
                return;
            }
            let Ok(inbound) = self.link.inbound.try_recv() else { return };
            self.handle_inbound(inbound);
            self.direct_answers.count_handled();
        }
    }

    fn accept_command(&mut self, command: SessionCommand) {
        // Set before the command no longer counts, so that a request of a caller does not overtake it.
        self.shared.is_queueing.store(true, Ordering::Release);
        self.shared.commands.fetch_sub(1, Ordering::AcqRel);
        match command {
            // The caller has dropped its request.
            SessionCommand::Request { reply, .. } if reply.is_closed() => {}
            SessionCommand::Request { message, reply, hooks, send_once } => {
                if let Outbound::Request { id, method, .. } = &message {
                    let pending = PendingRequest::new(method, reply, hooks, send_once);
                    self.shared.pending.lock().insert(*id, pending);
                }
                self.queue.push_back(message);
            }
            SessionCommand::Send(message) => self.queue.push_back(message),
            SessionCommand::Publish(news) => self.news.publish(news),
        }
    }

    /// Passes queued messages to the link while it has capacity.
    fn flush_queue(&mut self) {
        while !self.queue.is_empty() {
            let Ok(permit) = self.link.outbound.try_reserve() else { return };
            let Some(message) = self.queue.pop_front() else { break };
            let mut pending = self.shared.pending.lock();
            let pending_request = match message {
                Outbound::Request { id, .. } => pending.get_mut(&id),
                _ => None,
            };
            if pending_request.as_ref().is_some_and(|it| !it.send_once.mark_sent()) {
                continue;
            }
            let position = self.shared.pending.next_position();
            if let Some(pending_request) = pending_request {
                pending_request.progress = SendProgress::Passed(position);
            }
            permit.send(message);
        }
        self.shared.is_queueing.store(false, Ordering::Release);
    }

    /// Drops a request that its caller no longer waits for, and cancels it at the server if it was sent.
    fn abandon(&mut self, id: u64) {
        let Some(pending) = self.shared.pending.lock().remove(&id) else { return };
        if pending.progress == SendProgress::Queued {
            self.queue
                .retain(|message| !matches!(message, Outbound::Request { id: queued, .. } if *queued == id));
            return;
        }
        if !pending.handshake {
            self.cancel(id);
        }
        self.queue.push_back(Outbound::Abandon { id });
    }

    /// Queues `notifications/cancelled` for a request.
    fn cancel(&mut self, id: u64) {
        // Over HTTP in the 2026-07-28 era, closing the stream cancels the request.
        let cancels_by_closing = |terms: &Terms| terms.era == Era::Modern && self.link.stream_per_request;
        if let Some(terms) = self.shared.terms.get().filter(|terms| !cancels_by_closing(terms)) {
            let params = Some(
                json!({ "requestId": id, "reason": "the caller no longer waits for the response" }).into(),
            );
            let routing = terms.routing(None, Vec::new());
            let method = "notifications/cancelled".into();
            self.queue.push_back(Outbound::Notification { method, params, routing });
        }
    }
}
