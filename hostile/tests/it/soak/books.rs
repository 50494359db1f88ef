//! Compares the server's ledger with the outcomes that callers saw.

use hostile::orders::Transport;
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    time::Duration,
};

/// Outcome that a caller saw.
pub(super) struct Seen {
    pub(super) nonce: String,
    pub(super) told: String,
    pub(super) took: Duration,
}

/// Contents of the server's ledger.
pub(super) struct Books {
    executions: HashMap<String, u64>,
    /// Number of times the server killed itself or reset a connection.
    pub(super) ends: u64,
}

impl Books {
    pub(super) fn read(ledger: &Path) -> Books {
        let text = fs::read_to_string(ledger).expect("there is a ledger");
        let mut books = Books { executions: HashMap::new(), ends: 0 };
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("exec"), Some(nonce)) => *books.executions.entry(nonce.to_owned()).or_default() += 1,
                (Some("end"), _) => books.ends += 1,
                _ => {}
            }
        }
        books
    }

    /// Returns every violation.
    pub(super) fn compare(&self, seen: &[Seen], longest: Duration) -> Vec<String> {
        let mut wrong = Vec::new();
        for Seen { nonce, told, took } in seen {
            let executions = self.executions.get(nonce).copied().unwrap_or_default();
            let fits = match told.strip_prefix("ok ") {
                Some(answer) => answer == nonce && executions == 1,
                None if told.ends_with(" no") => executions == 0,
                None => executions <= 1,
            };
            if !fits || *took > longest {
                wrong.push(format!("{nonce} was told `{told}` after {took:?} and ran {executions} times"));
            }
        }
        wrong
    }

    /// Formats one line of the table.
    pub(super) fn line(
        &self,
        by: Transport,
        seen: &[Seen],
        ends: u64,
        restarts: u64,
        took: Duration,
    ) -> String {
        let mut tally: BTreeMap<&str, u64> = BTreeMap::new();
        for it in seen {
            let told = if it.told.starts_with("ok ") { "ok" } else { &it.told };
            *tally.entry(told).or_default() += 1;
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
