//! When a session was last handed out, which is what idling is measured from.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Shared by those who hand sessions out and the one who lets them go.
#[derive(Clone, Debug)]
pub(super) struct Used(Arc<Mutex<Instant>>);

impl Used {
    pub(super) fn now() -> Used {
        Used(Arc::new(Mutex::new(Instant::now())))
    }

    pub(super) fn touch(&self) {
        *self.at() = Instant::now();
    }

    /// The moment at which it will have been unused for so long.
    pub(super) fn and(&self, idle: Duration) -> Instant {
        *self.at() + idle
    }

    fn at(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
