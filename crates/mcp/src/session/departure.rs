//! Decides atomically whether a request was sent or cancelled. The caller and the session task both try; the first
//! wins, so that a request cancelled while queued is never sent.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Shared flag: undecided, sent (`LEFT`) or cancelled before sending (`KEPT`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Departure(Arc<AtomicU8>);

const UNDECIDED: u8 = 0;
const LEFT: u8 = 1;
const KEPT: u8 = 2;

impl Departure {
    /// Marks the request as sent; returns `false` if it was cancelled.
    pub(crate) fn leave(&self) -> bool {
        self.decide(LEFT)
    }

    /// Cancels the request; returns `false` if it was already sent.
    pub(crate) fn keep(&self) -> bool {
        self.decide(KEPT)
    }

    fn decide(&self, fate: u8) -> bool {
        self.0.compare_exchange(UNDECIDED, fate, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
