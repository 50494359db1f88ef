//! Circuit breakers that replicas share through the database.
//!
//! A replica writes its own transitions and follows those of others. Both use compare-and-set on the row's epoch, so
//! that only one of two concurrent transitions wins. Before a replica probes a source, it takes a lease and renews it
//! during the call. If the replica is killed, another may probe when the lease expires. While a breaker is closed,
//! the database is not queried, and when the database is unreachable, every replica's own breaker decides.

use super::QUERY_TIMEOUT;
use crate::{api::Api, journal::DatabaseStatus};
use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};
use wharf_runtime::{BreakerCoordinator, BreakerState, Handle, ProbeDecision};
use wharf_store::{BreakerRow, Store, StoreError};

/// How long a probe's lease is valid without renewal.
const PROBE_LEASE: Duration = Duration::from_secs(10);

/// Interval of lease renewals.
pub(super) const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(3);

/// An open breaker with at most this much time left is waited for, because the clocks of two machines may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(300);

/// Maximum time that a caller waits for the decision.
const DECISION_TIMEOUT: Duration = Duration::from_secs(3);

/// Coordinates circuit breakers with other replicas, on behalf of the runtime.
#[derive(Clone, Debug)]
pub(crate) struct SharedBreakers(mpsc::UnboundedSender<BreakerRequest>);

/// A notification or request of the runtime.
#[derive(Debug)]
pub(super) enum BreakerRequest {
    Turned(Arc<str>, BreakerState),
    MayProbe(Arc<str>, oneshot::Sender<ProbeDecision>),
}

/// The breakers as stored in the database.
pub(super) struct StoredBreakers {
    store: Store,
    handle: Handle,
    api: Api,
    database: Arc<DatabaseStatus>,
    /// Last seen epoch, by source.
    known: HashMap<String, i64>,
    /// Epochs of the leases for this replica's running probes, by source.
    leases: HashMap<String, i64>,
    /// Transitions that could not be written because the database was unreachable.
    unwritten: HashMap<String, BreakerState>,
}

impl SharedBreakers {
    pub(super) fn new() -> (SharedBreakers, mpsc::UnboundedReceiver<BreakerRequest>) {
        let (sender, breaker_requests) = mpsc::unbounded_channel();
        (SharedBreakers(sender), breaker_requests)
    }
}

impl BreakerCoordinator for SharedBreakers {
    fn breaker_changed(&self, source: &Arc<str>, breaker: BreakerState) {
        // A half-open breaker has already asked for its probe.
        if breaker != BreakerState::HalfOpen {
            let _ = self.0.send(BreakerRequest::Turned(source.clone(), breaker));
        }
    }

    fn may_probe(&self, source: &Arc<str>) -> Pin<Box<dyn Future<Output = ProbeDecision> + Send>> {
        let (reply, decision) = oneshot::channel();
        let _ = self.0.send(BreakerRequest::MayProbe(source.clone(), reply));
        Box::pin(async {
            let decision = timeout(DECISION_TIMEOUT, decision).await;
            // Without a decision in time, the local breaker decides.
            decision.ok().and_then(Result::ok).unwrap_or(ProbeDecision::Go)
        })
    }
}

impl StoredBreakers {
    pub(super) fn new(
        store: Store,
        handle: Handle,
        api: Api,
        database: Arc<DatabaseStatus>,
    ) -> StoredBreakers {
        let (known, leases, unwritten) = Default::default();
        StoredBreakers { store, handle, api, database, known, leases, unwritten }
    }

    pub(super) async fn answer(&mut self, request: BreakerRequest) {
        match request {
            BreakerRequest::Turned(source, breaker) => {
                self.leases.remove(&*source);
                self.write(&source, breaker).await;
            }
            BreakerRequest::MayProbe(source, reply) => {
                let decision = self.decide_probe(&source).await;
                let _ = reply.send(decision);
            }
        }
    }

