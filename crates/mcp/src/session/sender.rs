//! Handles of the session task: send it requests and wait for the responses.

use super::{
    deadline::Deadline,
    hooks::RequestHooks,
    host::Host,
    news::{self, News, NewsFeed},
    pending_requests::{PendingRequest, PendingRequests, Reply, SendProgress},
    send_once::SendOnce,
    session_loop::{SessionCommand, SessionLoop},
    terms::Terms,
};
use crate::{
    Disconnect, Failure, Link, Outbound, Raw, RpcError, Sent,
    link::{AnswerSink, DirectAnswer, DirectLink, DirectRequest},
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot::{self, error::RecvError},
        watch,
    },
    task::JoinSet,
    time,
};

/// Capacity of the command channel to the session task.
const COMMAND_CAPACITY: usize = 64;

/// Receives the outcome of a request.
type AnswerReceiver = oneshot::Receiver<Result<Raw, Failure>>;

/// Handle to the session task, usable before and after the handshake.
#[derive(Clone, Debug)]
pub(crate) struct RequestSender {
    commands: mpsc::Sender<SessionCommand>,
    common: SenderCommon,
}

/// Handle that does not keep the session alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakRequestSender {
    commands: mpsc::WeakSender<SessionCommand>,
    common: SenderCommon,
}

/// Access to the session's [`Disconnect`] after its end.
#[derive(Clone, Debug)]
pub(crate) struct SessionEnd(watch::Receiver<Option<Arc<Disconnect>>>);

/// Part of a handle that both strong and weak handles need.
#[derive(Clone, Debug)]
struct SenderCommon {
    abandons: mpsc::UnboundedSender<u64>,
    shared: Arc<SessionState>,
    ended: SessionEnd,
    /// Sends requests in the task of the caller, if the link can do that.
    direct: Option<Arc<dyn DirectLink>>,
    /// The queue of a link that sends all messages on one stream. Callers add requests to it themselves.
    outbound: Option<mpsc::WeakSender<Outbound>>,
}

/// State shared by the session task and its handles.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    next_id: AtomicU64,
    pub(crate) terms: OnceLock<Terms>,
    pub(crate) first_output: tokio::sync::Notify,
    /// Whether the server has requested roots.
    pub(crate) asked_roots: AtomicBool,
    /// Notified when a response to a server request was queued.
    pub(crate) answered: tokio::sync::Notify,
    /// Whether the caller's deadline has passed, so that closing must be quick.
    pub(crate) overdue: AtomicBool,
    /// Whether the server keeps no session, so that it cannot send requests.
    pub(crate) stateless: AtomicBool,
    pub(crate) pending: PendingRequests,
    /// Number of commands that the session task has not accepted yet.
    pub(crate) commands: AtomicUsize,
    /// Whether messages wait in the session task, because the queue of the link is full.
    pub(crate) is_queueing: AtomicBool,
    /// Log level last sent to the server, plus one; 0 if none.
    pub(crate) log_level: AtomicU8,
}

impl SessionState {
    /// Returns whether messages that were sent earlier have not reached the link yet.
    fn has_earlier_messages(&self) -> bool {
        self.commands.load(Ordering::Acquire) > 0 || self.is_queueing.load(Ordering::Acquire)
    }
}

impl AnswerSink for SessionState {
    fn complete(&self, id: u64, outcome: Result<Raw, RpcError>) {
        let pending = self.pending.lock().remove(&id);
        if let Some(pending) = pending {
            let _ = pending.reply.send(outcome.map_err(Failure::rpc));
        }
    }
}

/// Spawns the session task in `tasks`.
pub(crate) fn spawn(
    link: Link,
    host: Arc<dyn Host>,
    close_grace: Duration,
    tasks: &mut JoinSet<()>,
) -> (RequestSender, SessionEnd, NewsFeed) {
    let (commands, command_receiver) = mpsc::channel(COMMAND_CAPACITY);
    let (abandons, abandoned) = mpsc::unbounded_channel();
    let (end_sender, ended) = watch::channel(None);
    let (news, feed) = news::feed();
    let (shared, direct) = (Arc::<SessionState>::default(), link.direct.clone());
    let outbound = (!link.stream_per_request).then(|| link.outbound.downgrade());
    link.direct_answers().set_requests(shared.clone());
    let session_loop = SessionLoop::new(link, host, shared.clone(), news, close_grace);
    tasks.spawn(async move {
        session_loop.run(command_receiver, abandoned, &end_sender).await;
    });
    let ended = SessionEnd(ended);
    let common = SenderCommon { abandons, shared, ended: ended.clone(), direct, outbound };
    (RequestSender { commands, common }, ended, feed)
}

