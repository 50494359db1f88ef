//! Whether the database can be reached, as far as anybody here knows: for those who can do without it, and for `/ready`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of the way to the database.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Nobody hears from it.
    away: AtomicBool,
    /// How many calls are written down here and not there.
    waiting: AtomicU64,
    /// There is no room here for more.
    full: AtomicBool,
    /// How many calls nobody could write down.
    lost: AtomicU64,
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

    pub(super) fn lose(&self, calls: usize) {
        self.lost.fetch_add(calls as u64, Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(super) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }
}
