//! Settings of a circuit breaker.

use std::time::Duration;

/// Thresholds of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Number of consecutive failures that opens the breaker.
    pub failure_threshold: u32,
    /// Time that the breaker stays open before it allows a probe.
    pub recovery_timeout: Duration,
}

impl BreakerPolicy {
    /// Defaults for a model.
    pub const MODEL: BreakerPolicy =
        BreakerPolicy { failure_threshold: 3, recovery_timeout: Duration::from_secs(60) };
}

/// Defaults for an MCP source.
impl Default for BreakerPolicy {
    fn default() -> BreakerPolicy {
        BreakerPolicy { failure_threshold: 5, recovery_timeout: Duration::from_secs(30) }
    }
}