impl RequestSender {
    pub(crate) fn next_id(&self) -> u64 {
        // Start at 1: some servers treat 0 as a missing id.
        self.common.shared.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn shared(&self) -> &SessionState {
        &self.common.shared
    }

    pub(crate) fn is_over(&self) -> bool {
        self.commands.is_closed()
    }

    pub(crate) fn weak(&self) -> WeakRequestSender {
        WeakRequestSender { commands: self.commands.downgrade(), common: self.common.clone() }
    }

    /// Sends a request and waits for its response. Dropping the future cancels the request at the server.
    pub(crate) async fn exchange(
        &self,
        message: Outbound,
        deadline: impl Into<Deadline>,
        hooks: RequestHooks,
    ) -> Result<Raw, Failure> {
        let deadline = deadline.into();
        let (reply, answer) = oneshot::channel();
        let Outbound::Request { id, .. } = message else {
            return Err(Failure::protocol("only a request can be answered"));
        };
        let guard = AbandonOnDrop { id, abandons: &self.common.abandons, armed: true };
        let send_once = SendOnce::default();
        let command = SessionCommand::Request { message, reply, hooks, send_once: send_once.clone() };
        // The channel nearly always has capacity; avoid the timer in that case.
        match self.commands.try_reserve() {
            Ok(permit) => self.common.command(permit, command),
            Err(TrySendError::Closed(())) => return Err(self.common.ended.failure().await),
            Err(TrySendError::Full(())) => {
                match Box::pin(time::timeout_at(deadline.initial(), self.commands.reserve())).await {
                    Err(_) => return Err(Failure::timeout(Sent::No)),
                    Ok(Err(_)) => return Err(self.common.ended.failure().await),
                    Ok(Ok(permit)) => self.common.command(permit, command),
                }
            }
        }
        self.common.wait(guard, answer, &send_once, &deadline).await
    }

    /// Sends a request in the task of the caller if the link can do that, and waits for its response. Dropping the
    /// future cancels the request at the server.
    ///
    /// Through the session task, a request to an HTTP server would wake three tasks on its way there and back. That is 9 %
    /// of the instructions of a small call.
    pub(crate) async fn exchange_directly(
        &self,
        message: Outbound,
        deadline: Deadline,
        hooks: RequestHooks,
    ) -> Result<Raw, Failure> {
        let Some(direct) = self.common.direct.as_ref().filter(|it| it.is_ready()) else {
            return self.exchange_on_stream(message, deadline, hooks).await;
        };
        let Outbound::Request { id, ref method, .. } = message else {
            return Err(Failure::protocol("only a request can be answered"));
        };
        let (reply, answer) = oneshot::channel();
        let guard = AbandonOnDrop { id, abandons: &self.common.abandons, armed: true };
        let send_once = SendOnce::default();
        send_once.mark_sent();
        let pending = PendingRequest::new(method, reply, hooks, send_once.clone());
        let pending = PendingRequest { progress: SendProgress::Direct, ..pending };
        self.shared().pending.lock().insert(id, pending);
        // Checked after the request was added: a session that ends later fails it.
        if self.is_over() {
            self.shared().pending.lock().remove(&id);
            return Err(self.common.ended.failure().await);
        }
        let work = self.wait_for_direct_answer(id, direct.request(message), answer);
        self.common.wait(guard, work, &send_once, &deadline).await
    }

    /// Adds a request to the queue of the link and waits for its response. If the session task has messages that were
    /// sent earlier, the request takes the way through it, so that it does not overtake them.
    async fn exchange_on_stream(
        &self,
        message: Outbound,
        deadline: Deadline,
        hooks: RequestHooks,
    ) -> Result<Raw, Failure> {
        let Outbound::Request { id, .. } = message else {
            return Err(Failure::protocol("only a request can be answered"));
        };
        let (reply, answer) = oneshot::channel();
        let send_once = SendOnce::default();
        if let Err(rejected) = self.pass_directly(message, reply, hooks, &send_once) {
            let (message, hooks) = *rejected;
            // Boxed, because it is rare and would enlarge every future.
            return Box::pin(self.exchange(message, deadline, hooks)).await;
        }
        let guard = AbandonOnDrop { id, abandons: &self.common.abandons, armed: true };
        self.common.wait(guard, answer, &send_once, &deadline).await
    }

    /// Adds a request to the queue of the link, or returns it if the session task has to do that.
    fn pass_directly(
        &self,
        message: Outbound,
        reply: Reply,
        hooks: RequestHooks,
        send_once: &SendOnce,
    ) -> Result<(), Box<(Outbound, RequestHooks)>> {
        let shared = self.shared();
        let outbound = match &self.common.outbound {
            Some(outbound) if !shared.has_earlier_messages() => outbound.upgrade(),
            _ => None,
        };
        let permit = outbound.as_ref().and_then(|it| it.try_reserve().ok());
        let (Some(permit), Outbound::Request { id, method, .. }) = (permit, &message) else {
            return Err(Box::new((message, hooks)));
        };
        // Positions are in the order of the queue, because both are taken under the lock.
        let mut pending = shared.pending.lock();
        // Checked under the lock: a session that ends later fails the request.
        if self.is_over() {
            drop(pending);
            return Err(Box::new((message, hooks)));
        }
        send_once.mark_sent();
        let request = PendingRequest::new(method, reply, hooks, send_once.clone());
        let progress = SendProgress::Passed(shared.pending.next_position());
        pending.insert(*id, PendingRequest { progress, ..request });
        permit.send(message);
        Ok(())
    }

    /// Waits for the response to a request that its caller sends.
    async fn wait_for_direct_answer(
        &self,
        id: u64,
        request: DirectRequest,
        mut answer: AnswerReceiver,
    ) -> Result<Result<Raw, Failure>, RecvError> {
        let direct_answer = tokio::select! {
            biased;
            direct_answer = request => direct_answer,
            // The session answers if it ends, or if the server sends the response on another stream.
            answered = &mut answer => return answered,
        };
        match direct_answer {
            DirectAnswer::Answered(outcome) => {
                self.shared().pending.lock().remove(&id);
                Ok(outcome)
            }
            DirectAnswer::ThroughSession => answer.await,
        }
    }

    /// Publishes news that we inferred from the server's behaviour.
    pub(crate) async fn publish(&self, news: News) {
        // After the session has ended the news is irrelevant.
        if let Ok(permit) = self.commands.reserve().await {
            self.common.command(permit, SessionCommand::Publish(news));
        }
    }

    pub(crate) async fn notify(&self, message: Outbound) -> Result<(), Failure> {
        match self.commands.reserve().await {
            Ok(permit) => {
                self.common.command(permit, SessionCommand::Send(message));
                Ok(())
            }
            Err(_) => Err(self.common.ended.failure().await),
        }
    }
}

impl RequestSender {
    /// Queues a message if there is capacity. A response to it is ignored.
    pub(crate) fn try_send(&self, message: Outbound) {
        if let Ok(permit) = self.commands.try_reserve() {
            self.common.command(permit, SessionCommand::Send(message));
        }
    }
}

impl WeakRequestSender {
    /// Sends a request without a deadline, keeping the session alive only until the session task accepts it. Dropping
    /// the future cancels the request.
    pub(crate) async fn send_request(
        &self,
        build: impl FnOnce(u64) -> Outbound,
        hooks: RequestHooks,
    ) -> Option<Result<Raw, Failure>> {
        let commands = self.commands.upgrade()?;
        let id = self.common.shared.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, answer) = oneshot::channel();
        let send_once = SendOnce::default();
        let mut guard = AbandonOnDrop { id, abandons: &self.common.abandons, armed: true };
        let request = SessionCommand::Request { message: build(id), reply, hooks, send_once };
        self.common.command(commands.reserve().await.ok()?, request);
        drop(commands);
        let answer = answer.await;
        guard.armed = false;
        answer.ok()
    }

