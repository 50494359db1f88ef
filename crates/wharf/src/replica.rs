//! Synchronizes this gateway with other replicas on the same database.
//!
//! One task receives the changes that others make and applies them: registered sources, disabled tools, circuit
//! breakers and sessions. It also handles all database access for breakers on behalf of the runtime. SQLite has no
//! replicas, so nothing of this runs there. While the database is unreachable, every replica continues on its own.

mod breakers;
mod sessions;

use crate::{
    front::Front,
    journal::Reach,
    registry::{Registry, switched_off},
};
pub(crate) use breakers::Council;
use breakers::{Ask, Breakers};
pub(crate) use sessions::SharedSessions;
use std::{future, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use wharf_runtime::Handle;
use wharf_store::{Change, Changes, Store, StoreError};

/// Timeout for each database query made here.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of changes that are queued for processing.
const QUEUE: usize = 64;

/// This gateway as one of several replicas.
pub(crate) struct Replica {
    store: Store,
    reach: Arc<Reach>,
    asks: mpsc::UnboundedReceiver<Ask>,
}

/// The state that changes of other replicas are applied to.
struct Common<'a> {
    store: Store,
    reach: Arc<Reach>,
    handle: Handle,
    front: Front,
    registry: &'a Registry,
    breakers: Breakers,
    /// Set if a change could not be read. Everything is then read again at the next tick.
    missed: bool,
}

impl Replica {
    /// Creates the replica and its breaker coordinator for the runtime. Returns `None` if the database cannot be
    /// shared.
    pub(crate) fn new(store: &Store, reach: &Arc<Reach>) -> Option<(Replica, Council)> {
        store.is_shared().then(|| {
            let (council, asks) = Council::new();
            (Replica { store: store.clone(), reach: reach.clone(), asks }, council)
        })
    }

    /// The session store for legacy-era sessions, shared by all replicas.
    pub(crate) fn sessions(&self) -> SharedSessions {
        SharedSessions::new(self.store.clone(), self.reach.clone())
    }

    /// Applies the changes of other replicas. Never returns.
    pub(crate) async fn follow(self, handle: Handle, front: Front, registry: &Registry) {
        let Replica { store, reach, mut asks } = self;
        let (tell, mut changes) = mpsc::channel(QUEUE);
        let listening = listen(store.changes(), tell);
        let breakers = Breakers::new(store.clone(), handle.clone(), reach.clone());
        let mut common = Common { store, reach, handle, front, registry, breakers, missed: false };
        let mut ticks = interval(breakers::RENEWAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let bringing_in = async {
            loop {
                tokio::select! {
                    Some(change) = changes.recv() => common.bring_in(change).await,
                    Some(ask) = asks.recv() => common.breakers.answer(ask).await,
                    _ = ticks.tick() => common.tick().await,
                }
            }
        };
        tokio::select! {
            () = listening => {}
            () = bringing_in => {}
        }
    }
}

/// Receives notifications independently of how long processing them takes.
async fn listen(mut changes: Changes, tell: mpsc::Sender<Change>) {
    while let Some(change) = changes.next().await {
        if tell.send(change).await.is_err() {
            return;
        }
    }
    future::pending().await
}

impl Common<'_> {
    async fn bring_in(&mut self, change: Change) {
        tracing::debug!(target: "wharf::replica", ?change, "others have changed something");
        match change {
            Change::Lost => {
                if self.reach.set_away(true) {
                    tracing::warn!(target: "wharf::replica", "the database cannot be reached; calls go on without it");
                }
                return;
            }
            Change::Everything if self.reach.set_away(false) => {
                tracing::info!(target: "wharf::replica", "the database can be reached again");
            }
            Change::Session(key) => return self.front.doubt_session(Some(&key)),
            _ => {}
        }
        let brought_in = timeout(PATIENCE, self.read(&change)).await;
        let silent = || Err(StoreError::Open("the database does not answer".to_owned()));
        if let Err(error) = brought_in.unwrap_or_else(|_| silent()) {
            self.missed = true;
            tracing::warn!(target: "wharf::replica", "what others have changed cannot be read: {error}");
        }
    }

    async fn read(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Breakers => self.breakers.read().await,
            Change::Tools => self.switch_tools().await,
            Change::Everything => {
                self.front.doubt_session(None);
                self.breakers.read().await?;
                self.switch_tools().await?;
                self.registry.reload().await
            }
            Change::Sources => self.registry.reload().await,
            Change::Session(_) | Change::Lost => Ok(()),
        }
    }

    async fn switch_tools(&self) -> Result<(), StoreError> {
        self.handle.switch_off(switched_off(&self.store).await?);
        Ok(())
    }

    async fn tick(&mut self) {
        if self.reach.is_away() {
            return;
        }
        self.breakers.renew().await;
        if std::mem::take(&mut self.missed) {
            self.bring_in(Change::Everything).await;
        }
    }
}
