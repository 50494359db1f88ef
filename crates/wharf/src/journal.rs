//! The journal of calls: a call that was answered is written down before its caller hears of it.
//!
//! Beside a database in a file, a call is written to the [`spool`] at once, and brought into the database with many
//! others a moment later: whoever reads the journal has that done first. Into PostgreSQL, where others read, every call
//! is written before it is answered; those that end at about the same time share one write, and while it cannot be reached
//! they wait in a spool. A call whose caller left is written down too.

mod backlog;
mod binding;
mod entry;
mod reach;
mod retention;
mod spool;
mod through;

use crate::{metrics::Metrics, state_folder::make_private_folder, telemetry::Telemetry};
use backlog::Backlog;
use binding::Binding;
use entry::Entry;
pub(crate) use reach::Reach;
pub(crate) use retention::Retention;
use sha2::{Digest, Sha256};
use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};
use through::Through;
use wharf_runtime::{CallRecord, Handle};
use wharf_store::{Location, Store};

/// How often others are let in before a write.
const TURNS: usize = 16;

/// How many bytes of what was said in a call are written down whole, where nobody says so.
const WHOLE: usize = 64 << 10;

/// What writes a journal. It ends when the journal is dropped.
pub(crate) type Writing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Writes calls down.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    way: Way,
    store: Store,
    metrics: Arc<Metrics>,
    telemetry: Telemetry,
    reach: Arc<Reach>,
    /// From how many bytes on only the beginning is written down.
    limit: usize,
}

/// How a call gets into the database.
#[derive(Clone, Debug)]
enum Way {
    /// By the spool.
    Bound(Binding),
    /// At once.
    Through(Through),
}

impl Journal {
    /// A journal in this database, and what writes it. What others have left behind is brought in first.
    /// `folder` is where calls may wait for a database that is elsewhere.
    pub(crate) async fn open(
        store: Store,
        location: &Location,
        folder: Option<&Path>,
    ) -> Result<(Journal, Writing), String> {
        let reach = Arc::<Reach>::default();
        let (way, writing): (Way, Writing) = match location {
            Location::Sqlite(path) => {
                let (binding, writing) = Binding::open(store.clone(), path, reach.clone()).await?;
                (Way::Bound(binding), Box::pin(writing))
            }
            Location::Postgres(address) => {
                let made = folder.map_or(Ok(()), make_private_folder);
                let backlog =
                    made.and_then(|()| Backlog::beside(folder.map(|it| spool_of(address, it)).as_deref()));
                let backlog = backlog.map_err(|it| unspoolable(folder.unwrap_or(Path::new("")), &it))?;
                let (through, writing) = Through::open(store.clone(), backlog, reach.clone());
                (Way::Through(through), Box::pin(writing))
            }
        };
        let (metrics, telemetry) = (Arc::default(), Telemetry::default());
        Ok((Journal { way, store, metrics, telemetry, reach, limit: WHOLE }, writing))
    }

    /// With another limit, if there is one.
    pub(crate) fn cutting_at(self, limit: Option<usize>) -> Journal {
        Journal { limit: limit.unwrap_or(self.limit), ..self }
    }

    /// With traces.
    pub(crate) fn traced(self, telemetry: Telemetry) -> Journal {
        Journal { telemetry, ..self }
    }

    /// Where spans are handed in.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The database, for all but calls.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Where calls are looked up: all that were acknowledged are there.
    pub(crate) async fn calls(&self) -> &Store {
        if let Way::Bound(binding) = &self.way {
            binding.settle().await;
        }
        &self.store
    }

    /// What is known of the way to the database.
    pub(crate) fn reach(&self) -> &Arc<Reach> {
        &self.reach
    }

    /// What the calls come to.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Writes a call down, and comes back when it is safe. Whether it could be written down; where not, it is counted as
    /// lost.
    pub(crate) async fn keep(&self, record: &CallRecord, door: &'static str) -> bool {
        self.metrics.count(record);
        self.telemetry.called(record);
        let entry = Entry::of(record, door, self.limit);
        match &self.way {
            Way::Bound(binding) => binding.keep(&entry).await,
            Way::Through(through) => through.keep(entry.row()).await,
        }
    }

    /// Writes down the calls whose callers left, until the runtime is gone.
    pub(crate) async fn follow(self, handle: Handle) {
        let mut abandoned = handle.abandoned_calls();
        while let Some(record) = abandoned.next().await {
            self.metrics.count(&record);
            self.telemetry.called(&record);
            let entry = Entry::of(&record, "gone", self.limit);
            match &self.way {
                Way::Bound(binding) => _ = binding.keep(&entry).await,
                Way::Through(through) => through.note(entry.row()).await,
            }
        }
    }
}

/// A write costs about the same for one call as for ten, and so does waking up whoever is answered. So those that are
/// just ending are let in, as long as more come than there were: a call that is alone waits for nobody.
async fn gather(mut before: usize, mut waiting: impl FnMut() -> usize) {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
        let now = waiting();
        if now == before {
            return;
        }
        before = now;
    }
}

fn unspoolable(folder: &Path, error: &io::Error) -> String {
    let folder = folder.display();
    format!("calls cannot be spooled in `{folder}`: {error}\nhelp: see that wharf may write there")
}

/// Where calls wait for the database of this address, and for no other. Who it is asked as makes no difference.
fn spool_of(address: &str, folder: &Path) -> PathBuf {
    let place = address.rsplit_once('@').map_or(address, |(_, place)| place);
    let place = place.split('?').next().unwrap_or_default();
    let hash: String = Sha256::digest(place).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("postgres-{hash}"))
}
