//! Compares the server's action log with the outcomes that callers saw.

use hostile::options::Transport;
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    time::Duration,
};

/// Outcome that a caller saw.
pub(super) struct CallerOutcome {
    pub(super) nonce: String,
    pub(super) outcome: String,
    pub(super) took: Duration,
}

/// Contents of the server's action log.
pub(super) struct LogSummary {
    executions: HashMap<String, u64>,
    /// Number of times the server killed itself or reset a connection.
    pub(super) ends: u64,
}

impl LogSummary {
    pub(super) fn read(action_log: &Path) -> LogSummary {
        let text = fs::read_to_string(action_log).expect("there is an action log");
        let mut summary = LogSummary { executions: HashMap::new(), ends: 0 };
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("exec"), Some(nonce)) => *summary.executions.entry(nonce.to_owned()).or_default() += 1,
                (Some("end"), _) => summary.ends += 1,
                _ => {}
            }
        }
        summary
    }

    /// Returns every violation.
    pub(super) fn compare(&self, seen: &[CallerOutcome], time_limit: Duration) -> Vec<String> {
        let mut wrong = Vec::new();
        for CallerOutcome { nonce, outcome, took } in seen {
            let executions = self.executions.get(nonce).copied().unwrap_or_default();
            let fits = match outcome.strip_prefix("ok ") {
                Some(answer) => answer == nonce && executions == 1,
                None if outcome.ends_with(" no") => executions == 0,
                None => executions <= 1,
            };
            if !fits || *took > time_limit {
                wrong.push(format!("{nonce} got `{outcome}` after {took:?} and ran {executions} times"));
            }
        }
        wrong
    }

    /// Formats one line of the table.
    pub(super) fn line(
        &self,
        by: Transport,
        seen: &[CallerOutcome],
        ends: u64,
        restarts: u64,
        took: Duration,
    ) -> String {
        let mut tally: BTreeMap<&str, u64> = BTreeMap::new();
        for it in seen {
            let outcome = if it.outcome.starts_with("ok ") { "ok" } else { &it.outcome };
            *tally.entry(outcome).or_default() += 1;
        }
        let slowest = seen.iter().map(|it| it.took).max().unwrap_or_default();
        let executions: u64 = self.executions.values().sum();
        let twice = self.executions.values().filter(|it| **it > 1).count();
        format!(
            "soak {:5} calls={} ends={ends} restarts={restarts} executions={executions} twice={twice} slowest={slowest:.1?} \
             took={took:.1?} {tally:?}",
            by.as_str(),
            seen.len(),
        )
    }
}
