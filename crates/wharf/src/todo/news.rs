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
use wharf_store::{Store, TodosMark};

/// Interval for polling the database for changes by other processes.
const LOOK: Duration = Duration::from_secs(1);

/// Minimum time between two rounds of notifications.
const PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of todos to announce one by one. Beyond it, only `todo://all` is announced as updated, because a
/// slow client would miss notifications.
const SINGLY: usize = 30;

/// Collects changes for the next round of notifications. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct NewsDesk(Arc<Board>);

#[derive(Debug, Default)]
struct Board {
    notes: Mutex<Notes>,
    noted: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    list: bool,
    changed: BTreeSet<i64>,
}

impl NewsDesk {
    /// Records a todo that was created or deleted, or whose entry in the list of resources changed.
    pub(super) fn came_or_went(&self, id: i64) {
        self.note(id, true);
    }

    /// Records a todo whose content changed.
    pub(super) fn changed(&self, id: i64) {
        self.note(id, false);
    }

    fn note(&self, id: i64, list: bool) {
        {
            let mut notes = self.notes();
            notes.list |= list;
            if notes.changed.len() <= SINGLY {
                notes.changed.insert(id);
            }
        }
        self.0.noted.notify_one();
    }

    /// Notifies the clients of a service of all changes, including those by other processes. Never returns.
    pub(super) async fn tell<H: Handler>(self, store: Store, service: Service<H>, mut seen: TodosMark) {
        loop {
            tokio::select! {
                () = self.0.noted.notified() => {}
                () = sleep(LOOK) => {}
            }
            // Read the mark before taking the notes: the next round then sees any later change.
            let mark = store.todos_mark().await.unwrap_or(seen);
            let notes = mem::take(&mut *self.notes());
            announce(&service, &notes, mark.count != seen.count, mark != seen);
            seen = mark;
            sleep(PAUSE).await;
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // The notes are plain data: a panic cannot leave them inconsistent.
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Announces the recorded changes, and changes by other processes that only the database's mark reveals.
fn announce<H: Handler>(service: &Service<H>, notes: &Notes, more_or_fewer: bool, otherwise: bool) {
    let by_others = otherwise && notes.changed.is_empty();
    if notes.list || more_or_fewer || by_others {
        service.announce(News::ResourcesChanged);
    }
    if notes.changed.len() <= SINGLY {
        let uris = notes.changed.iter().map(|id| resources::uri(*id));
        uris.for_each(|uri| service.announce(News::ResourceUpdated(uri)));
    }
    if otherwise || !notes.changed.is_empty() {
        service.announce(News::ResourceUpdated(ALL.to_owned()));
    }
}
