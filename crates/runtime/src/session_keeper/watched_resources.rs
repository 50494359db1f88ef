//! Holds the watched resources of a source, independent of its current session.

use crate::session_keeper::incident::SharedSession;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wharf_mcp::Session;

/// URIs of the watched resources, shared by the keeper handle and its task. A session is updated while the lock is
/// held, so that concurrent changes reach it in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedResources(Arc<Mutex<BTreeSet<String>>>);

impl WatchedResources {
    /// Replaces the set, for the current session too.
    pub(super) fn set(&self, uris: BTreeSet<String>, current: impl FnOnce() -> Option<Arc<SharedSession>>) {
        let mut wanted = self.wanted();
        if *wanted != uris {
            *wanted = uris;
            current().into_iter().for_each(|it| it.watch(wanted.clone()));
        }
    }

    /// Subscribes a new session to the watched resources and returns their URIs.
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
