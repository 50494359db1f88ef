//! Which lists of a source have to be read again: marked by its keeper, taken by the curator.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
};
use tokio::sync::Notify;
use wharf_mcp::session::List;

/// Every list, in the order of their bits.
pub(crate) const LISTS: [List; 4] = [List::Tools, List::Prompts, List::Resources, List::Templates];

/// The marks of one source. A storm of changes is one mark.
#[derive(Debug)]
pub(crate) struct Stale {
    marks: AtomicU8,
    /// How often somebody asked for the lists himself.
    asked: AtomicU64,
    /// Whether a caller waits for a reading that it did not ask for.
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

    /// What keeps the lists from being read may be over.
    pub(crate) fn stir(&self) {
        self.curator.notify_one();
    }

    /// Somebody waits for the lists: they are read now, however lately they were.
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

    /// A caller waits for the reading that is under way.
    pub(crate) fn note_waiting_caller(&self) {
        self.awaited.store(true, Ordering::Release);
    }

    /// Returns whether a caller waited for the reading that has just ended, and forgets it.
    pub(crate) fn take_waiting_caller(&self) -> bool {
        self.awaited.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn any(&self) -> bool {
        self.marks.load(Ordering::Acquire) != 0
    }

    /// Takes the marks off, and says what they were on.
    pub(crate) fn take(&self) -> Vec<List> {
        let marks = self.marks.swap(0, Ordering::AcqRel);
        LISTS.into_iter().filter(|it| marks & bit(*it) != 0).collect()
    }
}

fn bit(list: List) -> u8 {
    1 << LISTS.iter().position(|it| *it == list).unwrap_or_default()
}
