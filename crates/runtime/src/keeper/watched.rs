//! The resources of a source whose changes somebody wants to hear of, whichever session it has.

use crate::incident::SharedSession;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wharf_mcp::Session;

/// Shared by those who say what is wanted and the one who begins sessions. A session is told while the lock is held, so
/// that the latest word is the last one it hears.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(Arc<Mutex<BTreeSet<String>>>);

impl Watched {
    /// Wants these and no others, of the present session too.
    pub(super) fn set(&self, uris: BTreeSet<String>, current: impl FnOnce() -> Option<Arc<SharedSession>>) {
        let mut wanted = self.wanted();
        if *wanted != uris {
            *wanted = uris;
            current().into_iter().for_each(|it| it.watch(wanted.clone()));
        }
    }

    /// Has a new session hear of what is wanted, and says what that is.
    pub(super) fn apply(&self, session: &Session) -> BTreeSet<String> {
        let wanted = self.wanted();
        if !wanted.is_empty() {
            session.watch(wanted.clone());
        }
        wanted.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted().is_empty()
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
