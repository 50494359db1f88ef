//! Whether a request has left our hands. Its asker and its carrier both want to know, and whichever decides first
//! decides for both: a request that was given up while it waited here is never sent.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Departure(Arc<AtomicU8>);

const UNDECIDED: u8 = 0;
const LEFT: u8 = 1;
const KEPT: u8 = 2;

impl Departure {
    /// Lets the request go, unless it was given up.
    pub(crate) fn leave(&self) -> bool {
        self.decide(LEFT)
    }

    /// Keeps the request here for good, unless it has left.
    pub(crate) fn keep(&self) -> bool {
        self.decide(KEPT)
    }

    fn decide(&self, fate: u8) -> bool {
        self.0.compare_exchange(UNDECIDED, fate, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
