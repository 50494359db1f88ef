//! Tests the circuit breaker against a simple model, with many concurrent callers, and as JSON.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::json;
use std::{
    sync::{Arc, Barrier, Mutex},
    thread,
    time::Duration,
};
use wharf_runtime::{BreakerPolicy, BreakerState, CircuitBreaker, Permit, Verdict, views};

const POLICY: BreakerPolicy =
    BreakerPolicy { failure_threshold: 3, recovery_timeout: Duration::from_secs(30) };
const CALLERS: usize = 10_000;

/// An operation on the breaker.
#[derive(Clone, Debug)]
enum Step {
    Admit,
    Settle(Index, Verdict),
    /// The caller drops its permit.
    Leave(Index),
    Wait(u64),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let verdict =
        prop_oneof![2 => Just(Verdict::Failed), 1 => Just(Verdict::Healthy), 1 => Just(Verdict::Unknown)];
    prop_oneof![
        8 => Just(Step::Admit),
        8 => (any::<Index>(), verdict).prop_map(|(which, verdict)| Step::Settle(which, verdict)),
        2 => any::<Index>().prop_map(Step::Leave),
        3 => prop_oneof![Just(30), Just(29), 1u64..40].prop_map(Step::Wait),
        1 => Just(Step::Reset),
    ]
}

/// A simple model of the breaker: the seconds that have passed, and the number of state changes as `epoch`. The verdict
/// of a call counts only if the call was admitted on the current day.
#[derive(Debug, Default)]
struct Model {
    now: u64,
    epoch: usize,
    failures: u32,
    /// End of the open state, if open. `probing` is set while a probe is in flight.
    open_until: Option<u64>,
    probing: bool,
    changes: Vec<&'static str>,
}

impl Model {
    fn name(&self) -> &'static str {
        match (self.probing, self.open_until) {
            (true, _) => "HALF-OPEN",
            (false, Some(_)) => "OPEN",
            (false, None) => "CLOSED",
        }
    }

    fn change(&mut self, probing: bool, open_until: Option<u64>) {
        let before = self.name();
        (self.probing, self.open_until) = (probing, open_until);
        if self.name() != before {
            self.epoch += 1;
            self.changes.push(self.name());
        }
    }

    /// Returns the day on which the call is admitted, or the seconds to wait.
    fn admit(&mut self) -> Result<usize, u64> {
        match self.open_until {
            _ if self.probing => Err(0),
            Some(until) if until > self.now => Err(until - self.now),
            Some(_) => {
                self.change(true, None);
                Ok(self.epoch)
            }
            None => Ok(self.epoch),
        }
    }

    fn settle(&mut self, epoch: usize, verdict: Verdict) {
        let rest = Some(self.now + POLICY.recovery_timeout.as_secs());
        match verdict {
            _ if epoch != self.epoch => {}
            Verdict::Healthy => {
                self.failures = 0;
                self.change(false, None);
            }
            Verdict::Failed => {
                self.failures += 1;
                if self.probing || self.failures >= POLICY.failure_threshold {
                    self.change(false, rest);
                }
            }
            Verdict::Unknown if self.probing => self.change(false, Some(self.now)),
            Verdict::Unknown => {}
        }
    }

    fn reset(&mut self) {
        self.failures = 0;
        self.change(false, None);
        self.epoch += 1;
    }
}

/// A breaker and its model, driven side by side.
struct Pair {
    breaker: Arc<CircuitBreaker>,
    reported: Arc<Mutex<Vec<&'static str>>>,
    model: Model,
    out: Vec<(Permit, usize)>,
}

impl Pair {
    fn new() -> Pair {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let observed = reported.clone();
        let breaker = CircuitBreaker::new(POLICY, move |breaker| {
            observed.lock().expect("no panic while locked").push(breaker.as_str())
        });
        Pair { breaker, reported, model: Model::default(), out: Vec::new() }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Admit => match (self.breaker.admit(), self.model.admit()) {
                (Ok(permit), Ok(epoch)) => self.out.push((permit, epoch)),
                (Err(wait), Err(expected)) => assert_eq!(wait, Duration::from_secs(expected)),
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            },
            Step::Settle(which, verdict) => {
                if let Some((permit, epoch)) = self.take(which) {
                    permit.settle(*verdict);
                    self.model.settle(epoch, *verdict);
                }
            }
            Step::Leave(which) => {
                if let Some((permit, epoch)) = self.take(which) {
                    drop(permit);
                    self.model.settle(epoch, Verdict::Unknown);
                }
            }
            Step::Wait(seconds) => {
                tokio::time::advance(Duration::from_secs(*seconds)).await;
                self.model.now += seconds;
            }
            Step::Reset => {
                self.breaker.reset();
                self.model.reset();
            }
        }
    }

    fn take(&mut self, which: &Index) -> Option<(Permit, usize)> {
        (!self.out.is_empty()).then(|| self.out.swap_remove(which.index(self.out.len())))
    }

    fn compare(&self) {
        let snapshot = self.breaker.snapshot();
        assert_eq!(snapshot.state.as_str(), self.model.name());
        assert_eq!(snapshot.failures, self.model.failures);
        assert_eq!(*self.reported.lock().expect("no panic while locked"), self.model.changes);
        let probes =
            self.out.iter().filter(|(_, epoch)| self.model.probing && *epoch == self.model.epoch).count();
        assert_eq!(probes, usize::from(self.model.probing), "exactly one call is in flight while half-open");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn breaker_behaves_like_its_model(steps in vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let mut pair = Pair::new();
            for step in &steps {
                pair.step(step).await;
                pair.compare();
            }
        });
    }
}

