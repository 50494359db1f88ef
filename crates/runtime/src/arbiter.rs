//! What several runtimes that call the same sources agree on: when one of them rests, and who tries it first.
//!
//! A runtime decides by itself unless it is given an [`Arbiter`]. It is told of turns and asked about probes, so a call to a
//! source that is well never meets it.

use crate::breaker::Breaker;
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

/// Whether a source that has rested may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may, by whoever asks.
    Go,
    /// It need not be: others know that it is well.
    Closed,
    /// Not yet: it rests for longer, or another is trying.
    Wait(Duration),
}

/// Speaks for all who call the same sources.
pub trait Arbiter: Send + Sync {
    /// A breaker has turned here. Comes from whichever task caused it, so it must not block.
    fn turned(&self, source: &Arc<str>, breaker: Breaker);

    /// Whether this one may try a source that has rested. Comes back soon, whatever became of the others.
    fn may_probe(&self, source: &Arc<str>) -> Pin<Box<dyn Future<Output = Ruling> + Send>>;
}
