//! Keeps one session per source, or opens one per call for a transient source.
//!
//! A connect attempt may outlive the call that triggered it (`npx` may download for a minute). It therefore belongs
//! to this task and not to a caller, and concurrent callers share one attempt. Callers get an open session directly,
//! without a round trip to the task.

mod connect;
pub(crate) mod incident;
mod last_use;
mod notifications;
mod watched_resources;

use crate::{
    Fault,
    consent::Consent,
    events::EventKind,
    lists_to_refresh::ListsToRefresh,
    session_keeper::incident::{ConnectFailure, SharedSession},
    status_publisher::StatusPublisher,
    upstream::{SessionCleanup, Upstream, UpstreamSession},
};
use connect::ConnectFuture;
use last_use::LastUse;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{self, Instant},
};
pub(crate) use watched_resources::WatchedResources;
use wharf_config::Lifecycle;
use wharf_mcp::{
    News,
    session::{Era, NewsFeed},
};

/// Minimum lifetime after which a lost session is replaced without a request.
const MIN_SESSION_LIFETIME: Duration = Duration::from_secs(10);

type Waiter = oneshot::Sender<Result<Arc<SharedSession>, ConnectFailure>>;

/// Handle through which callers get sessions from the task.
#[derive(Debug)]
pub(crate) struct SessionKeeper {
    /// Unbounded, but each caller has at most one small message queued.
    requests: mpsc::UnboundedSender<KeeperRequest>,
    current: Arc<watch::Sender<Option<Arc<SharedSession>>>>,
    last_use: LastUse,
    watched_resources: WatchedResources,
    stopped_as_idle: Arc<AtomicBool>,
}

/// Configuration and shared state of the task.
#[derive(Clone)]
pub(crate) struct SessionKeeperContext {
    pub(crate) upstream: Upstream,
    pub(crate) publisher: Arc<StatusPublisher>,
    pub(crate) lists_to_refresh: Arc<ListsToRefresh>,
    pub(crate) consent: Arc<dyn Consent>,
    /// Protocol era of all sessions, or `None` for the one that the server prefers.
    pub(crate) era: Option<Era>,
    /// Idle time after which the server is stopped, if set.
    pub(crate) idle_stop: Option<Duration>,
    /// Becomes true when the task must end.
    pub(crate) stop: watch::Receiver<bool>,
}

enum KeeperRequest {
    Session(Waiter),
    /// Retires the given session, or the current one. Later calls get a new session.
    Retire(Option<Arc<SharedSession>>),
}

/// State of the connection.
enum KeeperState {
    Idle,
    Connecting { connect: ConnectFuture, waiting: Vec<Waiter> },
    Ready(Ready),
}

struct Ready {
    session: Arc<SharedSession>,
    notifications: NewsFeed,
    cleanup: SessionCleanup,
    since: Instant,
}

enum KeeperEvent {
    Requested(KeeperRequest),
    Connected(Result<UpstreamSession, Arc<Fault>>),
    Notified(News),
    Lost,
    IdleTimeout,
}

struct KeeperTask {
    context: SessionKeeperContext,
    current: Arc<watch::Sender<Option<Arc<SharedSession>>>>,
    last_use: LastUse,
    watched_resources: WatchedResources,
    /// Whether the last session was stopped as idle.
    stopped_as_idle: Arc<AtomicBool>,
    /// Tasks that close sessions, and tasks that run transient sessions.
    cleanups: JoinSet<()>,
    /// Whether a session was opened before.
    had_session: bool,
}

impl SessionKeeper {
    /// Creates a keeper and its task. The task ends, and stops the server, when the keeper is dropped or `stop` is
    /// set.
    pub(crate) fn new(
        context: SessionKeeperContext,
    ) -> (SessionKeeper, impl Future<Output = ()> + Send + 'static) {
        let (requests, incoming) = mpsc::unbounded_channel();
        let current = Arc::new(watch::Sender::new(None));
        let (last_use, watched_resources, stopped_as_idle) =
            (LastUse::now(), WatchedResources::default(), Arc::<AtomicBool>::default());
        let task = KeeperTask {
            context,
            current: current.clone(),
            last_use: last_use.clone(),
            watched_resources: watched_resources.clone(),
            stopped_as_idle: stopped_as_idle.clone(),
            cleanups: JoinSet::new(),
            had_session: false,
        };
        (
            SessionKeeper { requests, current, last_use, watched_resources, stopped_as_idle },
            task.run(incoming),
        )
    }

    /// Replaces the set of watched resources, for the current session and for later ones.
    pub(crate) fn watch(&self, uris: BTreeSet<String>) {
        self.watched_resources.set(uris, || self.current.borrow().clone());
    }

    /// Returns an open session: the kept one, or a session of the caller's own for a transient source.
    pub(crate) async fn session(&self) -> Result<Arc<SharedSession>, ConnectFailure> {
        if let Some(session) = self.open_session() {
            self.last_use.touch();
            return Ok(session);
        }
        let (waiter, session) = oneshot::channel();
        self.requests.send(KeeperRequest::Session(waiter)).map_err(|_| closing_failure())?;
        session.await.map_err(|_| closing_failure())?
    }

