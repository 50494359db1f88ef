//! Defines how several replicas that call the same sources coordinate their circuit breakers.
//!
//! A runtime without a [`BreakerCoordinator`] decides on its own. The coordinator receives state changes and decides
//! about probes only, so calls to a healthy source do not involve it.

use crate::circuit_breaker::BreakerState;
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

/// Decision about a probe of a source whose breaker is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeDecision {
    /// The caller may probe.
    Go,
    /// No probe needed: another replica has found the source healthy.
    Closed,
    /// Not yet: the breaker stays open for this time, or another replica is probing.
    Wait(Duration),
}

/// Coordinates the breakers of all replicas that call the same sources.
pub trait BreakerCoordinator: Send + Sync {
    /// Reports a state change of a local breaker. Called in the task that caused it, so it must not block.
    fn breaker_changed(&self, source: &Arc<str>, breaker: BreakerState);

    /// Decides whether this replica may probe a source. Must return quickly, even if other replicas do not respond.
    fn may_probe(&self, source: &Arc<str>) -> Pin<Box<dyn Future<Output = ProbeDecision> + Send>>;
}
