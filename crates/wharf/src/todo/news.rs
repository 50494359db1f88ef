//! What has changed since clients were last told. A thousand changes in a moment are told once.

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

/// How often to look whether another process has changed something.
const LOOK: Duration = Duration::from_secs(1);

/// How often clients are told at most.
const PAUSE: Duration = Duration::from_millis(100);

/// How many changed todos are told one by one. Of more, only the whole list has changed: a client that does not keep up
/// would miss some.
const SINGLY: usize = 30;

/// Where changes are noted.
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
    /// A todo is new, or gone, or listed otherwise than before.
    pub(super) fn came_or_went(&self, id: i64) {
        self.note(id, true);
    }

    /// A todo is not what it was.
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

    /// Tells the clients of a service, for as long as it is served, also of what other processes have changed.
    pub(super) async fn tell<H: Handler>(self, store: Store, service: Service<H>, mut seen: TodosMark) {
        loop {
            tokio::select! {
                () = self.0.noted.notified() => {}
                () = sleep(LOOK) => {}
            }
            // Before the notes are taken: what is changed after this look is seen by the next.
            let mark = store.todos_mark().await.unwrap_or(seen);
            let notes = mem::take(&mut *self.notes());
            announce(&service, &notes, mark.count != seen.count, mark != seen);
            seen = mark;
            sleep(PAUSE).await;
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Notes are plain: a panic elsewhere cannot leave them half-written.
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells what is noted, and what was seen to have changed though nobody here has noted it.
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
