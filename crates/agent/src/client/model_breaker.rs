//! The circuit breaker of a provider's host, shared by all clients and, if there are several gateways, by all of them.

use std::{fmt, sync::Arc, time::Duration};
use tokio::time::Instant;
use wharf_config::BreakerPolicy;
use wharf_runtime::{BreakerCoordinator, BreakerState, CircuitBreaker, Permit, ProbeDecision};

/// Circuit breaker of one provider at one host. Clients of the same host share it, so that it survives a change of the
/// configuration.
#[derive(Clone)]
pub struct ModelBreaker {
    key: Arc<str>,
    circuit_breaker: Arc<CircuitBreaker>,
    coordinator: Option<Arc<dyn BreakerCoordinator>>,
}

impl ModelBreaker {
    /// Creates a closed breaker. The coordinator knows it under this key.
    pub fn new(
        key: Arc<str>,
        policy: BreakerPolicy,
        coordinator: Option<Arc<dyn BreakerCoordinator>>,
    ) -> ModelBreaker {
        let (changed_key, changed) = (key.clone(), coordinator.clone());
        let circuit_breaker = CircuitBreaker::new(policy, move |state| {
            if let Some(coordinator) = &changed {
                coordinator.breaker_changed(&changed_key, state);
            }
        });
        ModelBreaker { key, circuit_breaker, coordinator }
    }

    /// Returns the key of the breaker.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the breaker itself.
    pub fn circuit_breaker(&self) -> &Arc<CircuitBreaker> {
        &self.circuit_breaker
    }

    /// Returns a permit for one question, or the time to wait. Before a probe, the other replicas are asked.
    pub(crate) async fn admit(&self) -> Result<Permit, Duration> {
        let permit = self.circuit_breaker.admit()?;
        let Some(coordinator) = self.coordinator.as_ref().filter(|_| permit.is_probe()) else {
            return Ok(permit);
        };
        match coordinator.may_probe(&self.key).await {
            ProbeDecision::Go => Ok(permit),
            ProbeDecision::Closed => {
                self.circuit_breaker.adopt_state(BreakerState::Closed { failures: 0 });
                self.circuit_breaker.admit()
            }
            ProbeDecision::Wait(wait) => {
                self.circuit_breaker.adopt_state(BreakerState::Open { until: Instant::now() + wait });
                Err(wait)
            }
        }
    }
}

impl fmt::Debug for ModelBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelBreaker").field("key", &self.key).finish_non_exhaustive()
    }
}