    /// Waits until the session has ended.
    pub(crate) async fn wait_for_end(&self) {
        let mut ended = self.common.ended.0.clone();
        let _ = ended.wait_for(Option::is_some).await;
    }
}

impl SenderCommon {
    /// Sends a command to the session task.
    fn command(&self, permit: mpsc::Permit<'_, SessionCommand>, command: SessionCommand) {
        self.shared.commands.fetch_add(1, Ordering::AcqRel);
        permit.send(command);
    }

    async fn wait(
        &self,
        mut guard: AbandonOnDrop<'_>,
        answer: impl Future<Output = Result<Result<Raw, Failure>, RecvError>>,
        send_once: &SendOnce,
        deadline: &Deadline,
    ) -> Result<Raw, Failure> {
        match deadline.wait(answer).await {
            // The guard stays armed and cancels the request.
            None if send_once.cancel() => Err(Failure::timeout(Sent::No)),
            None => Err(Failure::timeout(Sent::Unknown)),
            Some(answered) => {
                guard.armed = false;
                match answered {
                    Ok(answer) => answer,
                    Err(_) => Err(self.ended.failure().await),
                }
            }
        }
    }
}

impl SessionEnd {
    /// Returns how the session ended, as far as known.
    pub(crate) fn disconnect(&self) -> Arc<Disconnect> {
        self.0.borrow().clone().unwrap_or_else(|| Arc::new(Disconnect::because("the session ended")))
    }

    /// Builds the failure of a request made after the end.
    async fn failure(&self) -> Failure {
        let mut ended = self.0.clone();
        let _ = ended.wait_for(Option::is_some).await;
        Failure::closed(Sent::No, self.disconnect())
    }
}

/// Guard that cancels a request when dropped while armed.
struct AbandonOnDrop<'a> {
    id: u64,
    abandons: &'a mpsc::UnboundedSender<u64>,
    armed: bool,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            // Unbounded, but holds at most one entry per request; a destructor cannot wait for capacity.
            let _ = self.abandons.send(self.id);
        }
    }
}