    /// Returns the kept session if it is open. Does not count as use.
    pub(crate) fn open_session(&self) -> Option<Arc<SharedSession>> {
        self.current.borrow().as_ref().filter(|it| !it.is_over()).cloned()
    }

    /// Returns whether the last session was stopped as idle.
    pub(crate) fn is_stopped_as_idle(&self) -> bool {
        self.stopped_as_idle.load(Ordering::Acquire)
    }

    /// Returns the number of requests the kept session has not answered yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.current.borrow().as_ref().map_or(0, |it| it.unanswered())
    }

    /// Retires `session`, or the current session if `None`. Calls in flight finish on it; the next call gets a new
    /// one.
    pub(crate) fn retire(&self, session: Option<Arc<SharedSession>>) {
        // Callers that arrive after this function has returned have to ask the task, and their message follows
        // `Retire`.
        self.current.send_if_modified(|it| {
            let is_current =
                it.as_ref().is_some_and(|kept| session.as_ref().is_none_or(|it| Arc::ptr_eq(it, kept)));
            is_current && it.take().is_some()
        });
        // Fails if the task has ended, which leaves no session to retire.
        let _ = self.requests.send(KeeperRequest::Retire(session));
    }
}

impl KeeperTask {
    async fn run(mut self, mut incoming: mpsc::UnboundedReceiver<KeeperRequest>) {
        let mut stop = self.context.stop.clone();
        let mut state = KeeperState::Idle;
        loop {
            let idle = self.context.idle_stop.map(|it| self.last_use.idle_deadline(it));
            let event = tokio::select! {
                request = incoming.recv() => match request {
                    Some(request) => KeeperEvent::Requested(request),
                    None => break,
                },
                event = state.next(idle) => event,
                _ = stop.wait_for(|stop| *stop) => break,
                Some(_) = self.cleanups.join_next() => continue,
            };
            state = self.step(state, event);
        }
        // Dropping the receiver is not enough: a message sent at this very moment would stay queued and its sender
        // would wait forever.
        incoming.close();
        while incoming.recv().await.is_some() {}
        match state {
            KeeperState::Idle => {}
            KeeperState::Connecting { connect, waiting } => self.abandon_connect(connect, waiting),
            KeeperState::Ready(ready) => self.retire_session(ready),
        }
        while self.cleanups.join_next().await.is_some() {}
    }

    /// State machine of the connection, one arm per transition.
    fn step(&mut self, state: KeeperState, event: KeeperEvent) -> KeeperState {
        match (state, event) {
            (KeeperState::Idle, KeeperEvent::Requested(KeeperRequest::Session(waiter)))
                if self.is_transient() =>
            {
                self.open_for_caller(waiter);
                KeeperState::Idle
            }
            (KeeperState::Idle, KeeperEvent::Requested(KeeperRequest::Session(waiter))) => {
                KeeperState::Connecting { connect: self.context.connect(), waiting: vec![waiter] }
            }
            (
                KeeperState::Connecting { connect, mut waiting },
                KeeperEvent::Requested(KeeperRequest::Session(waiter)),
            ) => {
                waiting.push(waiter);
                KeeperState::Connecting { connect, waiting }
            }
            (KeeperState::Connecting { waiting, .. }, KeeperEvent::Connected(Ok(live))) => {
                self.begin_session(live, waiting)
            }
            (KeeperState::Connecting { waiting, .. }, KeeperEvent::Connected(Err(fault))) => {
                let failure = ConnectFailure::new(fault);
                waiting.into_iter().for_each(|it| _ = it.send(Err(failure.clone())));
                KeeperState::Idle
            }
            (KeeperState::Ready(ready), KeeperEvent::Requested(KeeperRequest::Session(waiter)))
                if ready.session.is_over() =>
            {
                self.retire_session(ready);
                KeeperState::Connecting { connect: self.context.connect(), waiting: vec![waiter] }
            }
            (KeeperState::Ready(ready), KeeperEvent::Requested(KeeperRequest::Session(waiter))) => {
                let _ = waiter.send(Ok(ready.session.clone()));
                KeeperState::Ready(ready)
            }
            (KeeperState::Ready(ready), KeeperEvent::Requested(KeeperRequest::Retire(which)))
                if ready.is(which.as_ref()) =>
            {
                self.replace(ready)
            }
            (KeeperState::Ready(ready), KeeperEvent::Lost) => self.replace(ready),
            (KeeperState::Ready(ready), KeeperEvent::IdleTimeout) if self.is_idle(&ready) => {
                self.retire_session(ready);
                self.stopped_as_idle.store(true, Ordering::Release);
                KeeperState::Idle
            }
            (KeeperState::Ready(ready), KeeperEvent::Notified(News::Renewed)) => {
                ready.session.resubscribe();
                notifications::handle(&self.context.publisher, &self.context.lists_to_refresh, News::Renewed);
                KeeperState::Ready(ready)
            }
            (state, KeeperEvent::Notified(notifications)) => {
                notifications::handle(&self.context.publisher, &self.context.lists_to_refresh, notifications);
                state
            }
            (
                state,
                KeeperEvent::Requested(KeeperRequest::Retire(_))
                | KeeperEvent::IdleTimeout
                | KeeperEvent::Lost
                | KeeperEvent::Connected(_),
            ) => state,
        }
    }

