//! The journal of calls: a call that was answered is written down before its caller hears of it.
//!
//! Beside a database in a file, a call is written to the [`spool`] at once, and brought into the database with many
//! others a moment later: whoever reads the journal has that done first. Into PostgreSQL, where others read, every call
//! is written before it is answered; those that end at about the same time share one write. A call whose caller left is
//! written down too.

mod binding;
mod entry;
mod spool;
mod through;

use crate::{metrics::Metrics, telemetry::Telemetry};
use binding::Binding;
use entry::Entry;
use std::{future::Future, pin::Pin, sync::Arc};
use through::Through;
use wharf_runtime::{CallRecord, Handle, Happening};
use wharf_store::{Location, Store};

/// What writes a journal. It ends when the journal is dropped.
pub(crate) type Writing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Writes calls down.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    way: Way,
    store: Store,
    metrics: Arc<Metrics>,
    telemetry: Telemetry,
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
    pub(crate) async fn open(store: Store, location: &Location) -> Result<(Journal, Writing), String> {
        let (way, writing): (Way, Writing) = match location {
            Location::Sqlite(path) => {
                let (binding, writing) = Binding::open(store.clone(), path).await?;
                (Way::Bound(binding), Box::pin(writing))
            }
            Location::Postgres(_) => {
                let (through, writing) = Through::open(store.clone());
                (Way::Through(through), Box::pin(writing))
            }
        };
        let (metrics, telemetry) = (Arc::default(), Telemetry::default());
        Ok((Journal { way, store, metrics, telemetry }, writing))
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

    /// What the calls come to.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Writes a call down, and comes back when it is safe.
    pub(crate) async fn keep(&self, record: &CallRecord, door: &'static str) {
        self.metrics.count(record);
        self.telemetry.called(record);
        let entry = Entry::of(record, door);
        match &self.way {
            Way::Bound(binding) => binding.keep(&entry).await,
            Way::Through(through) => through.keep(entry.row()).await,
        }
    }

    /// Writes down the calls whose callers left, until the runtime is gone.
    pub(crate) async fn follow(self, handle: Handle) {
        let mut events = handle.changes();
        while let Some(event) = events.next().await {
            if let Happening::Called(record) = event.what
                && record.is_abandoned()
            {
                self.telemetry.called(&record);
                let entry = Entry::of(&record, "gone");
                match &self.way {
                    Way::Bound(binding) => binding.keep(&entry).await,
                    Way::Through(through) => through.note(entry.row()).await,
                }
            }
        }
    }
}
