//! Keeps one session per source, or opens one per call for a transient source.
//!
//! A connect attempt may outlive the call that triggered it (`npx` may download for a minute). It therefore belongs
//! to this task and not to a caller, and concurrent callers share one attempt. Callers get an open session directly,
//! without a round trip to the task.

mod attempt;
mod news;
mod used;
mod watched;

use crate::{
    Fault,
    board::Board,
    events::Happening,
    incident::{ConnectFailure, SharedSession},
    stale::Stale,
    upstream::{Consent, Live, Upstream, Wake},
};
use attempt::Attempt;
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
use used::Used;
pub(crate) use watched::Watched;
use wharf_config::Lifecycle;
use wharf_mcp::{News, session::NewsFeed};

/// Minimum lifetime after which a lost session is replaced without a request.
const LASTING: Duration = Duration::from_secs(10);

type Waiter = oneshot::Sender<Result<Arc<SharedSession>, ConnectFailure>>;

/// Handle through which callers get sessions from the task.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Unbounded, but each caller has at most one small message queued.
    wants: mpsc::UnboundedSender<Want>,
    current: Arc<watch::Sender<Option<Arc<SharedSession>>>>,
    used: Used,
    watched: Watched,
    idled: Arc<AtomicBool>,
}

/// Configuration and shared state of the task.
pub(crate) struct Keep {
    pub(crate) upstream: Upstream,
    pub(crate) board: Arc<Board>,
    pub(crate) stale: Arc<Stale>,
    pub(crate) consent: Arc<dyn Consent>,
    /// Idle time after which the server is stopped, if set.
    pub(crate) idle_stop: Option<Duration>,
    /// Becomes true when the task must end.
    pub(crate) stop: watch::Receiver<bool>,
}

enum Want {
    Session(Waiter),
    /// Retires the given session, or the current one. Later calls get a new session.
    Retire(Option<Arc<SharedSession>>),
}

/// State of the connection.
enum State {
    Idle,
    Connecting { attempt: Attempt, waiting: Vec<Waiter> },
    Ready(Ready),
}

struct Ready {
    session: Arc<SharedSession>,
    news: NewsFeed,
    wake: Wake,
    since: Instant,
}

enum Event {
    Wanted(Want),
    Connected(Result<Live, Arc<Fault>>),
    Heard(News),
    Lost,
    Idled,
}

struct Task {
    keep: Keep,
    current: Arc<watch::Sender<Option<Arc<SharedSession>>>>,
    used: Used,
    watched: Watched,
    /// Whether the last session was stopped as idle.
    idled: Arc<AtomicBool>,
    /// Tasks that close sessions, and tasks that run transient sessions.
    leaving: JoinSet<()>,
    /// Whether a session was opened before.
    moored: bool,
}

impl Keeper {
    /// Creates a keeper and its task. The task ends, and stops the server, when the keeper is dropped or `stop` is
    /// set.
    pub(crate) fn new(keep: Keep) -> (Keeper, impl Future<Output = ()> + Send + 'static) {
        let (wants, wanted) = mpsc::unbounded_channel();
        let current = Arc::new(watch::Sender::new(None));
        let (used, watched, idled) = (Used::now(), Watched::default(), Arc::<AtomicBool>::default());
        let task = Task {
            keep,
            current: current.clone(),
            used: used.clone(),
            watched: watched.clone(),
            idled: idled.clone(),
            leaving: JoinSet::new(),
            moored: false,
        };
        (Keeper { wants, current, used, watched, idled }, task.run(wanted))
    }

    /// Replaces the set of watched resources, for the current session and for later ones.
    pub(crate) fn watch(&self, uris: BTreeSet<String>) {
        self.watched.set(uris, || self.current.borrow().clone());
    }

    /// Returns an open session: the kept one, or a session of the caller's own for a transient source.
    pub(crate) async fn session(&self) -> Result<Arc<SharedSession>, ConnectFailure> {
        if let Some(session) = self.open_session() {
            self.used.touch();
            return Ok(session);
        }
        let (waiter, session) = oneshot::channel();
        self.wants.send(Want::Session(waiter)).map_err(|_| closing())?;
        session.await.map_err(|_| closing())?
    }

