//! The latest calls of a tool, as a journal knows them.

use crate::{BreakerTransition, time_format::rfc3339};
use serde_json::{Value, json};
use std::time::SystemTime;

/// Number of latest calls that decide whether a tool is failing.
const JUDGED_CALLS: usize = 10;

/// Number of failures that are shown.
const SHOWN_FAILURES: usize = 3;

/// The latest calls of a tool.
#[derive(Clone, Debug, Default)]
pub struct RecentCalls {
    /// The calls, the latest first.
    pub calls: Vec<RecentCall>,
    /// The latest changes of the server's circuit breaker, oldest first.
    pub breaker: Vec<BreakerTransition>,
}

/// One call.
#[derive(Clone, Debug)]
pub struct RecentCall {
    /// Time of its start.
    pub at: SystemTime,
    /// Duration in milliseconds.
    pub took_ms: f64,
    /// Id of the call.
    pub request_id: String,
    /// Type and message of the error, if it failed.
    pub failure: Option<(String, String)>,
}

impl RecentCalls {
    /// Returns whether more than half of the last ten calls failed.
    pub fn is_failing(&self) -> bool {
        let judged = &self.calls[..self.calls.len().min(JUDGED_CALLS)];
        judged.iter().filter(|it| it.failure.is_some()).count() * 2 > judged.len()
    }

    /// Returns the number of failed calls.
    pub fn failed(&self) -> usize {
        self.calls.iter().filter(|it| it.failure.is_some()).count()
    }

    /// Returns the median duration in milliseconds, if there are calls.
    fn median_ms(&self) -> Option<f64> {
        let mut all: Vec<f64> = self.calls.iter().map(|it| it.took_ms).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len().saturating_sub(1) / 2).copied()
    }

    /// Converts the calls to JSON.
    pub fn to_json(&self) -> Value {
        let failures = self.calls.iter().filter_map(|it| Some((it, it.failure.as_ref()?)));
        let failures = failures.take(SHOWN_FAILURES).map(|(call, (error_type, message))| {
            json!({
                "at": rfc3339(call.at), "type": error_type, "message": message, "request_id": call.request_id,
            })
        });
        let breaker = self.breaker.iter();
        let breaker = breaker.map(|it| json!({ "at": rfc3339(it.at), "state": it.state.as_str() }));
        json!({
            "calls": self.calls.len(),
            "failed": self.failed(),
            "last_failures": failures.collect::<Vec<_>>(),
            "p50_ms": self.median_ms(),
            "breaker": breaker.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_the_last_ten_calls_decide() {
        let call = |failed: bool, took_ms| RecentCall {
            at: SystemTime::UNIX_EPOCH,
            took_ms,
            request_id: "r".to_owned(),
            failure: failed.then(|| ("MCPTimeoutError".to_owned(), "too late".to_owned())),
        };
        let calls = |failed: usize, good: usize| {
            let failed = (0..failed).map(|at| call(true, at as f64));
            RecentCalls {
                calls: failed.chain((0..good).map(|_| call(false, 5.0))).collect(),
                breaker: Vec::new(),
            }
        };
        for (failed, good, is_failing) in
            [(0, 0, false), (5, 5, false), (6, 4, true), (6, 90, true), (1, 0, true)]
        {
            assert_eq!(calls(failed, good).is_failing(), is_failing, "{failed} of {}", failed + good);
        }
        let json = calls(4, 1).to_json();
        assert_eq!((&json["calls"], &json["failed"], &json["p50_ms"]), (&json!(5), &json!(4), &json!(2.0)));
        assert_eq!(json["last_failures"].as_array().map(Vec::len), Some(3));
    }
}
