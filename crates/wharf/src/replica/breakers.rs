//! Circuit breakers that replicas share through the database.
//!
//! A replica writes its own transitions and follows those of others. Both use compare-and-set on the row's epoch, so
//! that only one of two concurrent transitions wins. Before a replica probes a source, it takes a lease and renews it
//! during the call. If the replica is killed, another may probe when the lease expires. While a breaker is closed,
//! the database is not queried, and when the database is unreachable, every replica's own breaker decides.

use super::PATIENCE;
use crate::journal::Reach;
use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};
use wharf_runtime::{Arbiter, Breaker, Handle, Ruling};
use wharf_store::{BreakerRow, Store, StoreError};

/// How long a probe's lease is valid without renewal.
const LEASE: Duration = Duration::from_secs(10);

/// Interval of lease renewals.
pub(super) const RENEWAL: Duration = Duration::from_secs(3);

/// An open breaker with at most this much time left is waited for, because the clocks of two machines may differ.
const MOMENT: Duration = Duration::from_millis(300);

/// Maximum time that a caller waits for the decision.
const LONGEST: Duration = Duration::from_secs(3);

/// Coordinates circuit breakers with other replicas, on behalf of the runtime.
#[derive(Clone, Debug)]
pub(crate) struct Council(mpsc::UnboundedSender<Ask>);

/// A notification or request of the runtime.
#[derive(Debug)]
pub(super) enum Ask {
    Turned(Arc<str>, Breaker),
    MayProbe(Arc<str>, oneshot::Sender<Ruling>),
}

/// The breakers as stored in the database.
pub(super) struct Breakers {
    store: Store,
    handle: Handle,
    reach: Arc<Reach>,
    /// Last seen epoch, by source.
    known: HashMap<String, i64>,
    /// Epochs of the leases for this replica's running probes, by source.
    leases: HashMap<String, i64>,
    /// Transitions that could not be written because the database was unreachable.
    unwritten: HashMap<String, Breaker>,
}

impl Council {
    pub(super) fn new() -> (Council, mpsc::UnboundedReceiver<Ask>) {
        let (tell, asks) = mpsc::unbounded_channel();
        (Council(tell), asks)
    }
}

impl Arbiter for Council {
    fn turned(&self, source: &Arc<str>, breaker: Breaker) {
        // A half-open breaker has already asked for its probe.
        if breaker != Breaker::HalfOpen {
            let _ = self.0.send(Ask::Turned(source.clone(), breaker));
        }
    }

    fn may_probe(&self, source: &Arc<str>) -> Pin<Box<dyn Future<Output = Ruling> + Send>> {
        let (reply, ruling) = oneshot::channel();
        let _ = self.0.send(Ask::MayProbe(source.clone(), reply));
        Box::pin(async {
            let ruling = timeout(LONGEST, ruling).await;
            // Without a decision in time, the local breaker decides.
            ruling.ok().and_then(Result::ok).unwrap_or(Ruling::Go)
        })
    }
}

impl Breakers {
    pub(super) fn new(store: Store, handle: Handle, reach: Arc<Reach>) -> Breakers {
        let (known, leases, unwritten) = Default::default();
        Breakers { store, handle, reach, known, leases, unwritten }
    }

    pub(super) async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Turned(source, breaker) => {
                self.leases.remove(&*source);
                self.write(&source, breaker).await;
            }
            Ask::MayProbe(source, reply) => {
                let ruling = self.rule(&source).await;
                let _ = reply.send(ruling);
            }
        }
    }

    /// Writes pending local transitions, then applies those of other replicas.
    pub(super) async fn read(&mut self) -> Result<(), StoreError> {
        for (source, breaker) in std::mem::take(&mut self.unwritten) {
            self.write(&source, breaker).await;
        }
        for row in self.store.breakers().await? {
            let is_news = self.known.get(&row.source).is_none_or(|known| *known < row.epoch);
            if is_news {
                self.follow(&row);
            }
        }
        Ok(())
    }

    /// Renews the leases of running probes.
    pub(super) async fn renew(&mut self) {
        for (source, epoch) in self.leases.clone() {
            let renewed = timeout(PATIENCE, self.store.renew_probe(&source, epoch, LEASE)).await;
            if let Ok(Ok(false)) = renewed {
                self.leases.remove(&source);
            }
        }
    }

    /// Writes a transition. If another replica was first, its transition is applied instead.
    async fn write(&mut self, source: &str, breaker: Breaker) {
        let open_for = match breaker {
            Breaker::Open { until } => Some(until.saturating_duration_since(Instant::now())),
            Breaker::Closed { .. } | Breaker::HalfOpen => None,
        };
        let epoch = self.known.get(source).copied().unwrap_or_default();
        let turned = match self.reach.is_away() {
            true => None,
            false => asked(self.store.turn_breaker(source, Some(epoch), open_for)).await,
        };
        match turned {
            Some(Some(epoch)) => _ = self.known.insert(source.to_owned(), epoch),
            Some(None) => {
                if let Some(Some(row)) = asked(self.store.breaker(source)).await {
                    self.follow(&row);
                }
            }
            None => _ = self.unwritten.insert(source.to_owned(), breaker),
        }
    }

    async fn rule(&mut self, source: &str) -> Ruling {
        // The database does not know yet that this breaker is open.
        if self.reach.is_away() || self.unwritten.contains_key(source) {
            return Ruling::Go;
        }
        let mut wait = Duration::ZERO;
        for _ in 0..2 {
            sleep(wait).await;
            match asked(self.store.lease_probe(source, LEASE)).await {
                None => return Ruling::Go,
                Some(Some(epoch)) => {
                    self.known.insert(source.to_owned(), epoch);
                    self.leases.insert(source.to_owned(), epoch);
                    return Ruling::Go;
                }
                Some(None) => {}
            }
            let Some(Some(row)) = asked(self.store.breaker(source)).await else { return Ruling::Go };
            self.known.insert(source.to_owned(), row.epoch);
            if row.state == "closed" {
                return Ruling::Closed;
            }
            wait = rest(&row);
            if wait > MOMENT {
                break;
            }
        }
        Ruling::Wait(wait.max(MOMENT))
    }

    /// Applies the stored state of a breaker.
    fn follow(&mut self, row: &BreakerRow) {
        self.known.insert(row.source.clone(), row.epoch);
        self.leases.remove(&row.source);
        let breaker = match row.state.as_str() {
            "closed" => Breaker::Closed { failures: 0 },
            _ => Breaker::Open { until: Instant::now() + rest(row) },
        };
        // This replica may not have the source.
        let _ = self.handle.follow(&row.source, breaker);
    }
}

/// Remaining time until a probe is allowed.
fn rest(row: &BreakerRow) -> Duration {
    Duration::from_micros(u64::try_from(row.wait).unwrap_or_default())
}

/// Runs a query with a timeout. Returns `None` if it fails.
async fn asked<T>(question: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
    match timeout(PATIENCE, question).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::warn!(target: "wharf::replica", "others cannot be asked about a breaker: {error}");
            None
        }
        Err(_) => None,
    }
}
