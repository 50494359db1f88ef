//! Defines how several replicas that call the same sources coordinate their circuit breakers.
//!
//! A runtime without an [`Arbiter`] decides on its own. The arbiter receives state changes and decides about probes
//! only, so calls to a healthy source do not involve it.

use crate::breaker::Breaker;
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

/// Decision about a probe of a source whose breaker is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The caller may probe.
    Go,
    /// No probe needed: another replica has found the source healthy.
    Closed,
    /// Not yet: the breaker stays open for this time, or another replica is probing.
    Wait(Duration),
}

/// Coordinates the breakers of all replicas that call the same sources.
pub trait Arbiter: Send + Sync {
    /// Reports a state change of a local breaker. Called in the task that caused it, so it must not block.
    fn turned(&self, source: &Arc<str>, breaker: Breaker);

    /// Decides whether this replica may probe a source. Must return quickly, even if other replicas do not respond.
    fn may_probe(&self, source: &Arc<str>) -> Pin<Box<dyn Future<Output = Ruling> + Send>>;
}
