//! The journal of calls: a call is recorded before its caller receives the answer.
//!
//! With SQLite, a call is first appended to the [`spool`] beside the database, and moved into the database together
//! with others a moment later. Reading the journal waits for that move. With PostgreSQL, which other replicas read,
//! every call is inserted before it is answered. Calls that end at about the same time share one insert, and while
//! the database is unreachable they go to a spool. Calls whose caller has disconnected are recorded too.

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

/// How often a batch yields to let more calls join before it is written.
const TURNS: usize = 16;

/// Default size in bytes up to which arguments and results are recorded in full.
const WHOLE: usize = 64 << 10;

/// The task that writes the journal. It ends when the journal is dropped.
pub(crate) type Writing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Records calls.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    way: Way,
    store: Store,
    metrics: Arc<Metrics>,
    telemetry: Telemetry,
    reach: Arc<Reach>,
    /// Size in bytes above which only the beginning of a value is recorded.
    limit: usize,
}

/// How a call gets into the database.
#[derive(Clone, Debug)]
enum Way {
    /// Through the spool, then in batches (SQLite).
    Bound(Binding),
    /// Directly, in batches (PostgreSQL).
    Through(Through),
}

impl Journal {
    /// Opens the journal of this database and returns it with its writer task. First recovers calls that an earlier
    /// process left in a spool. `folder` holds the spool of a PostgreSQL database.
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

    /// Sets the size above which values are truncated, if given.
    pub(crate) fn cutting_at(self, limit: Option<usize>) -> Journal {
        Journal { limit: limit.unwrap_or(self.limit), ..self }
    }

    /// Sets the tracer.
    pub(crate) fn traced(self, telemetry: Telemetry) -> Journal {
        Journal { telemetry, ..self }
    }

    /// The tracer that receives the spans of calls.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The database, for everything except reading calls.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The database, for reading calls. Waits until all acknowledged calls are in it.
    pub(crate) async fn calls(&self) -> &Store {
        if let Way::Bound(binding) = &self.way {
            binding.settle().await;
        }
        &self.store
    }

    /// The status of the database and of the spool.
    pub(crate) fn reach(&self) -> &Arc<Reach> {
        &self.reach
    }

    /// Counters over all calls.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Records a call and returns once it is durable. Returns false if it could not be recorded; it then counts as
    /// lost.
    pub(crate) async fn keep(&self, record: &CallRecord, door: &'static str) -> bool {
        self.metrics.count(record);
        self.telemetry.record_call(record);
        let entry = Entry::of(record, door, self.limit);
        match &self.way {
            Way::Bound(binding) => binding.keep(&entry).await,
            Way::Through(through) => through.keep(entry.row()).await,
        }
    }

    /// Records calls whose caller has disconnected, until the runtime has shut down.
    pub(crate) async fn follow(self, handle: Handle) {
        let mut abandoned = handle.abandoned_calls();
        while let Some(record) = abandoned.next().await {
            self.metrics.count(&record);
            self.telemetry.record_call(&record);
            let entry = Entry::of(&record, "gone", self.limit);
            match &self.way {
                Way::Bound(binding) => _ = binding.keep(&entry).await,
                Way::Through(through) => through.note(entry.row()).await,
            }
        }
    }
}

/// Yields while more calls join the batch. A write, and the wakeup after it, cost about the same for one call as for
/// ten. A single call does not wait: the loop ends as soon as none has joined.
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

/// Returns the path of the spool for this database. It depends on host and database name only, not on the user or the
/// options.
fn spool_of(address: &str, folder: &Path) -> PathBuf {
    let place = address.rsplit_once('@').map_or(address, |(_, place)| place);
    let place = place.split('?').next().unwrap_or_default();
    let hash: String = Sha256::digest(place).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("postgres-{hash}"))
}
