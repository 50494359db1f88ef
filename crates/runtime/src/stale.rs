//! Tracks which lists of a source have to be read again. The session keeper marks them; the catalog writer takes
//! them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
};
use tokio::sync::Notify;
use wharf_mcp::session::List;

/// All kinds of lists, in the order of their bits.
pub(crate) const LISTS: [List; 4] = [List::Tools, List::Prompts, List::Resources, List::Templates];

/// Lists of one source that need a refresh. Repeated changes set the same mark.
#[derive(Debug)]
pub(crate) struct Stale {
    marks: AtomicU8,
    /// Number of requests by callers since the last listing started.
    asked: AtomicU64,
    /// Whether a caller waits for a listing that it did not request.
    awaited: AtomicBool,
    curator: Arc<Notify>,
}

impl Stale {
    pub(crate) fn new(curator: Arc<Notify>) -> Stale {
        Stale { marks: AtomicU8::new(0), asked: AtomicU64::new(0), awaited: AtomicBool::new(false), curator }
    }

    pub(crate) fn mark(&self, list: List) {
        self.marks.fetch_or(bit(list), Ordering::AcqRel);
        self.curator.notify_one();
    }

    pub(crate) fn mark_all(&self) {
        LISTS.into_iter().for_each(|it| _ = self.marks.fetch_or(bit(it), Ordering::AcqRel));
        self.curator.notify_one();
    }

    /// Wakes the catalog writer because a reason not to read the lists may have ended.
    pub(crate) fn stir(&self) {
        self.curator.notify_one();
    }

    /// Requests a listing for a waiting caller. It ignores the minimum interval between listings.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
        self.mark_all();
    }

    pub(crate) fn take_asked(&self) -> bool {
        self.asked.swap(0, Ordering::AcqRel) > 0
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire) > 0
    }

    /// Records that a caller waits for the current listing.
    pub(crate) fn note_waiting_caller(&self) {
        self.awaited.store(true, Ordering::Release);
    }

    /// Returns whether a caller waited for the listing that has just ended, and resets the flag.
    pub(crate) fn take_waiting_caller(&self) -> bool {
        self.awaited.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn any(&self) -> bool {
        self.marks.load(Ordering::Acquire) != 0
    }

    /// Returns the marked lists and clears the marks.
    pub(crate) fn take(&self) -> Vec<List> {
        let marks = self.marks.swap(0, Ordering::AcqRel);
        LISTS.into_iter().filter(|it| marks & bit(*it) != 0).collect()
    }
}

fn bit(list: List) -> u8 {
    1 << LISTS.iter().position(|it| *it == list).unwrap_or_default()
}
