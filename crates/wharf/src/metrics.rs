//! Metrics in the text format of Prometheus.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};
use wharf_runtime::{BreakerState, CallRecord, ConnectionState, Handle, upstream::FaultInjection};

/// Upper bounds of the duration histogram, in seconds.
const DURATION_BUCKETS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// Maximum number of tools with their own series, because a server may invent any number of names.
const MAX_TOOL_SERIES: usize = 2_000;

/// Counters of calls since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    calls: Mutex<CallCounters>,
}

/// Values of the metrics that the journal owns.
pub(crate) struct JournalStatus {
    pub(crate) is_database_up: bool,
    pub(crate) waiting_calls: u64,
    pub(crate) lost_calls: u64,
}

/// Counters by source, tool and status. The maps are nested, so that a lookup needs no allocated key.
#[derive(Debug, Default)]
struct CallCounters {
    by_source: BTreeMap<String, BTreeMap<String, ByStatus>>,
    tools: usize,
}

/// The counters of one tool, by status.
type ByStatus = Vec<(&'static str, Count)>;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    calls: u64,
    seconds: f64,
    /// Number of calls per bound that took at most that long.
    within: [u64; DURATION_BUCKETS.len()],
}

impl Metrics {
    /// Counts a completed call. Unknown tools are counted without their name, because callers can send any name.
    pub(crate) fn count(&self, record: &CallRecord) {
        let source = record.source.as_deref().unwrap_or_default();
        let tool = record.wire_name.as_deref().unwrap_or_default();
        self.add((source, tool, record.status().as_str()), record.took.as_secs_f64());
    }

    fn add(&self, (source, tool, status): (&str, &str, &'static str), seconds: f64) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let count = calls.of(source, tool, status);
        count.calls += 1;
        count.seconds += seconds;
        count
            .within
            .iter_mut()
            .zip(DURATION_BUCKETS)
            .filter(|(_, bound)| seconds <= *bound)
            .for_each(|(it, _)| *it += 1);
    }

    /// Renders all metrics.
    pub(crate) fn text(
        &self,
        handle: &Handle,
        journal: JournalStatus,
        faults: Option<&FaultInjection>,
    ) -> String {
        let mut out = String::new();
        if let Some(faults) = faults {
            let name = "wharf_injected_faults_total";
            write_head(&mut out, name, "counter", "Faults injected into calls, for tests.");
            write_line(&mut out, name, &[], faults.injected());
        }
        self.write_calls(&mut out);
        write_sources(&mut out, handle);
        write_head(&mut out, "wharf_calls_in_flight", "gauge", "Calls in flight.");
        write_line(&mut out, "wharf_calls_in_flight", &[], handle.in_flight());
        write_head(&mut out, "wharf_database_up", "gauge", "Whether the database can be reached.");
        write_line(&mut out, "wharf_database_up", &[], u8::from(journal.is_database_up));
        write_head(
            &mut out,
            "wharf_journal_waiting_calls",
            "gauge",
            "Recorded calls that are not in the database yet.",
        );
        write_line(&mut out, "wharf_journal_waiting_calls", &[], journal.waiting_calls);
        write_head(
            &mut out,
            "wharf_journal_lost_calls_total",
            "counter",
            "Calls that could not be recorded.",
        );
        write_line(&mut out, "wharf_journal_lost_calls_total", &[], journal.lost_calls);
        out
    }

    fn write_calls(&self, out: &mut String) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).all();
        let name = "wharf_call_duration_seconds";
        write_head(out, name, "histogram", "Duration of calls.");
        for (source, tool, status, count) in &calls {
            let labels = [("source", source.as_str()), ("tool", tool), ("status", status)];
            for (bound, within) in DURATION_BUCKETS.iter().zip(count.within) {
                let bound = bound.to_string();
                let labels = [labels[0], labels[1], labels[2], ("le", bound.as_str())];
                write_line(out, &format!("{name}_bucket"), &labels, within);
            }
            let all = [labels[0], labels[1], labels[2], ("le", "+Inf")];
            write_line(out, &format!("{name}_bucket"), &all, count.calls);
            write_line(out, &format!("{name}_sum"), &labels, count.seconds);
            write_line(out, &format!("{name}_count"), &labels, count.calls);
        }
    }
}

