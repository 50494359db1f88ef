//! Keeps one session per source, or opens one per call.
//!
//! A connect attempt outlives the call that asked for it (`npx` may spend a minute downloading), so it belongs to this
//! task and not to any caller; and however many ask, there is one. A session that stands is handed out without asking
//! the task at all.

mod attempt;
mod news;
mod used;
mod watched;

use crate::{
    Fault,
    board::Board,
    config::Lifecycle,
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
use wharf_mcp::{News, session::NewsFeed};

/// A session that held for so long was a good one.
const LASTING: Duration = Duration::from_secs(10);

type Waiter = oneshot::Sender<Result<Arc<SharedSession>, ConnectFailure>>;

/// The callers' end.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Unbounded, but nobody has more than one wish in it at a time; and a wish is small.
    wants: mpsc::UnboundedSender<Want>,
    current: Arc<watch::Sender<Option<Arc<SharedSession>>>>,
    used: Used,
    watched: Watched,
    idled: Arc<AtomicBool>,
}

/// What the task works with.
pub(crate) struct Keep {
    pub(crate) upstream: Upstream,
    pub(crate) board: Arc<Board>,
    pub(crate) stale: Arc<Stale>,
    pub(crate) consent: Arc<dyn Consent>,
    /// After how long without a call the server is stopped, if ever.
    pub(crate) idle_stop: Option<Duration>,
    /// Whether all this is to end.
    pub(crate) stop: watch::Receiver<bool>,
}

enum Want {
    Session(Waiter),
    /// Let the present session go: what comes next is served by another.
    Retire(Option<Arc<SharedSession>>),
}

/// What the source is doing.
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
    /// Whether the last session ended because nobody used it.
    idled: Arc<AtomicBool>,
    /// Sessions on their way out, and transient ones.
    leaving: JoinSet<()>,
    /// Whether there was a session before.
    moored: bool,
}

impl Keeper {
    /// A keeper, and its task: it ends when the keeper is dropped or `stop` says so, and takes the server with it.
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

    /// From now on, hears of changes of these resources and of no others, whichever session it is.
    pub(crate) fn watch(&self, uris: BTreeSet<String>) {
        self.watched.set(uris, || self.current.borrow().clone());
    }

    /// A session that stands: the kept one, or one of the caller's own.
    pub(crate) async fn session(&self) -> Result<Arc<SharedSession>, ConnectFailure> {
        if let Some(session) = self.open_session() {
            self.used.touch();
            return Ok(session);
        }
        let (waiter, session) = oneshot::channel();
        self.wants.send(Want::Session(waiter)).map_err(|_| closing())?;
        session.await.map_err(|_| closing())?
    }

    /// The kept session, if it is open. To look at it is not to use it.
    pub(crate) fn open_session(&self) -> Option<Arc<SharedSession>> {
        self.current.borrow().as_ref().filter(|it| !it.is_over()).cloned()
    }

    /// Whether the last session ended because nobody used it.
    pub(crate) fn is_stopped_as_idle(&self) -> bool {
        self.idled.load(Ordering::Acquire)
    }

    /// How many requests the kept session has not had an answer to.
    pub(crate) fn unanswered(&self) -> usize {
        self.current.borrow().as_ref().map_or(0, |it| it.unanswered())
    }

    /// Lets a session go, or whichever there is. Calls that use it end on it; the next one gets another.
    pub(crate) fn retire(&self, session: Option<Arc<SharedSession>>) {
        // Whoever comes after this has to ask the task, which by then has been told.
        self.current.send_if_modified(|it| {
            let meant =
                it.as_ref().is_some_and(|kept| session.as_ref().is_none_or(|it| Arc::ptr_eq(it, kept)));
            meant && it.take().is_some()
        });
        // A task that is gone keeps no session.
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
        // Not only dropped: what is being put in at this very moment would lie there, and its asker would wait for ever.
        wanted.close();
        while wanted.recv().await.is_some() {}
        match state {
            State::Idle => {}
            State::Connecting { attempt, waiting } => self.give_up(attempt, waiting),
            State::Ready(ready) => self.let_go(ready),
        }
        while self.leaving.join_next().await.is_some() {}
    }

    /// The whole life of a connection, one line per transition.
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

    /// Whether nobody uses the session, and nobody has for long enough.
    fn is_idle(&self, ready: &Ready) -> bool {
        if !ready.is_unused() || !self.watched.is_empty() {
            // A call that takes long is use, too, and so is waiting for news.
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
            // Nobody can tell what has happened to them meanwhile.
            watched.into_iter().for_each(|uri| self.keep.board.tell(Happening::ResourceUpdated(uri)));
        }
        State::Ready(Ready { session, news, wake, since: Instant::now() })
    }

    /// Lets a session go; where somebody waits for news, another is begun without being asked for. One that did not last
    /// is not worth that: the next call is.
    fn replace(&mut self, ready: Ready) -> State {
        let lasted = ready.since.elapsed() >= LASTING;
        self.let_go(ready);
        match lasted && !self.watched.is_empty() {
            true => State::Connecting { attempt: self.keep.attempt(), waiting: Vec::new() },
            false => State::Idle,
        }
    }

    /// A session is over, or is to be once its last caller is done.
    fn let_go(&mut self, ready: Ready) {
        self.current.send_replace(None);
        self.keep.board.ended();
        let Ready { session, news, wake, .. } = ready;
        drop((session, news));
        let board = self.keep.board.clone();
        self.leaving.spawn(async move { board.gone(&*wake.gone().await) });
    }

    /// An attempt that nobody waits for any more, which knows that, and ends what it has started.
    fn give_up(&mut self, attempt: Attempt, waiting: Vec<Waiter>) {
        drop(waiting);
        self.leaving.spawn(async move {
            if let Ok(live) = attempt.await {
                live.close().await;
            }
        });
    }

    /// One session for one caller, which ends when the caller lets go of it.
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
            // A caller who left meanwhile gets the session back dropped, which ends it.
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
    /// The next thing this state is waiting for. Cancel-safe: it only polls.
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

    /// Whether nobody but us and the board by the door holds it.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.session) <= 2
    }
}

fn closing() -> ConnectFailure {
    ConnectFailure::new(Arc::new(Fault::closing()))
}