    /// Returns the kept session if it is open. Does not count as use.
    pub(crate) fn open_session(&self) -> Option<Arc<SharedSession>> {
        self.current.borrow().as_ref().filter(|it| !it.is_over()).cloned()
    }

    /// Returns whether the last session was stopped as idle.
    pub(crate) fn is_stopped_as_idle(&self) -> bool {
        self.idled.load(Ordering::Acquire)
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
            let meant =
                it.as_ref().is_some_and(|kept| session.as_ref().is_none_or(|it| Arc::ptr_eq(it, kept)));
            meant && it.take().is_some()
        });
        // Fails if the task has ended, which leaves no session to retire.
        let _ = self.wants.send(Want::Retire(session));
    }
}

impl Task {
    async fn run(mut self, mut wanted: mpsc::UnboundedReceiver<Want>) {
        let mut stop = self.keep.stop.clone();
        let mut state = State::Idle;
        loop {
            let idle = self.keep.idle_stop.map(|it| self.used.and(it));
            let event = tokio::select! {
                want = wanted.recv() => match want {
                    Some(want) => Event::Wanted(want),
                    None => break,
                },
                event = state.next(idle) => event,
                _ = stop.wait_for(|stop| *stop) => break,
                Some(_) = self.leaving.join_next() => continue,
            };
            state = self.step(state, event);
        }
        // Dropping the receiver is not enough: a message sent at this very moment would stay queued and its sender
        // would wait forever.
        wanted.close();
        while wanted.recv().await.is_some() {}
        match state {
            State::Idle => {}
            State::Connecting { attempt, waiting } => self.give_up(attempt, waiting),
            State::Ready(ready) => self.let_go(ready),
        }
        while self.leaving.join_next().await.is_some() {}
    }

    /// State machine of the connection, one arm per transition.
    fn step(&mut self, state: State, event: Event) -> State {
        match (state, event) {
            (State::Idle, Event::Wanted(Want::Session(waiter))) if self.is_transient() => {
                self.lend(waiter);
                State::Idle
            }
            (State::Idle, Event::Wanted(Want::Session(waiter))) => {
                State::Connecting { attempt: self.keep.attempt(), waiting: vec![waiter] }
            }
            (State::Connecting { attempt, mut waiting }, Event::Wanted(Want::Session(waiter))) => {
                waiting.push(waiter);
                State::Connecting { attempt, waiting }
            }
            (State::Connecting { waiting, .. }, Event::Connected(Ok(live))) => self.moor(live, waiting),
            (State::Connecting { waiting, .. }, Event::Connected(Err(fault))) => {
                let failure = ConnectFailure::new(fault);
                waiting.into_iter().for_each(|it| _ = it.send(Err(failure.clone())));
                State::Idle
            }
            (State::Ready(ready), Event::Wanted(Want::Session(waiter))) if ready.session.is_over() => {
                self.let_go(ready);
                State::Connecting { attempt: self.keep.attempt(), waiting: vec![waiter] }
            }
            (State::Ready(ready), Event::Wanted(Want::Session(waiter))) => {
                let _ = waiter.send(Ok(ready.session.clone()));
                State::Ready(ready)
            }
            (State::Ready(ready), Event::Wanted(Want::Retire(which))) if ready.is(which.as_ref()) => {
                self.replace(ready)
            }
            (State::Ready(ready), Event::Lost) => self.replace(ready),
            (State::Ready(ready), Event::Idled) if self.is_idle(&ready) => {
                self.let_go(ready);
                self.idled.store(true, Ordering::Release);
                State::Idle
            }
            (State::Ready(ready), Event::Heard(News::Renewed)) => {
                ready.session.watch_again();
                news::hear(&self.keep.board, &self.keep.stale, News::Renewed);
                State::Ready(ready)
            }
            (state, Event::Heard(news)) => {
                news::hear(&self.keep.board, &self.keep.stale, news);
                state
            }
            (state, Event::Wanted(Want::Retire(_)) | Event::Idled | Event::Lost | Event::Connected(_)) => {
                state
            }
        }
    }

    fn is_transient(&self) -> bool {
        self.keep.upstream.source().lifecycle == Lifecycle::Transient
    }