    fn is_transient(&self) -> bool {
        self.context.upstream.source().lifecycle == Lifecycle::Transient
    }

    /// Returns whether the session is unused and has been for the whole idle timeout.
    fn is_idle(&self, ready: &Ready) -> bool {
        if !ready.is_unused() || !self.watched_resources.is_empty() {
            // A call in flight counts as use, and so does a subscription to resource updates.
            self.last_use.touch();
        }
        self.context.idle_stop.is_some_and(|it| self.last_use.idle_deadline(it) <= Instant::now())
    }

    fn begin_session(&mut self, live: UpstreamSession, waiting: Vec<Waiter>) -> KeeperState {
        let (session, notifications, cleanup) = live.split();
        let session = Arc::new(SharedSession::new(session));
        self.last_use.touch();
        self.stopped_as_idle.store(false, Ordering::Release);
        waiting.into_iter().for_each(|it| _ = it.send(Ok(session.clone())));
        self.current.send_replace(Some(session.clone()));
        let watched_resources = self.watched_resources.apply(&session);
        if std::mem::replace(&mut self.had_session, true) {
            // Updates that happened between the sessions are unknown, so report every watched resource as updated.
            watched_resources
                .into_iter()
                .for_each(|uri| self.context.publisher.publish(EventKind::ResourceUpdated(uri)));
        }
        KeeperState::Ready(Ready { session, notifications, cleanup, since: Instant::now() })
    }

    /// Retires a session. Connects again without a request if resources are watched, unless the session ended too
    /// early: then the next call connects.
    fn replace(&mut self, ready: Ready) -> KeeperState {
        let lasted = ready.since.elapsed() >= MIN_SESSION_LIFETIME;
        self.retire_session(ready);
        match lasted && !self.watched_resources.is_empty() {
            true => KeeperState::Connecting { connect: self.context.connect(), waiting: Vec::new() },
            false => KeeperState::Idle,
        }
    }

    /// Retires a session. It closes when the last call that uses it has finished.
    fn retire_session(&mut self, ready: Ready) {
        self.current.send_replace(None);
        self.context.publisher.session_ended();
        let Ready { session, notifications, cleanup, .. } = ready;
        drop((session, notifications));
        let publisher = self.context.publisher.clone();
        self.cleanups.spawn(async move { publisher.session_finished(&*cleanup.session_finished().await) });
    }

    /// Gives up a connect attempt at shutdown. The attempt observes `stop` itself; a session that opens anyway is
    /// closed.
    fn abandon_connect(&mut self, connect: ConnectFuture, waiting: Vec<Waiter>) {
        drop(waiting);
        self.cleanups.spawn(async move {
            if let Ok(live) = connect.await {
                live.close().await;
            }
        });
    }

    /// Opens a session for one caller. It ends when the caller drops it.
    fn open_for_caller(&mut self, waiter: Waiter) {
        let (connect, publisher, lists_to_refresh) =
            (self.context.connect(), self.context.publisher.clone(), self.context.lists_to_refresh.clone());
        self.cleanups.spawn(async move {
            let live = match connect.await {
                Ok(live) => live,
                Err(fault) => {
                    let _ = waiter.send(Err(ConnectFailure::new(fault)));
                    return;
                }
            };
            let (session, mut notifications, cleanup) = live.split();
            // If the caller is gone, the send fails and drops the session, which ends it.
            let _ = waiter.send(Ok(Arc::new(SharedSession::new(session))));
            while let Some(notifications) = notifications.next().await {
                notifications::handle(&publisher, &lists_to_refresh, notifications);
            }
            publisher.session_ended();
            publisher.session_finished(&*cleanup.session_finished().await);
        });
    }
}

impl KeeperState {
    /// Waits for the next event in this state. Cancel-safe: it only polls.
    async fn next(&mut self, idle: Option<Instant>) -> KeeperEvent {
        match self {
            KeeperState::Idle => std::future::pending().await,
            KeeperState::Connecting { connect, .. } => KeeperEvent::Connected(connect.await),
            KeeperState::Ready(ready) => match idle {
                None => ready.notifications().await,
                Some(by) => {
                    time::timeout_at(by, ready.notifications()).await.unwrap_or(KeeperEvent::IdleTimeout)
                }
            },
        }
    }
}

impl Ready {
    async fn notifications(&mut self) -> KeeperEvent {
        self.notifications.next().await.map_or(KeeperEvent::Lost, KeeperEvent::Notified)
    }

    fn is(&self, which: Option<&Arc<SharedSession>>) -> bool {
        which.is_none_or(|it| Arc::ptr_eq(it, &self.session))
    }

    /// Returns whether only this task and the `current` channel hold the session.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.session) <= 2
    }
}

fn closing_failure() -> ConnectFailure {
    ConnectFailure::new(Arc::new(Fault::closing()))
}