    /// Writes pending local transitions, then applies those of other replicas.
    pub(super) async fn read(&mut self) -> Result<(), StoreError> {
        for (source, breaker) in std::mem::take(&mut self.unwritten) {
            self.write(&source, breaker).await;
        }
        for row in self.store.breakers().await? {
            let is_newer = self.known.get(&row.source).is_none_or(|known| *known < row.epoch);
            if is_newer {
                self.follow(&row);
            }
        }
        Ok(())
    }

    /// Renews the leases of running probes.
    pub(super) async fn renew(&mut self) {
        for (source, epoch) in self.leases.clone() {
            let renewed = timeout(QUERY_TIMEOUT, self.store.renew_probe(&source, epoch, PROBE_LEASE)).await;
            if let Ok(Ok(false)) = renewed {
                self.leases.remove(&source);
            }
        }
    }

    /// Writes a transition. If another replica was first, its transition is applied instead.
    async fn write(&mut self, source: &str, breaker: BreakerState) {
        let open_for = match breaker {
            BreakerState::Open { until } => Some(until.saturating_duration_since(Instant::now())),
            BreakerState::Closed { .. } | BreakerState::HalfOpen => None,
        };
        let epoch = self.known.get(source).copied().unwrap_or_default();
        let breaker_changed = match self.database.is_away() {
            true => None,
            false => run_query(self.store.set_breaker(source, Some(epoch), open_for)).await,
        };
        match breaker_changed {
            Some(Some(epoch)) => _ = self.known.insert(source.to_owned(), epoch),
            Some(None) => {
                if let Some(Some(row)) = run_query(self.store.breaker(source)).await {
                    self.follow(&row);
                }
            }
            None => _ = self.unwritten.insert(source.to_owned(), breaker),
        }
    }

    async fn decide_probe(&mut self, source: &str) -> ProbeDecision {
        // The database does not know yet that this breaker is open.
        if self.database.is_away() || self.unwritten.contains_key(source) {
            return ProbeDecision::Go;
        }
        let mut wait = Duration::ZERO;
        for _ in 0..2 {
            sleep(wait).await;
            match run_query(self.store.lease_probe(source, PROBE_LEASE)).await {
                None => return ProbeDecision::Go,
                Some(Some(epoch)) => {
                    self.known.insert(source.to_owned(), epoch);
                    self.leases.insert(source.to_owned(), epoch);
                    return ProbeDecision::Go;
                }
                Some(None) => {}
            }
            let Some(Some(row)) = run_query(self.store.breaker(source)).await else {
                return ProbeDecision::Go;
            };
            self.known.insert(source.to_owned(), row.epoch);
            if row.state == "closed" {
                return ProbeDecision::Closed;
            }
            wait = remaining_wait(&row);
            if wait > CLOCK_TOLERANCE {
                break;
            }
        }
        ProbeDecision::Wait(wait.max(CLOCK_TOLERANCE))
    }

    /// Applies the stored state of a breaker.
    fn follow(&mut self, row: &BreakerRow) {
        self.known.insert(row.source.clone(), row.epoch);
        self.leases.remove(&row.source);
        let breaker = match row.state.as_str() {
            "closed" => BreakerState::Closed { failures: 0 },
            _ => BreakerState::Open { until: Instant::now() + remaining_wait(row) },
        };
        if !self.api.follow_model_breaker(&row.source, breaker) {
            // This replica may not have the source.
            let _ = self.handle.follow(&row.source, breaker);
        }
    }
}

/// Remaining time until a probe is allowed.
fn remaining_wait(row: &BreakerRow) -> Duration {
    Duration::from_micros(u64::try_from(row.wait).unwrap_or_default())
}

/// Runs a query with a timeout. Returns `None` if it fails.
async fn run_query<T>(query: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
    match timeout(QUERY_TIMEOUT, query).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::warn!(target: "wharf::replica", "a shared circuit breaker cannot be read or written: {error}");
            None
        }
        Err(_) => None,
    }
}