/// Returns an open breaker that allows a probe.
fn ready_to_probe() -> Arc<CircuitBreaker> {
    let breaker = CircuitBreaker::new(BreakerPolicy { recovery_timeout: Duration::ZERO, ..POLICY }, |_| {});
    for _ in 0..POLICY.failure_threshold {
        breaker.admit().expect("a closed breaker").settle(Verdict::Failed);
    }
    assert!(matches!(breaker.snapshot().state, BreakerState::Open { .. }));
    breaker
}

/// Requests permits from all callers at the same time. No permit is returned before all callers have asked.
fn admit_concurrently(breaker: &Arc<CircuitBreaker>) -> Vec<Permit> {
    let threads = 8;
    let (start, end) = (Barrier::new(threads), Barrier::new(threads));
    thread::scope(|scope| {
        let ask = || {
            start.wait();
            let permits: Vec<Permit> = (0..CALLERS / threads).filter_map(|_| breaker.admit().ok()).collect();
            end.wait();
            permits
        };
        let asking: Vec<_> = (0..threads).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().flat_map(|it| it.join().expect("a caller")).collect()
    })
}

#[test]
fn one_of_ten_thousand_concurrent_callers_gets_the_probe() {
    let breaker = ready_to_probe();
    for round in 0..20 {
        let permits = admit_concurrently(&breaker);
        assert_eq!(permits.len(), 1, "round {round}");
        assert_eq!(breaker.snapshot().state, BreakerState::HalfOpen);
        // Dropped without a verdict, so the next round gets the probe again.
    }
    let probe = admit_concurrently(&breaker).pop().expect("one probe");
    probe.settle(Verdict::Healthy);
    assert_eq!(breaker.snapshot().state, BreakerState::Closed { failures: 0 });
    assert_eq!(admit_concurrently(&breaker).len(), CALLERS);
}

#[test]
fn concurrent_callers_never_hold_two_probes() {
    let breaker = ready_to_probe();
    let probes = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..CALLERS / 8 {
                    let Ok(permit) = breaker.admit() else { continue };
                    let mut others = probes.try_lock().expect("another probe is out");
                    *others += 1;
                    drop(others);
                    drop(permit);
                }
            });
        }
    });
    assert!(*probes.lock().expect("a count") > 0, "no probe was granted");
    assert!(breaker.admit().is_ok(), "the last probe was given back");
}

/// A state decided elsewhere applies, and the verdicts of calls admitted earlier are ignored.
#[tokio::test(start_paused = true)]
async fn state_decided_elsewhere_is_adopted() {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let observed = reported.clone();
    let breaker = CircuitBreaker::new(POLICY, move |breaker| {
        observed.lock().expect("no panic while locked").push(breaker.as_str())
    });
    let out = breaker.admit().expect("a closed breaker");
    assert!(!out.is_probe());
    let open = BreakerState::Open { until: tokio::time::Instant::now() + Duration::from_secs(7) };
    assert_eq!(breaker.adopt_state(open), Some(open));
    assert_eq!(breaker.admit().expect_err("it is open elsewhere"), Duration::from_secs(7));
    out.settle(Verdict::Healthy);
    assert_eq!(breaker.snapshot().state, open);

    tokio::time::advance(Duration::from_secs(7)).await;
    let probe = breaker.admit().expect("a probe");
    assert!(probe.is_probe());
    assert_eq!(breaker.adopt_state(open), Some(open), "somebody else is the probe");
    drop(probe);
    assert_eq!(breaker.snapshot().state, open, "it has nothing to give back");
    let closed = BreakerState::Closed { failures: 0 };
    assert_eq!(breaker.adopt_state(closed), Some(closed));
    assert_eq!(breaker.adopt_state(closed), None);
    breaker.admit().expect("a closed breaker").settle(Verdict::Failed);
    assert_eq!(breaker.adopt_state(closed), None, "what was counted here still counts");
    assert_eq!(breaker.snapshot().failures, 1);
    assert_eq!(
        *reported.lock().expect("no panic while locked"),
        ["HALF-OPEN"],
        "only changes decided here are reported"
    );
}

#[tokio::test(start_paused = true)]
async fn breaker_view_in_every_state() {
    let breaker = CircuitBreaker::new(BreakerPolicy::default(), |_| {});
    let mut seen = Vec::new();
    seen.push(views::breaker("weather", &breaker.snapshot()));
    for _ in 0..5 {
        breaker.admit().expect("a closed breaker").settle(Verdict::Failed);
    }
    seen.push(views::breaker("weather", &breaker.snapshot()));
    tokio::time::advance(Duration::from_secs(30)).await;
    let _probe = breaker.admit().expect("a probe");
    seen.push(views::breaker("weather", &breaker.snapshot()));
    for (value, (state, failures)) in seen.iter().zip([("CLOSED", 0), ("OPEN", 5), ("HALF-OPEN", 5)]) {
        let mut rest = value.clone();
        for (name, is_set) in [("last_failure_time", failures > 0), ("last_state_change", true)] {
            let time = rest[name].take();
            assert_eq!(
                time.as_str().is_some_and(|it| it.contains('T') && it.ends_with('Z')),
                is_set,
                "{name}: {time}"
            );
        }
        let expected = json!({
            "service_name": "weather", "state": state, "failure_count": failures, "failure_threshold": 5,
            "last_failure_time": null, "recovery_timeout": "PT30S", "last_state_change": null,
        });
        assert_eq!(rest, expected);
    }
}
