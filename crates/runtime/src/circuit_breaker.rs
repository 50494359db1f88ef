//! Implements the circuit breaker of a source.
//!
//! [`BreakerState`] is a pure state machine: time and verdicts are arguments. A [`CircuitBreaker`] is shared by
//! callers. A [`Permit`] allows one call and reports the verdict when dropped, even if the caller disconnects.

pub(crate) mod coordinator;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use wharf_config::BreakerPolicy;

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls are allowed.
    Closed {
        /// Number of consecutive failures.
        failures: u32,
    },
    /// Calls are rejected until `until`.
    Open {
        /// Time from which a probe is allowed.
        until: Instant,
    },
    /// One call, the probe, tests whether the source has recovered. Other calls are rejected.
    HalfOpen,
}

/// Evidence that a call provides about the health of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The source works.
    Healthy,
    /// The source failed.
    Failed,
    /// No evidence: the caller disconnected early, or the request did not reach the source.
    Unknown,
}

impl BreakerState {
    /// Returns the state after admitting one call, or the time to wait.
    pub fn admit(self, now: Instant) -> Result<BreakerState, Duration> {
        match self {
            BreakerState::Closed { .. } => Ok(self),
            BreakerState::Open { until } if until <= now => Ok(BreakerState::HalfOpen),
            BreakerState::Open { until } => Err(until - now),
            BreakerState::HalfOpen => Err(Duration::ZERO),
        }
    }

    /// Returns the state after an admitted call has ended.
    #[must_use]
    pub fn record(self, verdict: Verdict, now: Instant, policy: BreakerPolicy) -> BreakerState {
        let open = BreakerState::Open { until: now + policy.recovery_timeout };
        match (self, verdict) {
            (BreakerState::Open { .. }, _) => self,
            (BreakerState::Closed { .. } | BreakerState::HalfOpen, Verdict::Healthy) => {
                BreakerState::Closed { failures: 0 }
            }
            (BreakerState::Closed { .. }, Verdict::Unknown) => self,
            (BreakerState::Closed { failures }, Verdict::Failed)
                if failures + 1 < policy.failure_threshold =>
            {
                BreakerState::Closed { failures: failures + 1 }
            }
            (BreakerState::Closed { .. } | BreakerState::HalfOpen, Verdict::Failed) => open,
            // The probe was inconclusive, so the next call may probe.
            (BreakerState::HalfOpen, Verdict::Unknown) => BreakerState::Open { until: now },
        }
    }

    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            BreakerState::Closed { .. } => "CLOSED",
            BreakerState::Open { .. } => "OPEN",
            BreakerState::HalfOpen => "HALF-OPEN",
        }
    }
}

/// A circuit breaker shared by several callers.
pub struct CircuitBreaker {
    policy: BreakerPolicy,
    tracked: Mutex<TrackedState>,
    on_change: Box<dyn Fn(BreakerState) + Send + Sync>,
}

/// Number of state changes that a breaker remembers.
const MAX_TRANSITIONS: usize = 16;

/// The state of the breaker and the times of its last changes.
#[derive(Clone, Debug)]
struct TrackedState {
    state: BreakerState,
    /// Number of state changes. A permit from an earlier epoch is ignored when it settles.
    epoch: u64,
    failures: u32,
    last_failure: Option<SystemTime>,
    last_change: SystemTime,
    /// The latest state changes, oldest first.
    transitions: VecDeque<BreakerTransition>,
}

/// A change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerTransition {
    /// Time of the change.
    pub at: SystemTime,
    /// The state after it.
    pub state: BreakerState,
}

/// Snapshot of a circuit breaker.
#[derive(Clone, Copy, Debug)]
pub struct BreakerSnapshot {
    /// The state.
    pub state: BreakerState,
    /// Number of consecutive failures.
    pub failures: u32,
    /// The thresholds.
    pub policy: BreakerPolicy,
    /// Time of the last failed call.
    pub last_failure: Option<SystemTime>,
    /// Time of the last state change.
    pub last_change: SystemTime,
}

/// Allows one call. Dropping it unsettled reports [`Verdict::Unknown`].
#[derive(Debug)]
pub struct Permit {
    circuit_breaker: Arc<CircuitBreaker>,
    epoch: u64,
    is_probe: bool,
    verdict: Verdict,
}

impl CircuitBreaker {
    /// Creates a closed breaker. `on_change` is called on every state change, in the task that caused it, so it
    /// must not block.
    pub fn new(
        policy: BreakerPolicy,
        on_change: impl Fn(BreakerState) + Send + Sync + 'static,
    ) -> Arc<CircuitBreaker> {
        let tracked = TrackedState {
            state: BreakerState::Closed { failures: 0 },
            epoch: 0,
            failures: 0,
            last_failure: None,
            last_change: SystemTime::now(),
            transitions: VecDeque::new(),
        };
        Arc::new(CircuitBreaker { policy, tracked: Mutex::new(tracked), on_change: Box::new(on_change) })
    }

