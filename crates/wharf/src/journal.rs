//! The journal of calls: a call is recorded before its caller receives the answer.
//!
//! Calls whose caller has disconnected are recorded too. See [`writer`] for how a call gets into the database.

mod database_status;
mod replay;
mod retention;
mod row;
mod spool;
mod writer;

use crate::{
    call_stats::CallStats, metrics::Metrics, state_folder::make_private_folder, telemetry::Telemetry,
};
pub(crate) use database_status::DatabaseStatus;
pub(crate) use retention::Retention;
use row::call_row;
use sha2::{Digest, Sha256};
use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};
use wharf_runtime::{CallRecord, Handle};
use wharf_store::{Location, Store};
use writer::JournalWriter;

/// Default of `[calls] record_limit`: size in bytes up to which arguments and results are recorded in full.
pub(crate) const DEFAULT_RECORD_LIMIT: usize = 64 << 10;

/// The task that writes the journal. It ends when the journal is dropped.
pub(crate) type JournalTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Records calls.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    writer: JournalWriter,
    store: Store,
    metrics: Arc<Metrics>,
    stats: Arc<CallStats>,
    telemetry: Telemetry,
    status: Arc<DatabaseStatus>,
    /// Size in bytes above which only the beginning of a value is recorded.
    record_limit: usize,
}

impl Journal {
    /// Opens the journal of this database and returns it with its task. The spool of SQLite is beside the database,
    /// that of PostgreSQL in `folder`.
    pub(crate) fn open(
        store: Store,
        location: &Location,
        folder: Option<&Path>,
    ) -> Result<(Journal, JournalTask), String> {
        let status = Arc::<DatabaseStatus>::default();
        let spool = match location {
            Location::Sqlite(path) => Some(path.clone()),
            Location::Postgres(address) => folder.map(|it| spool_path(address, it)),
        };
        let folder = spool.as_deref().and_then(Path::parent);
        let made = folder.map_or(Ok(()), make_private_folder);
        let opened = made.and_then(|()| JournalWriter::open(store.clone(), spool.as_deref(), status.clone()));
        let (writer, task) = opened.map_err(|it| cannot_spool(folder.unwrap_or(Path::new("")), &it))?;
        let (metrics, stats) = (Arc::default(), Arc::default());
        let (telemetry, record_limit) = (Telemetry::default(), DEFAULT_RECORD_LIMIT);
        Ok((Journal { writer, store, metrics, stats, telemetry, status, record_limit }, Box::pin(task)))
    }

    /// Sets the size above which values are truncated, if given.
    pub(crate) fn with_record_limit(self, limit: Option<usize>) -> Journal {
        Journal { record_limit: limit.unwrap_or(self.record_limit), ..self }
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
        self.writer.flush().await;
        &self.store
    }

    /// The status of the database and of the spool.
    pub(crate) fn status(&self) -> &Arc<DatabaseStatus> {
        &self.status
    }

    /// Statistics of calls over time.
    pub(crate) fn stats(&self) -> &CallStats {
        &self.stats
    }

    /// Counters over all calls.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Records a call that came in `via` this interface, and returns once it is durable. Returns false if it could not
    /// be recorded; it then counts as lost.
    pub(crate) async fn record(&self, record: &CallRecord, via: &str) -> bool {
        self.write(record, via, false).await
    }

    /// Records a call like [`Journal::record`]. While other calls are in flight it lets them end first: calls that end
    /// together share one write, and are answered together, so that a client with several wakes up once.
    pub(crate) async fn record_with_others(&self, record: &CallRecord, via: &str, handle: &Handle) -> bool {
        self.write(record, via, handle.in_flight() > 0).await
    }

    async fn write(&self, record: &CallRecord, via: &str, has_others: bool) -> bool {
        self.metrics.count(record);
        self.stats.count(record);
        self.telemetry.record_call(record);
        self.writer.record(call_row(record, via, self.record_limit), has_others).await
    }

    /// Records calls whose caller has disconnected, until the runtime has shut down.
    pub(crate) async fn record_abandoned(self, handle: Handle) {
        let mut abandoned = handle.abandoned_calls();
        while let Some(record) = abandoned.next().await {
            self.record(&record, "gone").await;
        }
    }
}

fn cannot_spool(folder: &Path, error: &io::Error) -> String {
    let folder = folder.display();
    format!("calls cannot be spooled in `{folder}`: {error}\nhelp: see that wharf may write there")
}

/// Returns the path of the spool for this database. It depends on host and database name only, not on the user or the
/// options.
fn spool_path(address: &str, folder: &Path) -> PathBuf {
    let place = address.rsplit_once('@').map_or(address, |(_, place)| place);
    let place = place.split('?').next().unwrap_or_default();
    let hash: String = Sha256::digest(place).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("postgres-{hash}"))
}
