//! Whether the database can be reached and whether calls can be written down, as far as anybody here knows: for those who
//! can do without it, for `/ready` and for `/metrics`.

use std::{
    fmt::Display,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How often at most it is logged that calls are being lost.
const LOSS_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// What is known of the way to the database.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Nobody hears from it.
    away: AtomicBool,
    /// How many calls are written down here and not there.
    waiting: AtomicU64,
    /// Calls cannot be written down here: there is no room for more.
    full: AtomicBool,
    /// How many calls nobody could write down.
    lost: AtomicU64,
    losses: Mutex<LossLog>,
}

/// What the log has not said yet of lost calls.
#[derive(Debug, Default)]
struct LossLog {
    unsaid: usize,
    said_at: Option<Instant>,
}

impl Reach {
    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// Says whether that is news.
    pub(crate) fn set_away(&self, away: bool) -> bool {
        self.away.swap(away, Ordering::Relaxed) != away
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn set_waiting(&self, waiting: u64) {
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts calls that nobody could write down, and logs it: the first loss at once, later ones in summaries.
    pub(super) fn lose(&self, calls: usize, why: &dyn Display) {
        let lost = self.lost.fetch_add(calls as u64, Ordering::Relaxed) + calls as u64;
        let mut log = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        log.unsaid += calls;
        if log.said_at.is_none_or(|it| it.elapsed() >= LOSS_LOG_INTERVAL) {
            let calls = std::mem::take(&mut log.unsaid);
            tracing::error!(target: "wharf::journal", calls, lost, "calls could not be written down: {why}");
            log.said_at = Some(Instant::now());
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(super) fn set_full(&self, full: bool) {
        let was_full = self.full.swap(full, Ordering::Relaxed);
        if was_full && !full {
            let mut log = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
            let calls = std::mem::take(&mut log.unsaid);
            let lost = self.lost();
            tracing::warn!(target: "wharf::journal", calls, lost, "calls are written down again");
        }
    }
}
