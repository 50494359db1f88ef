//! Defines the deadline of a call. It includes all waiting before the request is sent.

use std::{future::Future, time::Duration};
use tokio::time::{self, Instant};

/// The point in time by which the caller needs the result, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline(pub(crate) Option<Instant>);

impl Deadline {
    /// Creates a deadline `timeout` from now.
    pub(crate) fn after(timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.map(|it| Instant::now() + it))
    }

    /// Awaits a future until the deadline. Returns `None` on timeout.
    pub(crate) async fn wait<T>(self, future: impl Future<Output = T>) -> Option<T> {
        match self.0 {
            Some(by) => time::timeout_at(by, future).await.ok(),
            None => Some(future.await),
        }
    }
}