    /// Returns a permit for one call, or the time to wait.
    pub fn admit(self: &Arc<CircuitBreaker>) -> Result<Permit, Duration> {
        let mut tracked = self.tracked();
        let next = tracked.state.admit(Instant::now())?;
        let changed = tracked.set_state(next);
        let (epoch, is_probe) = (tracked.epoch, next == BreakerState::HalfOpen);
        drop(tracked);
        self.notify(changed);
        Ok(Permit { circuit_breaker: self.clone(), epoch, is_probe, verdict: Verdict::Unknown })
    }

    /// Returns a permit if the breaker is closed. Never takes the probe of an open breaker.
    pub fn admit_if_closed(self: &Arc<CircuitBreaker>) -> Option<Permit> {
        let tracked = self.tracked();
        let epoch = tracked.epoch;
        matches!(tracked.state, BreakerState::Closed { .. }).then(|| Permit {
            circuit_breaker: self.clone(),
            epoch,
            is_probe: false,
            verdict: Verdict::Unknown,
        })
    }

    /// Returns a snapshot of the state.
    pub fn snapshot(&self) -> BreakerSnapshot {
        let tracked = self.tracked();
        let TrackedState { state, failures, last_failure, last_change, .. } = *tracked;
        BreakerSnapshot { state, failures, policy: self.policy, last_failure, last_change }
    }

    /// Returns the latest 16 changes of the state, oldest first.
    pub fn transitions(&self) -> Vec<BreakerTransition> {
        self.tracked().transitions.iter().copied().collect()
    }

    /// Closes the breaker.
    pub fn reset(&self) {
        let mut tracked = self.tracked();
        tracked.failures = 0;
        let changed = tracked.set_state(BreakerState::Closed { failures: 0 });
        // Ignore the verdicts of calls admitted before the reset.
        tracked.epoch += 1;
        drop(tracked);
        self.notify(changed);
    }

    /// Adopts a state that was decided elsewhere. Returns it if the state name changed. Does not call `on_change`.
    /// Verdicts of calls admitted earlier are ignored.
    pub fn adopt_state(&self, state: BreakerState) -> Option<BreakerState> {
        let mut tracked = self.tracked();
        if let (BreakerState::Closed { .. }, BreakerState::Closed { .. }) = (tracked.state, state) {
            return None;
        }
        if let BreakerState::Closed { failures } = state {
            tracked.failures = failures;
        }
        let changed = tracked.set_state(state);
        tracked.epoch += 1;
        changed
    }

    fn settle(&self, epoch: u64, verdict: Verdict) {
        let mut tracked = self.tracked();
        if tracked.epoch != epoch {
            return;
        }
        match verdict {
            Verdict::Healthy => tracked.failures = 0,
            Verdict::Failed => {
                tracked.failures += 1;
                tracked.last_failure = Some(SystemTime::now());
            }
            Verdict::Unknown => {}
        }
        let next = tracked.state.record(verdict, Instant::now(), self.policy);
        let changed = tracked.set_state(next);
        drop(tracked);
        self.notify(changed);
    }

    fn notify(&self, changed: Option<BreakerState>) {
        if let Some(state) = changed {
            (self.on_change)(state);
        }
    }

    fn tracked(&self) -> MutexGuard<'_, TrackedState> {
        // Every update is a few plain assignments, so a panic cannot leave the data inconsistent.
        self.tracked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrackedState {
    /// Sets the state. Returns it if the state name changed.
    fn set_state(&mut self, next: BreakerState) -> Option<BreakerState> {
        let changed_name = self.state.as_str() != next.as_str();
        self.state = next;
        if changed_name {
            self.epoch += 1;
            self.last_change = SystemTime::now();
            if self.transitions.len() == MAX_TRANSITIONS {
                self.transitions.pop_front();
            }
            self.transitions.push_back(BreakerTransition { at: self.last_change, state: next });
        }
        changed_name.then_some(next)
    }
}

impl Permit {
    /// Returns whether this call is the probe of an open breaker.
    pub fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// Sets the verdict and reports it to the breaker.
    pub fn settle(mut self, verdict: Verdict) {
        self.verdict = verdict;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.circuit_breaker.settle(self.epoch, self.verdict);
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("policy", &self.policy)
            .field("tracked", &*self.tracked())
            .finish_non_exhaustive()
    }
}
