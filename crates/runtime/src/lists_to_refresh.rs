//! Tracks which lists of a source have to be read again. The session keeper marks them; the catalog writer takes
//! them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
};
use tokio::sync::Notify;
use wharf_mcp::session::List;

/// All kinds of lists, in the order of their bits.
pub(crate) const ALL_LISTS: [List; 4] = [List::Tools, List::Prompts, List::Resources, List::Templates];

/// Lists of one source that need a refresh. Repeated changes set the same mark.
#[derive(Debug)]
pub(crate) struct ListsToRefresh {
    marks: AtomicU8,
    /// Number of requests by callers since the last listing started.
    requested: AtomicU64,
    /// Whether a caller waits for a listing that it did not request.
    has_waiting_caller: AtomicBool,
    refresh_needed: Arc<Notify>,
}

impl ListsToRefresh {
    pub(crate) fn new(refresh_needed: Arc<Notify>) -> ListsToRefresh {
        ListsToRefresh {
            marks: AtomicU8::new(0),
            requested: AtomicU64::new(0),
            has_waiting_caller: AtomicBool::new(false),
            refresh_needed,
        }
    }

    pub(crate) fn mark(&self, list: List) {
        self.marks.fetch_or(list_bit(list), Ordering::AcqRel);
        self.refresh_needed.notify_one();
    }

    pub(crate) fn mark_all(&self) {
        ALL_LISTS.into_iter().for_each(|it| _ = self.marks.fetch_or(list_bit(it), Ordering::AcqRel));
        self.refresh_needed.notify_one();
    }

    /// Wakes the catalog writer because a reason not to read the lists may have ended.
    pub(crate) fn wake_catalog_writer(&self) {
        self.refresh_needed.notify_one();
    }

    /// Requests a listing for a waiting caller. It ignores the minimum interval between listings.
    pub(crate) fn request(&self) {
        self.requested.fetch_add(1, Ordering::AcqRel);
        self.mark_all();
    }

    pub(crate) fn take_requested(&self) -> bool {
        self.requested.swap(0, Ordering::AcqRel) > 0
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire) > 0
    }

    /// Records that a caller waits for the current listing.
    pub(crate) fn note_waiting_caller(&self) {
        self.has_waiting_caller.store(true, Ordering::Release);
    }

    /// Returns whether a caller waited for the listing that has just ended, and resets the flag.
    pub(crate) fn take_waiting_caller(&self) -> bool {
        self.has_waiting_caller.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn has_marks(&self) -> bool {
        self.marks.load(Ordering::Acquire) != 0
    }

    /// Returns the marked lists and clears the marks.
    pub(crate) fn take(&self) -> Vec<List> {
        let marks = self.marks.swap(0, Ordering::AcqRel);
        ALL_LISTS.into_iter().filter(|it| marks & list_bit(*it) != 0).collect()
    }
}

fn list_bit(list: List) -> u8 {
    1 << ALL_LISTS.iter().position(|it| *it == list).unwrap_or_default()
}
