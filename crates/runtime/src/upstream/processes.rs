//! Limits the number of server processes, whether configured, registered or started for one call.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Default limit.
const DEFAULT_MAX_PROCESSES: usize = 64;

/// The free process slots. Clones share them.
#[derive(Clone, Debug)]
pub struct ProcessLimit {
    free: Arc<Semaphore>,
    limit: usize,
}

/// One process slot, freed when dropped.
#[derive(Debug)]
pub(crate) struct ProcessSlot(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl ProcessLimit {
    /// Creates a limit of `limit` processes.
    pub fn at_most(limit: usize) -> ProcessLimit {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        ProcessLimit { free: Arc::new(Semaphore::new(limit)), limit }
    }

    /// Returns the limit.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Takes a slot, if one is free.
    pub(super) fn take(&self) -> Option<ProcessSlot> {
        self.free.clone().try_acquire_owned().ok().map(ProcessSlot)
    }
}

impl Default for ProcessLimit {
    fn default() -> ProcessLimit {
        ProcessLimit::at_most(DEFAULT_MAX_PROCESSES)
    }
}
