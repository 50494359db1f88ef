//! By when a caller wants its answer. What is waited for before anything is sent counts too.

use std::{future::Future, time::Duration};
use tokio::time::{self, Instant};

/// The end of a caller's patience, if it has one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// So long from now.
    pub(crate) fn after(timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.map(|it| Instant::now() + it))
    }

    /// The moment.
    pub(crate) fn instant(self) -> Option<Instant> {
        self.0
    }

    /// What comes in time.
    pub(crate) async fn wait<T>(self, coming: impl Future<Output = T>) -> Option<T> {
        match self.0 {
            Some(by) => time::timeout_at(by, coming).await.ok(),
            None => Some(coming.await),
        }
    }
}
