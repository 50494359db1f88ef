//! Turns a timeline into series: one value for each step of the queried window.

use super::{
    BreakerChange, COARSE_SLOTS, COARSE_STEP, Cell, FINE_SLOTS, FINE_STEP, MAX_KEYS,
    timeline::{Slot, Timeline},
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, UNIX_EPOCH},
};
use wharf_runtime::time_format::rfc3339;

/// The window, step and grouping of a report.
#[derive(Clone, Debug)]
pub(crate) struct StatsQuery {
    /// Length of the window, in seconds.
    pub(crate) window: u64,
    /// Length of a step, in seconds.
    pub(crate) step: u64,
    /// Only the calls of this source.
    pub(crate) source: Option<String>,
    pub(crate) by: SeriesKey,
}

/// The grouping of calls into series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesKey {
    /// All calls are one series.
    All,
    Source,
    Tool,
}

/// The series of a query.
#[derive(Debug)]
pub(crate) struct StatsReport {
    from: u64,
    step: u64,
    /// Cells of each step, by key.
    series: BTreeMap<String, Vec<Option<Cell>>>,
    in_flight: Vec<Option<u64>>,
    breakers: Vec<BreakerChange>,
}

impl StatsQuery {
    /// Checks that the window and the step fit what is kept: multiples of 5 seconds within an hour, and multiples of a
    /// minute within a day.
    pub(crate) fn is_valid(&self) -> bool {
        let base = if self.step < COARSE_STEP { FINE_STEP } else { COARSE_STEP };
        let kept = match base {
            FINE_STEP => FINE_STEP * FINE_SLOTS as u64,
            _ => COARSE_STEP * COARSE_SLOTS as u64,
        };
        self.step > 0 && self.step.is_multiple_of(base) && self.step <= self.window && self.window <= kept
    }

    /// Start of the first step, in seconds since 1970. The last step is the current one.
    pub(super) fn from(&self, now: u64) -> u64 {
        let end = now - now % self.step + self.step;
        end.saturating_sub(self.window.div_ceil(self.step) * self.step)
    }
}

/// Builds the series of a query. `current` is the finer timeline, whose open slots are not yet part of a minute.
pub(super) fn report(
    timeline: &Timeline,
    current: Option<&Timeline>,
    query: &StatsQuery,
    now: u64,
    breakers: Vec<BreakerChange>,
) -> StatsReport {
    let (from, steps) = (query.from(now), query.window.div_ceil(query.step) as usize);
    let mut report = StatsReport {
        from,
        step: query.step,
        series: BTreeMap::new(),
        in_flight: vec![None; steps],
        breakers,
    };
    for slot in timeline.slots_since(from) {
        report.add(timeline, slot, query, steps);
    }
    // The last fine slot has not been merged into its minute yet.
    if let Some(fine) = current
        && let Some(slot) = fine.slots_since(from).last()
    {
        report.add(fine, slot, query, steps);
    }
    report
}

impl StatsReport {
    fn add(&mut self, timeline: &Timeline, slot: &Slot, query: &StatsQuery, steps: usize) {
        let place = ((slot.start - self.from) / self.step) as usize;
        if place >= steps {
            return;
        }
        self.in_flight[place] = self.in_flight[place].max(slot.in_flight);
        for (source, tool, key) in timeline.names() {
            let Some(cell) = slot.cells.get(&key) else { continue };
            if query.source.as_deref().is_some_and(|it| it != source) {
                continue;
            }
            let name = match query.by {
                SeriesKey::All => String::new(),
                SeriesKey::Source => source.to_owned(),
                SeriesKey::Tool => format!("{source}:{tool}"),
            };
            if self.series.len() >= MAX_KEYS && !self.series.contains_key(&name) {
                continue;
            }
            let cells = self.series.entry(name).or_insert_with(|| vec![None; steps]);
            cells[place].get_or_insert_default().merge(cell);
        }
    }

    /// Converts the report to JSON. A step without calls is null in the durations.
    pub(crate) fn to_json(&self) -> Value {
        let series: Vec<Value> = self.series.iter().map(|(key, cells)| series_json(key, cells)).collect();
        let breakers: Vec<Value> = self
            .breakers
            .iter()
            .map(|it| json!({ "source": it.source, "at": rfc3339(it.at), "state": it.state }))
            .collect();
        json!({
            "from": rfc3339(UNIX_EPOCH + Duration::from_secs(self.from)),
            "step": self.step,
            "series": series,
            "in_flight": self.in_flight,
            "breakers": breakers,
        })
    }
}

fn series_json(key: &str, cells: &[Option<Cell>]) -> Value {
    let count = |read: fn(&Cell) -> u64| -> Vec<Option<u64>> {
        cells.iter().map(|it| it.as_ref().map(read)).collect()
    };
    let percentile = |share: f64| -> Vec<Option<f64>> {
        let rounded = |it: f64| (it * 1_000.0).round() / 1_000.0;
        cells.iter().map(|it| it.as_ref()?.durations.percentile(share).map(rounded)).collect()
    };
    let names: BTreeSet<&str> =
        cells.iter().flatten().flat_map(|it| it.errors.iter().map(|(error, _)| *error)).collect();
    let errors: Map<String, Value> = names
        .into_iter()
        .map(|error| {
            let counts: Vec<Option<u64>> =
                cells.iter().map(|it| it.as_ref().map(|it| it.errors_of(error))).collect();
            (error.to_owned(), json!(counts))
        })
        .collect();
    json!({
        "key": key,
        "calls": count(|it| it.calls),
        "failures": count(|it| it.failures),
        "timeouts": count(|it| it.timeouts),
        "errors": errors,
        "p50_ms": percentile(0.5),
        "p95_ms": percentile(0.95),
    })
}
