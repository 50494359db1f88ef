//! Limits the number of server processes, whether configured, registered or started for one call.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Default limit.
const USUAL: usize = 64;

/// The free process slots. Clones share them.
#[derive(Clone, Debug)]
pub struct Processes {
    free: Arc<Semaphore>,
    most: usize,
}

/// One process slot, freed when dropped.
#[derive(Debug)]
pub(crate) struct Slot(#[expect(dead_code, reason = "it is only held")] OwnedSemaphorePermit);

impl Processes {
    /// Creates a limit of `most` processes.
    pub fn at_most(most: usize) -> Processes {
        let most = most.min(Semaphore::MAX_PERMITS);
        Processes { free: Arc::new(Semaphore::new(most)), most }
    }

    /// Returns the limit.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Takes a slot, if one is free.
    pub(super) fn take(&self) -> Option<Slot> {
        self.free.clone().try_acquire_owned().ok().map(Slot)
    }
}

impl Default for Processes {
    fn default() -> Processes {
        Processes::at_most(USUAL)
    }
}