impl CallCounters {
    fn of(&mut self, source: &str, tool: &str, status: &'static str) -> &mut Count {
        if !self.by_source.get(source).is_some_and(|it| it.contains_key(tool)) {
            return self.of_new(source, tool, status);
        }
        // An existing entry is found without an allocation.
        let counts = self.by_source.get_mut(source).and_then(|it| it.get_mut(tool));
        at(counts.unwrap_or_else(|| unreachable!("it was there")), status)
    }

    fn of_new(&mut self, source: &str, tool: &str, status: &'static str) -> &mut Count {
        let tool = if self.tools < MAX_TOOL_SERIES { tool } else { "others" };
        let by_tool = self.by_source.entry(source.to_owned()).or_default();
        self.tools += usize::from(!by_tool.contains_key(tool));
        at(by_tool.entry(tool.to_owned()).or_default(), status)
    }

    fn all(&self) -> Vec<(String, String, &'static str, Count)> {
        let tools = self.by_source.iter().flat_map(|(source, tools)| {
            tools.iter().map(move |(tool, counts)| (source.clone(), tool.clone(), counts.clone()))
        });
        let one = |(source, tool, counts): (String, String, Vec<(&'static str, Count)>)| {
            counts.into_iter().map(move |(status, count)| (source.clone(), tool.clone(), status, count))
        };
        tools.flat_map(one).collect()
    }
}

/// The counter of a status. There are only three, so the search is linear.
fn at<'a>(counts: &'a mut Vec<(&'static str, Count)>, status: &'static str) -> &'a mut Count {
    let place = counts.iter().position(|(it, _)| *it == status).unwrap_or_else(|| {
        counts.push((status, Count::default()));
        counts.len() - 1
    });
    &mut counts[place].1
}

fn write_sources(out: &mut String, handle: &Handle) {
    let (sources, catalog) = (handle.sources(), handle.catalog());
    write_head(out, "wharf_source_up", "gauge", "Whether a session with the server is open.");
    for it in &sources {
        let up = u8::from(it.connection == ConnectionState::Connected);
        write_line(out, "wharf_source_up", &[("source", it.source.name.shown())], up);
    }
    write_head(out, "wharf_breaker_open", "gauge", "Whether the circuit breaker of the server is open.");
    for it in &sources {
        let open = u8::from(!matches!(it.circuit_breaker.state, BreakerState::Closed { .. }));
        write_line(out, "wharf_breaker_open", &[("source", it.source.name.shown())], open);
    }
    write_head(out, "wharf_source_sessions_total", "counter", "Sessions opened with the server.");
    for it in &sources {
        write_line(
            out,
            "wharf_source_sessions_total",
            &[("source", it.source.name.shown())],
            it.status.sessions,
        );
    }
    write_head(out, "wharf_tools", "gauge", "Tools in the catalog.");
    write_line(out, "wharf_tools", &[], catalog.tools.len());
}

fn write_head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn write_line(out: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    let escaped = |it: &str| it.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> = labels.iter().map(|(key, it)| format!("{key}=\"{}\"", escaped(it))).collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(out, "{name}{labels} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that invents tool names does not create an unlimited number of series.
    #[test]
    fn tool_series_are_limited() {
        let metrics = Metrics::default();
        for number in 0..100_000 {
            metrics.add(("odd", &format!("tool-{number}"), "success"), 0.002);
        }
        let mut page = String::new();
        metrics.write_calls(&mut page);
        let counts: Vec<&str> =
            page.lines().filter(|it| it.starts_with("wharf_call_duration_seconds_count")).collect();
        assert_eq!(counts.len(), MAX_TOOL_SERIES + 1);
        let others = r#"{source="odd",tool="others",status="success"} 98000"#;
        assert!(counts.iter().any(|it| it.ends_with(others)), "{:?}", counts.last());
    }
}
