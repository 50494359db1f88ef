//! Records when a session was last used. The idle timeout is measured from there.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Time of last use, shared by the keeper handle and its task.
#[derive(Clone, Debug)]
pub(super) struct LastUse(Arc<Mutex<Instant>>);

impl LastUse {
    pub(super) fn now() -> LastUse {
        LastUse(Arc::new(Mutex::new(Instant::now())))
    }

    pub(super) fn touch(&self) {
        *self.at() = Instant::now();
    }

    /// Returns the time at which the session will have been unused for `idle`.
    pub(super) fn idle_deadline(&self, idle: Duration) -> Instant {
        *self.at() + idle
    }

    fn at(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
