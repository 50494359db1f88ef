//! Schedules background retries for a source whose listing failed.
//!
//! A retry counts in the breaker only if a caller starts to wait for it. While the breaker is open, retries wait
//! until it would allow a probe.

use crate::{Fault, FaultKind};
use std::time::Duration;
use tokio::time::Instant;
use wharf_mcp::session::List;

/// Pause after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause for a server that a retry has to start.
const MAX_START_PAUSE: Duration = Duration::from_secs(60);

/// Maximum pause for a server that somebody else starts. It is listed within ten seconds of coming up.
const MAX_REMOTE_PAUSE: Duration = Duration::from_secs(8);

/// Maximum number of doublings, after which the pause has its maximum length.
const MAX_DOUBLINGS: u32 = 6;

/// Consecutive failures of one source and the time of the next retry.
#[derive(Debug)]
pub(super) struct Retry {
    max_pause: Duration,
    failures: u32,
    at: Option<Instant>,
    /// The lists that could not be read, which the next retry has to read.
    pub(super) lists: Vec<List>,
}

impl Retry {
    pub(super) fn new(is_remote: bool) -> Retry {
        let max_pause = if is_remote { MAX_REMOTE_PAUSE } else { MAX_START_PAUSE };
        Retry { max_pause, failures: 0, at: None, lists: Vec::new() }
    }

    /// Returns the time of the next retry, if the last listing failed.
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Schedules the next retry after a failure. Returns true for the first failure in a row.
    pub(super) fn failed(&mut self, fault: &Fault, lists: Vec<List>) -> bool {
        let now = Instant::now();
        self.lists = lists;
        if fault.kind == FaultKind::BreakerOpen {
            // The breaker was open and nothing was sent. The breaker determines when a retry may run.
            self.at.get_or_insert(now);
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        let pause = pause(self.failures, self.max_pause).max(fault.retry_after.unwrap_or_default());
        self.at = Some(now + pause);
        self.failures == 1
    }

    /// Clears the failures after a success. Returns how many there were.
    pub(super) fn succeeded(&mut self) -> u32 {
        self.at = None;
        self.lists.clear();
        std::mem::take(&mut self.failures)
    }
}

/// Returns the pause after the given number of failures, shortened by up to 20 % so that sources which failed
/// together do not retry together.
fn pause(failures: u32, max_pause: Duration) -> Duration {
    let nominal = FIRST_PAUSE * 2u32.pow(failures.saturating_sub(1).min(MAX_DOUBLINGS));
    nominal.min(max_pause).mul_f64(0.8 + 0.2 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_maximum() {
        for (failures, start, remote) in [
            (1, 1, 1),
            (2, 2, 2),
            (3, 4, 4),
            (4, 8, 8),
            (5, 16, 8),
            (6, 32, 8),
            (7, 60, 8),
            (8, 60, 8),
            (u32::MAX, 60, 8),
        ] {
            for (longest, max_pause) in [(start, MAX_START_PAUSE), (remote, MAX_REMOTE_PAUSE)] {
                for _ in 0..100 {
                    let (pause, longest) = (pause(failures, max_pause).as_secs_f64(), f64::from(longest));
                    assert!((longest * 0.8..=longest).contains(&pause), "{failures}: {pause}");
                }
            }
        }
    }
}