    /// Returns whether the session is unused and has been for the whole idle timeout.
    fn is_idle(&self, ready: &Ready) -> bool {
        if !ready.is_unused() || !self.watched.is_empty() {
            // A call in flight counts as use, and so does a subscription to resource updates.
            self.used.touch();
        }
        self.keep.idle_stop.is_some_and(|it| self.used.and(it) <= Instant::now())
    }

    fn moor(&mut self, live: Live, waiting: Vec<Waiter>) -> State {
        let (session, news, wake) = live.split();
        let session = Arc::new(SharedSession::new(session));
        self.used.touch();
        self.idled.store(false, Ordering::Release);
        waiting.into_iter().for_each(|it| _ = it.send(Ok(session.clone())));
        self.current.send_replace(Some(session.clone()));
        let watched = self.watched.apply(&session);
        if std::mem::replace(&mut self.moored, true) {
            // Updates that happened between the sessions are unknown, so report every watched resource as updated.
            watched.into_iter().for_each(|uri| self.keep.board.tell(Happening::ResourceUpdated(uri)));
        }
        State::Ready(Ready { session, news, wake, since: Instant::now() })
    }

    /// Retires a session. Connects again without a request if resources are watched, unless the session ended too
    /// early: then the next call connects.
    fn replace(&mut self, ready: Ready) -> State {
        let lasted = ready.since.elapsed() >= LASTING;
        self.let_go(ready);
        match lasted && !self.watched.is_empty() {
            true => State::Connecting { attempt: self.keep.attempt(), waiting: Vec::new() },
            false => State::Idle,
        }
    }

    /// Retires a session. It closes when the last call that uses it has finished.
    fn let_go(&mut self, ready: Ready) {
        self.current.send_replace(None);
        self.keep.board.ended();
        let Ready { session, news, wake, .. } = ready;
        drop((session, news));
        let board = self.keep.board.clone();
        self.leaving.spawn(async move { board.gone(&*wake.gone().await) });
    }

    /// Gives up a connect attempt at shutdown. The attempt observes `stop` itself; a session that opens anyway is
    /// closed.
    fn give_up(&mut self, attempt: Attempt, waiting: Vec<Waiter>) {
        drop(waiting);
        self.leaving.spawn(async move {
            if let Ok(live) = attempt.await {
                live.close().await;
            }
        });
    }

    /// Opens a session for one caller. It ends when the caller drops it.
    fn lend(&mut self, waiter: Waiter) {
        let (attempt, board, stale) = (self.keep.attempt(), self.keep.board.clone(), self.keep.stale.clone());
        self.leaving.spawn(async move {
            let live = match attempt.await {
                Ok(live) => live,
                Err(fault) => {
                    let _ = waiter.send(Err(ConnectFailure::new(fault)));
                    return;
                }
            };
            let (session, mut news, wake) = live.split();
            // If the caller is gone, the send fails and drops the session, which ends it.
            let _ = waiter.send(Ok(Arc::new(SharedSession::new(session))));
            while let Some(news) = news.next().await {
                news::hear(&board, &stale, news);
            }
            board.ended();
            board.gone(&*wake.gone().await);
        });
    }
}

impl State {
    /// Waits for the next event in this state. Cancel-safe: it only polls.
    async fn next(&mut self, idle: Option<Instant>) -> Event {
        match self {
            State::Idle => std::future::pending().await,
            State::Connecting { attempt, .. } => Event::Connected(attempt.await),
            State::Ready(ready) => match idle {
                None => ready.news().await,
                Some(by) => time::timeout_at(by, ready.news()).await.unwrap_or(Event::Idled),
            },
        }
    }
}

impl Ready {
    async fn news(&mut self) -> Event {
        self.news.next().await.map_or(Event::Lost, Event::Heard)
    }

    fn is(&self, which: Option<&Arc<SharedSession>>) -> bool {
        which.is_none_or(|it| Arc::ptr_eq(it, &self.session))
    }

    /// Returns whether only this task and the `current` channel hold the session.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.session) <= 2
    }
}

fn closing() -> ConnectFailure {
    ConnectFailure::new(Arc::new(Fault::closing()))
}
