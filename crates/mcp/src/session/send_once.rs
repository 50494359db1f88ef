//! Decides atomically whether a request was sent or cancelled. The caller and the session task both try; the first
//! wins, so that a request cancelled while queued is never sent.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Shared flag: undecided, sent (`SENT`) or cancelled before sending (`CANCELLED`).
#[derive(Clone, Debug, Default)]
pub(crate) struct SendOnce(Arc<AtomicU8>);

const UNDECIDED: u8 = 0;
const SENT: u8 = 1;
const CANCELLED: u8 = 2;

impl SendOnce {
    /// Marks the request as sent; returns `false` if it was cancelled.
    pub(crate) fn mark_sent(&self) -> bool {
        self.decide(SENT)
    }

    /// Cancels the request; returns `false` if it was already sent.
    pub(crate) fn cancel(&self) -> bool {
        self.decide(CANCELLED)
    }

    fn decide(&self, state: u8) -> bool {
        self.0.compare_exchange(UNDECIDED, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
