//! When a source whose lists could not be read is tried again without being asked.
//!
//! Nobody waits for these attempts: they move no breaker, and while one is open they wait.

use crate::{Fault, FaultKind};
use std::time::Duration;
use tokio::time::Instant;
use wharf_mcp::session::List;

/// The pause after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// After so many failures the pause is as long as it gets.
const MOST_DOUBLINGS: u32 = 6;

/// The failures of one source in a row, and when it is tried again.
#[derive(Debug, Default)]
pub(super) struct Retry {
    failures: u32,
    at: Option<Instant>,
    /// The lists that could not be read.
    lists: Vec<List>,
}

impl Retry {
    /// The next attempt, if the last one failed.
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Takes the lists that the next attempt has to read.
    pub(super) fn take_lists(&mut self) -> Vec<List> {
        std::mem::take(&mut self.lists)
    }

    /// Plans the next attempt after a failed one. Returns true for the first failure in a row.
    pub(super) fn failed(&mut self, fault: &Fault, lists: Vec<List>) -> bool {
        let now = Instant::now();
        self.lists = lists;
        if fault.kind == FaultKind::Resting {
            // The source was not even asked. The breaker says when it may be.
            self.at.get_or_insert(now);
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        let pause = pause(self.failures).max(fault.retry_after.unwrap_or_default());
        self.at = Some(now + pause);
        self.failures == 1
    }

    /// Forgets the failures after a success. Returns how many there were.
    pub(super) fn succeeded(&mut self) -> u32 {
        std::mem::take(self).failures
    }
}

/// A little shorter than its nominal length, so that sources which went away together do not come back together.
fn pause(failures: u32) -> Duration {
    let nominal = FIRST_PAUSE * 2u32.pow(failures.saturating_sub(1).min(MOST_DOUBLINGS));
    nominal.min(LONGEST_PAUSE).mul_f64(0.8 + 0.2 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_a_second_to_a_minute() {
        for (failures, longest) in
            [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (8, 60), (u32::MAX, 60)]
        {
            for _ in 0..100 {
                let (pause, longest) = (pause(failures).as_secs_f64(), f64::from(longest));
                assert!((longest * 0.8..=longest).contains(&pause), "{failures}: {pause}");
            }
        }
    }
}
