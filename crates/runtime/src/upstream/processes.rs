//! How many servers may run as processes at a time, however they came to be: named in a file, registered, or started for
//! one call.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many may run where nobody says.
const USUAL: usize = 64;

/// What is free of the processes that may run; clones share it.
#[derive(Clone, Debug)]
pub struct Processes {
    free: Arc<Semaphore>,
    most: usize,
}

/// One process that may run; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(#[expect(dead_code, reason = "it is only held")] OwnedSemaphorePermit);

impl Processes {
    /// So many and no more.
    pub fn at_most(most: usize) -> Processes {
        let most = most.min(Semaphore::MAX_PERMITS);
        Processes { free: Arc::new(Semaphore::new(most)), most }
    }

    /// How many there may be.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Room for one more, if there is any.
    pub(super) fn take(&self) -> Option<Slot> {
        self.free.clone().try_acquire_owned().ok().map(Slot)
    }
}

impl Default for Processes {
    fn default() -> Processes {
        Processes::at_most(USUAL)
    }
}
