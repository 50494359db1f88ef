//! Implements the circuit breaker of a source.
//!
//! [`Breaker`] is a pure state machine: time and verdicts are arguments. A [`Gate`] is a breaker that callers share.
//! A [`Permit`] allows one call and reports the verdict when dropped, even if the caller disconnects.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use wharf_config::BreakerPolicy;

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
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

impl Breaker {
    /// Returns the state after admitting one call, or the time to wait.
    pub fn admit(self, now: Instant) -> Result<Breaker, Duration> {
        match self {
            Breaker::Closed { .. } => Ok(self),
            Breaker::Open { until } if until <= now => Ok(Breaker::HalfOpen),
            Breaker::Open { until } => Err(until - now),
            Breaker::HalfOpen => Err(Duration::ZERO),
        }
    }

    /// Returns the state after an admitted call has ended.
    #[must_use]
    pub fn record(self, verdict: Verdict, now: Instant, policy: BreakerPolicy) -> Breaker {
        let open = Breaker::Open { until: now + policy.recovery_timeout };
        match (self, verdict) {
            (Breaker::Open { .. }, _) => self,
            (Breaker::Closed { .. } | Breaker::HalfOpen, Verdict::Healthy) => Breaker::Closed { failures: 0 },
            (Breaker::Closed { .. }, Verdict::Unknown) => self,
            (Breaker::Closed { failures }, Verdict::Failed) if failures + 1 < policy.failure_threshold => {
                Breaker::Closed { failures: failures + 1 }
            }
            (Breaker::Closed { .. } | Breaker::HalfOpen, Verdict::Failed) => open,
            // The probe was inconclusive, so the next call may probe.
            (Breaker::HalfOpen, Verdict::Unknown) => Breaker::Open { until: now },
        }
    }

    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Breaker::Closed { .. } => "CLOSED",
            Breaker::Open { .. } => "OPEN",
            Breaker::HalfOpen => "HALF-OPEN",
        }
    }
}

/// A circuit breaker shared by several callers.
pub struct Gate {
    policy: BreakerPolicy,
    chart: Mutex<Chart>,
    told: Box<dyn Fn(Breaker) + Send + Sync>,
}

/// The state of the breaker and the times of its last changes.
#[derive(Clone, Copy, Debug)]
struct Chart {
    breaker: Breaker,
    /// Number of state changes. A permit from an earlier epoch is ignored when it settles.
    epoch: u64,
    failures: u32,
    last_failure: Option<SystemTime>,
    last_change: SystemTime,
}

/// Snapshot of a circuit breaker.
#[derive(Clone, Copy, Debug)]
pub struct GateState {
    /// The state.
    pub breaker: Breaker,
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
    gate: Arc<Gate>,
    epoch: u64,
    is_probe: bool,
    verdict: Verdict,
}

impl Gate {
    /// Creates a closed breaker. `told` is called on every state change, in the task that caused it, so it must not
    /// block.
    pub fn new(policy: BreakerPolicy, told: impl Fn(Breaker) + Send + Sync + 'static) -> Arc<Gate> {
        let chart = Chart {
            breaker: Breaker::Closed { failures: 0 },
            epoch: 0,
            failures: 0,
            last_failure: None,
            last_change: SystemTime::now(),
        };
        Arc::new(Gate { policy, chart: Mutex::new(chart), told: Box::new(told) })
    }

    /// Returns a permit for one call, or the time to wait.
    pub fn admit(self: &Arc<Gate>) -> Result<Permit, Duration> {
        let mut chart = self.chart();
        let next = chart.breaker.admit(Instant::now())?;
        let changed = chart.turn(next);
        let (epoch, is_probe) = (chart.epoch, next == Breaker::HalfOpen);
        drop(chart);
        self.tell(changed);
        Ok(Permit { gate: self.clone(), epoch, is_probe, verdict: Verdict::Unknown })
    }

    /// Returns a permit if the breaker is closed. Never takes the probe of an open breaker.
    pub fn admit_if_closed(self: &Arc<Gate>) -> Option<Permit> {
        let chart = self.chart();
        let epoch = chart.epoch;
        matches!(chart.breaker, Breaker::Closed { .. }).then(|| Permit {
            gate: self.clone(),
            epoch,
            is_probe: false,
            verdict: Verdict::Unknown,
        })
    }

    /// Returns a snapshot of the state.
    pub fn state(&self) -> GateState {
        let Chart { breaker, failures, last_failure, last_change, .. } = *self.chart();
        GateState { breaker, failures, policy: self.policy, last_failure, last_change }
    }

    /// Closes the breaker.
    pub fn reset(&self) {
        let mut chart = self.chart();
        chart.failures = 0;
        let changed = chart.turn(Breaker::Closed { failures: 0 });
        // Ignore the verdicts of calls admitted before the reset.
        chart.epoch += 1;
        drop(chart);
        self.tell(changed);
    }

    /// Adopts a state that was decided elsewhere. Returns it if the state name changed. Does not call `told`.
    /// Verdicts of calls admitted earlier are ignored.
    pub fn follow(&self, breaker: Breaker) -> Option<Breaker> {
        let mut chart = self.chart();
        if let (Breaker::Closed { .. }, Breaker::Closed { .. }) = (chart.breaker, breaker) {
            return None;
        }
        if let Breaker::Closed { failures } = breaker {
            chart.failures = failures;
        }
        let changed = chart.turn(breaker);
        chart.epoch += 1;
        changed
    }

    fn settle(&self, epoch: u64, verdict: Verdict) {
        let mut chart = self.chart();
        if chart.epoch != epoch {
            return;
        }
        match verdict {
            Verdict::Healthy => chart.failures = 0,
            Verdict::Failed => {
                chart.failures += 1;
                chart.last_failure = Some(SystemTime::now());
            }
            Verdict::Unknown => {}
        }
        let next = chart.breaker.record(verdict, Instant::now(), self.policy);
        let changed = chart.turn(next);
        drop(chart);
        self.tell(changed);
    }

    fn tell(&self, changed: Option<Breaker>) {
        if let Some(breaker) = changed {
            (self.told)(breaker);
        }
    }

    fn chart(&self) -> MutexGuard<'_, Chart> {
        // Every update is a few plain assignments, so a panic cannot leave the data inconsistent.
        self.chart.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chart {
    /// Sets the state. Returns it if the state name changed.
    fn turn(&mut self, next: Breaker) -> Option<Breaker> {
        let renamed = self.breaker.as_str() != next.as_str();
        self.breaker = next;
        if renamed {
            self.epoch += 1;
            self.last_change = SystemTime::now();
        }
        renamed.then_some(next)
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
        self.gate.settle(self.epoch, self.verdict);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("policy", &self.policy)
            .field("chart", &*self.chart())
            .finish_non_exhaustive()
    }
}
