//! Breakers that gateways on one database share.
//!
//! What turns here is written down, and what turned elsewhere is followed; both are compared by the epoch of the row, so of
//! two turns one counts. Whoever wants to try a source takes a lease on it first and renews it while the call is out: if it
//! is killed, another may try when the lease is over. Nothing of this is asked while a source is well, and when the database
//! cannot be asked, each gateway's own breaker decides.

use super::PATIENCE;
use crate::journal::Reach;
use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};
use wharf_runtime::{Arbiter, Breaker, Handle, Ruling};
use wharf_store::{BreakerRow, Store, StoreError};

/// How long a probe may be unheard of before another may try.
const LEASE: Duration = Duration::from_secs(10);

/// How often a lease is renewed.
pub(super) const RENEWAL: Duration = Duration::from_secs(3);

/// A rest that is over so soon is waited for: the clocks of two machines need not be alike.
const MOMENT: Duration = Duration::from_millis(300);

/// The longest that a caller waits for what others say.
const LONGEST: Duration = Duration::from_secs(3);

/// Speaks for all gateways on one database, to the runtime.
#[derive(Clone, Debug)]
pub(crate) struct Council(mpsc::UnboundedSender<Ask>);

/// What the runtime says or asks.
#[derive(Debug)]
pub(super) enum Ask {
    Turned(Arc<str>, Breaker),
    MayProbe(Arc<str>, oneshot::Sender<Ruling>),
}

/// The breakers as the database has them.
pub(super) struct Breakers {
    store: Store,
    handle: Handle,
    reach: Arc<Reach>,
    /// The epoch that each was last seen with.
    known: HashMap<String, i64>,
    /// The probes that are out from here, and the epochs of their leases.
    leases: HashMap<String, i64>,
    /// What turned while the database was away.
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
        // Who tries has asked before.
        if breaker != Breaker::HalfOpen {
            let _ = self.0.send(Ask::Turned(source.clone(), breaker));
        }
    }

    fn may_probe(&self, source: &Arc<str>) -> Pin<Box<dyn Future<Output = Ruling> + Send>> {
        let (reply, ruling) = oneshot::channel();
        let _ = self.0.send(Ask::MayProbe(source.clone(), reply));
        Box::pin(async {
            let ruling = timeout(LONGEST, ruling).await;
            // When nobody answers we are on our own.
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

    /// Brings in what turned elsewhere, after what turned here and could not be said.
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

    /// Keeps the leases of the probes that are out.
    pub(super) async fn renew(&mut self) {
        for (source, epoch) in self.leases.clone() {
            let renewed = timeout(PATIENCE, self.store.renew_probe(&source, epoch, LEASE)).await;
            if let Ok(Ok(false)) = renewed {
                self.leases.remove(&source);
            }
        }
    }

    /// Says that a breaker has turned, unless somebody else was faster: then that counts.
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
        // Others do not know yet that it rests at all.
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

    /// Takes a breaker as it is elsewhere.
    fn follow(&mut self, row: &BreakerRow) {
        self.known.insert(row.source.clone(), row.epoch);
        self.leases.remove(&row.source);
        let breaker = match row.state.as_str() {
            "closed" => Breaker::Closed { failures: 0 },
            _ => Breaker::Open { until: Instant::now() + rest(row) },
        };
        // Not everybody has every source.
        let _ = self.handle.follow(&row.source, breaker);
    }
}

/// For how long more nobody may try.
fn rest(row: &BreakerRow) -> Duration {
    Duration::from_micros(u64::try_from(row.wait).unwrap_or_default())
}

/// What the database says, if it says anything.
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
