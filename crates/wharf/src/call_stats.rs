//! Statistics of calls over time, in memory: calls, failures and durations of the last hour in steps of 5 seconds, and
//! of the last day in steps of a minute.
//!
//! A call adds to one cell: its tool in the current 5 seconds. Minutes are the sum of finished slots, and a server is the
//! sum of its tools, so neither costs a call anything. Durations are counted in buckets that grow by a constant factor,
//! which bounds the error of a percentile.

mod histogram;
mod series;
mod timeline;

use histogram::Histogram;
pub(crate) use series::{SeriesKey, StatsQuery, StatsReport};
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use timeline::Timeline;
use wharf_runtime::{CallRecord, Status};

/// Length of a slot in seconds and number of slots, for the last hour and for the last day.
pub(crate) const FINE_STEP: u64 = 5;
const FINE_SLOTS: usize = 720;
const COARSE_STEP: u64 = 60;
const COARSE_SLOTS: usize = 1_440;

/// Maximum number of tools that are counted separately.
const MAX_KEYS: usize = 2_000;

/// Maximum number of breaker changes that are kept.
const MAX_BREAKER_CHANGES: usize = 1_000;

/// Statistics of all calls since the start.
#[derive(Debug, Default)]
pub(crate) struct CallStats(Mutex<StatsState>);

#[derive(Debug)]
struct StatsState {
    fine: Timeline,
    coarse: Timeline,
    breakers: VecDeque<BreakerChange>,
}

/// A change of a circuit breaker.
#[derive(Clone, Debug)]
pub(crate) struct BreakerChange {
    pub(crate) source: String,
    pub(crate) at: SystemTime,
    pub(crate) state: &'static str,
}

/// Counts of the calls of one tool in one slot.
#[derive(Clone, Debug, Default)]
struct Cell {
    calls: u64,
    failures: u64,
    timeouts: u64,
    /// Failures and timeouts by the name of their error, of which there are about ten.
    errors: Vec<(&'static str, u64)>,
    durations: Histogram,
}

impl Default for StatsState {
    fn default() -> StatsState {
        StatsState {
            fine: Timeline::new(FINE_STEP, FINE_SLOTS),
            coarse: Timeline::new(COARSE_STEP, COARSE_SLOTS),
            breakers: VecDeque::new(),
        }
    }
}

impl CallStats {
    /// Counts a completed call. Unknown tools are counted together, because callers can send any name.
    pub(crate) fn count(&self, record: &CallRecord) {
        let source = record.source.as_deref().unwrap_or_default();
        let tool = record.wire_name.as_deref().unwrap_or_default();
        self.add(now(), (source, tool), record.status(), record.error_type(), record.took);
    }

    fn add(&self, now: u64, key: (&str, &str), status: Status, error: Option<&'static str>, took: Duration) {
        let mut state = self.state();
        state.advance(now);
        let cell = state.fine.cell(key);
        cell.calls += 1;
        match status {
            Status::Success => {}
            Status::Failure => cell.failures += 1,
            Status::Timeout => cell.timeouts += 1,
        }
        if let Some(error) = error {
            cell.add_errors(error, 1);
        }
        cell.durations.add(took);
    }

    /// Notes a change of a circuit breaker.
    pub(crate) fn note_breaker(&self, source: &str, at: SystemTime, state: &'static str) {
        self.state().note_breaker(BreakerChange { source: source.to_owned(), at, state });
    }

    /// Notes the number of calls in flight; to be called once in each step.
    pub(crate) fn sample(&self, in_flight: usize) {
        self.sample_at(now(), in_flight as u64);
    }

    fn sample_at(&self, now: u64, in_flight: u64) {
        let mut state = self.state();
        state.advance(now);
        state.fine.sample(in_flight);
    }

    /// Builds the report of a query.
    pub(crate) fn report(&self, query: &StatsQuery) -> StatsReport {
        self.report_at(now(), query)
    }

    fn report_at(&self, now: u64, query: &StatsQuery) -> StatsReport {
        let mut state = self.state();
        state.advance(now);
        let timeline = if query.step < COARSE_STEP { &state.fine } else { &state.coarse };
        let current = if query.step < COARSE_STEP { None } else { Some(&state.fine) };
        let from = UNIX_EPOCH + Duration::from_secs(query.from(now));
        let is_meant = |it: &&BreakerChange| {
            it.at >= from && query.source.as_deref().is_none_or(|source| source == it.source)
        };
        let breakers = state.breakers.iter().filter(is_meant).cloned().collect();
        series::report(timeline, current, query, now, breakers)
    }

    fn state(&self) -> MutexGuard<'_, StatsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StatsState {
    /// Moves to the slot of this time. Finished slots are added to their minute.
    fn advance(&mut self, now: u64) {
        let StatsState { fine, coarse, .. } = self;
        fine.advance(now, |finished| coarse.merge(finished));
    }

    fn note_breaker(&mut self, change: BreakerChange) {
        self.breakers.push_back(change);
        if self.breakers.len() > MAX_BREAKER_CHANGES {
            self.breakers.pop_front();
        }
    }
}

impl Cell {
    fn merge(&mut self, other: &Cell) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.timeouts += other.timeouts;
        for (error, count) in &other.errors {
            self.add_errors(error, *count);
        }
        self.durations.merge(&other.durations);
    }

    fn add_errors(&mut self, error: &'static str, count: u64) {
        match self.errors.iter_mut().find(|it| it.0 == error) {
            Some((_, total)) => *total += count,
            None => self.errors.push((error, count)),
        }
    }

    /// Number of calls that failed with this error.
    fn errors_of(&self, error: &str) -> u64 {
        self.errors.iter().find(|it| it.0 == error).map_or(0, |it| it.1)
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
