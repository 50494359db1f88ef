//! Notifies clients of changed todos. Coalesces many changes in a short time into one round of notifications.

use super::resources::{self, ALL};
use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::sleep};
use wharf_mcp::{
    News,
    serve::{Handler, Service},
};
use wharf_store::{Store, TodosVersion};

/// Interval for polling the database for changes by other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between two rounds of notifications.
const MIN_ROUND_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of todos to announce one by one. Beyond it, only `todo://all` is announced as updated, because a
/// slow client would miss notifications.
const MAX_SINGLE_NOTIFICATIONS: usize = 30;

/// Collects changes for the next round of notifications. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct TodoNews(Arc<PendingNews>);

#[derive(Debug, Default)]
struct PendingNews {
    pending: Mutex<PendingChanges>,
    noted: Notify,
}

#[derive(Debug, Default)]
struct PendingChanges {
    list: bool,
    changed: BTreeSet<i64>,
}

impl TodoNews {
    /// Records a todo that was created or deleted, or whose entry in the list of resources changed.
    pub(super) fn list_changed(&self, id: i64) {
        self.note(id, true);
    }

    /// Records a todo whose content changed.
    pub(super) fn changed(&self, id: i64) {
        self.note(id, false);
    }

    fn note(&self, id: i64, list: bool) {
        {
            let mut pending = self.pending();
            pending.list |= list;
            if pending.changed.len() <= MAX_SINGLE_NOTIFICATIONS {
                pending.changed.insert(id);
            }
        }
        self.0.noted.notify_one();
    }

    /// Notifies the clients of a service of all changes, including those by other processes. Never returns.
    pub(super) async fn announce_changes<H: Handler>(
        self,
        store: Store,
        service: Service<H>,
        mut seen: TodosVersion,
    ) {
        loop {
            tokio::select! {
                () = self.0.noted.notified() => {}
                () = sleep(POLL_INTERVAL) => {}
            }
            // Read the mark before taking the notes: the next round then sees any later change.
            let version = store.todos_version().await.unwrap_or(seen);
            let pending = mem::take(&mut *self.pending());
            announce(&service, &pending, version.count != seen.count, version != seen);
            seen = version;
            sleep(MIN_ROUND_INTERVAL).await;
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        // The notes are plain data: a panic cannot leave them inconsistent.
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Announces the recorded changes, and changes by other processes that only the database's mark reveals.
fn announce<H: Handler>(
    service: &Service<H>,
    pending: &PendingChanges,
    count_changed: bool,
    has_changed: bool,
) {
    let by_others = has_changed && pending.changed.is_empty();
    if pending.list || count_changed || by_others {
        service.announce(News::ResourcesChanged);
    }
    if pending.changed.len() <= MAX_SINGLE_NOTIFICATIONS {
        let uris = pending.changed.iter().map(|id| resources::uri(*id));
        uris.for_each(|uri| service.announce(News::ResourceUpdated(uri)));
    }
    if has_changed || !pending.changed.is_empty() {
        service.announce(News::ResourceUpdated(ALL.to_owned()));
    }
}
