//! Handles of the session task: send it requests and wait for the responses.

use super::{
    conversation::{Ask, Conversation},
    departure::Departure,
    ears::Ears,
    host::Host,
    news::{self, News, NewsFeed},
    terms::Terms,
    until::Until,
};
use crate::{Failure, Goodbye, Link, Outbound, Raw, Sent};
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
        oneshot, watch,
    },
    task::JoinSet,
    time,
};

/// Capacity of the command channel to the session task.
const QUEUE: usize = 64;

/// Handle to the session task, usable before and after the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    asks: mpsc::Sender<Ask>,
    reach: Reach,
}

/// Handle that does not keep the session alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakWire {
    asks: mpsc::WeakSender<Ask>,
    reach: Reach,
}

/// Access to the session's [`Goodbye`] after its end.
#[derive(Clone, Debug)]
pub(crate) struct Ended(watch::Receiver<Option<Arc<Goodbye>>>);

/// Part of a handle that both strong and weak handles need.
#[derive(Clone, Debug)]
struct Reach {
    abandons: mpsc::UnboundedSender<u64>,
    shared: Arc<Shared>,
    ended: Ended,
}

/// State shared by the session task and its handles.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    next_id: AtomicU64,
    pub(crate) terms: OnceLock<Terms>,
    pub(crate) stirred: tokio::sync::Notify,
    /// Whether the server has requested roots.
    pub(crate) asked_roots: AtomicBool,
    /// Notified when a response to a server request was queued.
    pub(crate) answered: tokio::sync::Notify,
    /// Whether the caller's deadline has passed, so that closing must be quick.
    pub(crate) overdue: AtomicBool,
    /// Number of pending requests.
    pub(crate) unanswered: AtomicUsize,
    /// Log level last sent to the server, plus one; 0 if none.
    pub(crate) log_level: AtomicU8,
}

/// Spawns the session task in `tasks`.
pub(crate) fn start(
    link: Link,
    host: Arc<dyn Host>,
    close_grace: Duration,
    tasks: &mut JoinSet<()>,
) -> (Wire, Ended, NewsFeed) {
    let (asks, asked) = mpsc::channel(QUEUE);
    let (abandons, abandoned) = mpsc::unbounded_channel();
    let (farewell, ended) = watch::channel(None);
    let (desk, feed) = news::feed();
    let shared = Arc::<Shared>::default();
    let conversation = Conversation::new(link, host, shared.clone(), desk, close_grace);
    tasks.spawn(async move {
        conversation.run(asked, abandoned, &farewell).await;
    });
    let ended = Ended(ended);
    let reach = Reach { abandons, shared, ended: ended.clone() };
    (Wire { asks, reach }, ended, feed)
}

impl Wire {
    pub(crate) fn next_id(&self) -> u64 {
        // Start at 1: some servers treat 0 as a missing id.
        self.reach.shared.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.reach.shared
    }

    pub(crate) fn is_over(&self) -> bool {
        self.asks.is_closed()
    }

    pub(crate) fn weak(&self) -> WeakWire {
        WeakWire { asks: self.asks.downgrade(), reach: self.reach.clone() }
    }

    /// Sends a request and waits for its response. Dropping the future cancels the request at the server.
    pub(crate) async fn exchange(
        &self,
        message: Outbound,
        until: impl Into<Until>,
        ears: Ears,
    ) -> Result<Raw, Failure> {
        let until = until.into();
        let (reply, answer) = oneshot::channel();
        let Outbound::Request { id, .. } = message else {
            return Err(Failure::protocol("only a request can be answered"));
        };
        let guard = AbandonOnDrop { id, abandons: &self.reach.abandons, armed: true };
        let departure = Departure::default();
        let ask = Ask::Request { message, reply, ears, departure: departure.clone() };
        // The channel nearly always has capacity; avoid the timer in that case.
        match self.asks.try_send(ask) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return Err(self.reach.ended.failure().await),
            Err(TrySendError::Full(ask)) => {
                match Box::pin(time::timeout_at(until.by(), self.asks.send(ask))).await {
                    Err(_) => return Err(Failure::timeout(Sent::No)),
                    Ok(Err(_)) => return Err(self.reach.ended.failure().await),
                    Ok(Ok(())) => {}
                }
            }
        }
        self.reach.wait(guard, answer, &departure, &until).await
    }

    /// Publishes news that we inferred from the server's behaviour.
    pub(crate) async fn tell(&self, news: News) {
        // After the session has ended the news is irrelevant.
        let _ = self.asks.send(Ask::Tell(news)).await;
    }

    pub(crate) async fn notify(&self, message: Outbound) -> Result<(), Failure> {
        match self.asks.send(Ask::Say(message)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.reach.ended.failure().await),
        }
    }
}

impl WeakWire {
    /// Sends a request without a deadline, keeping the session alive only until the session task accepts it. Dropping
    /// the future cancels the request.
    pub(crate) async fn ask(
        &self,
        make: impl FnOnce(u64) -> Outbound,
        ears: Ears,
    ) -> Option<Result<Raw, Failure>> {
        let asks = self.asks.upgrade()?;
        let id = self.reach.shared.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, answer) = oneshot::channel();
        let departure = Departure::default();
        let mut guard = AbandonOnDrop { id, abandons: &self.reach.abandons, armed: true };
        asks.send(Ask::Request { message: make(id), reply, ears, departure }).await.ok()?;
        drop(asks);
        let answer = answer.await;
        guard.armed = false;
        answer.ok()
    }

    /// Waits until the session has ended.
    pub(crate) async fn over(&self) {
        let mut farewell = self.reach.ended.0.clone();
        let _ = farewell.wait_for(Option::is_some).await;
    }
}

impl Reach {
    async fn wait(
        &self,
        mut guard: AbandonOnDrop<'_>,
        answer: oneshot::Receiver<Result<Raw, Failure>>,
        departure: &Departure,
        until: &Until,
    ) -> Result<Raw, Failure> {
        match until.wait(answer).await {
            // The guard stays armed and cancels the request.
            None if departure.keep() => Err(Failure::timeout(Sent::No)),
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

impl Ended {
    /// Returns how the session ended, as far as known.
    pub(crate) fn goodbye(&self) -> Arc<Goodbye> {
        self.0.borrow().clone().unwrap_or_else(|| Arc::new(Goodbye::because("the conversation ended")))
    }

    /// Builds the failure of a request made after the end.
    async fn failure(&self) -> Failure {
        let mut farewell = self.0.clone();
        let _ = farewell.wait_for(Option::is_some).await;
        Failure::closed(Sent::No, self.goodbye())
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
