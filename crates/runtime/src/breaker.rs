//! Decides whether a source may be called.
//!
//! [`Breaker`] is a value: time and verdicts come in as arguments, and every transition is a line of a table. A [`Gate`] is
//! a breaker that callers share; a [`Permit`] is leave to make one call, and reports what became of it even when its
//! caller goes away.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// When a source rests, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// How many failures in a row it takes.
    pub failure_threshold: u32,
    /// How long it rests before somebody tries again.
    pub recovery_timeout: Duration,
}

/// The numbers for an MCP source.
impl Default for BreakerPolicy {
    fn default() -> BreakerPolicy {
        BreakerPolicy { failure_threshold: 5, recovery_timeout: Duration::from_secs(30) }
    }
}

/// Whether calls pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// They do. `failures` is the unbroken run of failed ones.
    Closed {
        /// How many in a row have failed.
        failures: u32,
    },
    /// They fail at once until then.
    Open {
        /// When somebody may try.
        until: Instant,
    },
    /// One call is out to see whether the source is back; others fail at once.
    HalfOpen,
}

/// What a call has shown about its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Healthy,
    /// It does not.
    Failed,
    /// Nothing: the caller left before there was an answer, or the call never got that far.
    Unknown,
}

impl Breaker {
    /// The state after letting one call pass, or how long to wait.
    pub fn admit(self, now: Instant) -> Result<Breaker, Duration> {
        match self {
            Breaker::Closed { .. } => Ok(self),
            Breaker::Open { until } if until <= now => Ok(Breaker::HalfOpen),
            Breaker::Open { until } => Err(until - now),
            Breaker::HalfOpen => Err(Duration::ZERO),
        }
    }

    /// The state after a call that passed.
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
            // The probe is given back: whoever comes next may try.
            (Breaker::HalfOpen, Verdict::Unknown) => Breaker::Open { until: now },
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Breaker::Closed { .. } => "CLOSED",
            Breaker::Open { .. } => "OPEN",
            Breaker::HalfOpen => "HALF-OPEN",
        }
    }
}

/// A breaker several callers share.
pub struct Gate {
    policy: BreakerPolicy,
    chart: Mutex<Chart>,
    told: Box<dyn Fn(Breaker) + Send + Sync>,
}

/// The breaker, and when what happened to it.
#[derive(Clone, Copy, Debug)]
struct Chart {
    breaker: Breaker,
    /// How often the breaker has changed its name. A call that was let in before says nothing about now.
    epoch: u64,
    failures: u32,
    last_failure: Option<SystemTime>,
    last_change: SystemTime,
}

/// How a gate stands.
#[derive(Clone, Copy, Debug)]
pub struct GateState {
    /// Whether calls pass.
    pub breaker: Breaker,
    /// How many in a row have failed.
    pub failures: u32,
    /// The numbers it goes by.
    pub policy: BreakerPolicy,
    /// When a call last failed.
    pub last_failure: Option<SystemTime>,
    /// When the state last changed.
    pub last_change: SystemTime,
}

/// Leave to make one call. Dropped unsettled, it has shown nothing.
#[derive(Debug)]
pub struct Permit {
    gate: Arc<Gate>,
    epoch: u64,
    is_probe: bool,
    verdict: Verdict,
}

impl Gate {
    /// A closed gate. `told` hears every change of state, from whichever task caused it: it must not block.
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

    /// Lets one call pass, or says how long to wait.
    pub fn admit(self: &Arc<Gate>) -> Result<Permit, Duration> {
        let mut chart = self.chart();
        let next = chart.breaker.admit(Instant::now())?;
        let changed = chart.turn(next);
        let (epoch, is_probe) = (chart.epoch, next == Breaker::HalfOpen);
        drop(chart);
        self.tell(changed);
        Ok(Permit { gate: self.clone(), epoch, is_probe, verdict: Verdict::Unknown })
    }

    /// Lets one call pass if the gate is closed. The probe of an open one is left to others.
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

    /// How it stands.
    pub fn state(&self) -> GateState {
        let Chart { breaker, failures, last_failure, last_change, .. } = *self.chart();
        GateState { breaker, failures, policy: self.policy, last_failure, last_change }
    }

    /// Closes it, whatever was.
    pub fn reset(&self) {
        let mut chart = self.chart();
        chart.failures = 0;
        let changed = chart.turn(Breaker::Closed { failures: 0 });
        // Calls that are out were let in by a gate that is no more.
        chart.epoch += 1;
        drop(chart);
        self.tell(changed);
    }

    /// Takes a state that was decided elsewhere, and says so if it has another name; `told` does not hear of it. Calls that
    /// are out were let in by a gate that is no more.
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
        // Every change is a few plain assignments: a panic elsewhere cannot leave it half-made.
        self.chart.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chart {
    /// Takes the next state; says so if it has another name.
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
    /// Whether the call is the one that shows whether a source is back.
    pub fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// Says what the call has shown.
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
