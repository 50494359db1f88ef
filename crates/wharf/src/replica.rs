//! Synchronizes this gateway with other replicas on the same database.
//!
//! One task receives the changes that others make and applies them: registered sources, disabled tools, circuit
//! breakers and sessions. It also handles all database access for breakers on behalf of the runtime. SQLite has no
//! replicas, so nothing of this runs there. While the database is unreachable, every replica continues on its own.

mod breakers;
mod sessions;

use crate::{
    accepted_definitions::accepted_definitions,
    api::Api,
    journal::DatabaseStatus,
    registry::{SourceRegistry, disabled_tools},
};
pub(crate) use breakers::SharedBreakers;
use breakers::{BreakerRequest, StoredBreakers};
pub(crate) use sessions::SharedSessions;
use std::{future, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use wharf_runtime::Handle;
use wharf_store::{Change, Changes, Store, StoreError};

/// Timeout for each database query made here.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of changes that are queued for processing.
const MAX_QUEUED_CHANGES: usize = 64;

/// This gateway as one of several replicas.
pub(crate) struct Replica {
    store: Store,
    database: Arc<DatabaseStatus>,
    breaker_requests: mpsc::UnboundedReceiver<BreakerRequest>,
}

/// The state that changes of other replicas are applied to.
struct ReplicaState<'a> {
    store: Store,
    database: Arc<DatabaseStatus>,
    handle: Handle,
    api: Api,
    registry: &'a SourceRegistry,
    breakers: StoredBreakers,
    /// Set if a change could not be read. Everything is then read again at the next tick.
    missed: bool,
}

impl Replica {
    /// Creates the replica and its breaker coordinator for the runtime. Returns `None` if the database cannot be
    /// shared.
    pub(crate) fn new(store: &Store, database: &Arc<DatabaseStatus>) -> Option<(Replica, SharedBreakers)> {
        store.is_shared().then(|| {
            let (shared_breakers, breaker_requests) = SharedBreakers::new();
            (Replica { store: store.clone(), database: database.clone(), breaker_requests }, shared_breakers)
        })
    }

    /// The session store for legacy-era sessions, shared by all replicas.
    pub(crate) fn sessions(&self) -> SharedSessions {
        SharedSessions::new(self.store.clone(), self.database.clone())
    }

    /// Applies the changes of other replicas. Never returns.
    pub(crate) async fn follow(self, handle: Handle, api: Api, registry: &SourceRegistry) {
        let Replica { store, database, mut breaker_requests } = self;
        let (sender, mut changes) = mpsc::channel(MAX_QUEUED_CHANGES);
        let listening = listen(store.changes(), sender);
        let breakers = StoredBreakers::new(store.clone(), handle.clone(), api.clone(), database.clone());
        let mut state = ReplicaState { store, database, handle, api, registry, breakers, missed: false };
        let mut ticks = interval(breakers::LEASE_RENEWAL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let applying = async {
            loop {
                tokio::select! {
                    Some(change) = changes.recv() => state.apply_change(change).await,
                    Some(request) = breaker_requests.recv() => state.breakers.answer(request).await,
                    _ = ticks.tick() => state.tick().await,
                }
            }
        };
        tokio::select! {
            () = listening => {}
            () = applying => {}
        }
    }
}

/// Receives notifications independently of how long processing them takes.
async fn listen(mut changes: Changes, sender: mpsc::Sender<Change>) {
    while let Some(change) = changes.next().await {
        if sender.send(change).await.is_err() {
            return;
        }
    }
    future::pending().await
}

impl ReplicaState<'_> {
    async fn apply_change(&mut self, change: Change) {
        tracing::debug!(target: "wharf::replica", ?change, "received a change of another replica");
        match change {
            Change::Lost => {
                if self.database.set_away(true) {
                    tracing::warn!(target: "wharf::replica", "the database is unreachable; calls continue without it");
                }
                return;
            }
            Change::Everything if self.database.set_away(false) => {
                tracing::info!(target: "wharf::replica", "the database is reachable again");
            }
            Change::Session(key) => return self.api.invalidate_session(Some(&key)),
            _ => {}
        }
        let applied = timeout(QUERY_TIMEOUT, self.read(&change)).await;
        let timed_out = || Err(StoreError::Open("the database does not answer".to_owned()));
        if let Err(error) = applied.unwrap_or_else(|_| timed_out()) {
            self.missed = true;
            tracing::warn!(target: "wharf::replica", "the changes of other replicas cannot be read: {error}");
        }
    }

    async fn read(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Breakers => self.breakers.read().await,
            Change::Tools => self.switch_tools().await,
            Change::AcceptedDefinitions => self.accept_definitions().await,
            Change::Everything => {
                self.api.invalidate_session(None);
                self.breakers.read().await?;
                self.switch_tools().await?;
                self.accept_definitions().await?;
                self.registry.reload(None).await
            }
            Change::Sources => self.registry.reload(None).await,
            Change::Session(_) | Change::Lost => Ok(()),
        }
    }

    async fn accept_definitions(&self) -> Result<(), StoreError> {
        self.handle.set_accepted_definitions(accepted_definitions(&self.store).await?);
        Ok(())
    }

    async fn switch_tools(&self) -> Result<(), StoreError> {
        self.handle.set_disabled_tools(disabled_tools(&self.store).await?);
        Ok(())
    }

    async fn tick(&mut self) {
        if self.database.is_away() {
            return;
        }
        self.breakers.renew().await;
        if std::mem::take(&mut self.missed) {
            self.apply_change(Change::Everything).await;
        }
    }
}
