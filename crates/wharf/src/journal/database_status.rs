//! The status of the database and of the spool, shared with request handlers, `/ready` and `/metrics`.

use std::{
    fmt::Display,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Minimum interval between log messages about lost calls.
const LOSS_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Tracks whether the database is reachable, and whether calls can be recorded.
#[derive(Debug, Default)]
pub(crate) struct DatabaseStatus {
    /// The database is unreachable or stuck.
    away: AtomicBool,
    /// Number of calls in the spool that are not in the database.
    waiting: AtomicU64,
    /// The spool accepts no more calls.
    full: AtomicBool,
    /// Number of calls that could not be recorded.
    lost: AtomicU64,
    losses: Mutex<LossLog>,
}

/// Lost calls that are not logged yet.
#[derive(Debug, Default)]
struct LossLog {
    unlogged: usize,
    logged_at: Option<Instant>,
}

impl DatabaseStatus {
    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// Sets the status and returns whether it changed.
    pub(crate) fn set_away(&self, away: bool) -> bool {
        self.away.swap(away, Ordering::Relaxed) != away
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Sets the number of waiting calls and returns the number before.
    pub(super) fn set_waiting(&self, waiting: u64) -> u64 {
        self.waiting.swap(waiting, Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts calls that could not be recorded. Logs the first loss at once and later ones as summaries.
    pub(super) fn lose(&self, calls: usize, why: &dyn Display) {
        let lost = self.lost.fetch_add(calls as u64, Ordering::Relaxed) + calls as u64;
        let mut log = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        log.unlogged += calls;
        if log.logged_at.is_none_or(|it| it.elapsed() >= LOSS_LOG_INTERVAL) {
            let calls = std::mem::take(&mut log.unlogged);
            tracing::error!(target: "wharf::journal", calls, lost, "calls could not be recorded: {why}");
            log.logged_at = Some(Instant::now());
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(super) fn set_full(&self, full: bool) {
        let was_full = self.full.swap(full, Ordering::Relaxed);
        if was_full && !full {
            let mut log = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
            let calls = std::mem::take(&mut log.unlogged);
            let lost = self.lost();
            tracing::warn!(target: "wharf::journal", calls, lost, "calls are recorded again");
        }
    }
}
