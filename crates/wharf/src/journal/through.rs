//! The journal writer for PostgreSQL: inserts calls directly, in batches, while the database is reachable.
//!
//! The database is often on another machine and may be unreachable for a while. Calls that it does not accept in time
//! go to the spool, and their callers receive their answers. From then on all calls go through the spool, in order,
//! until the database has accepted everything, so that no caller waits for it to recover.

use super::{
    Reach,
    backlog::{Backlog, Drained},
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout, timeout_at},
};
use wharf_store::{CallRow, Store};

/// Maximum number of calls that are queued for writing.
const QUEUE: usize = 4_096;

/// Maximum number of calls in one insert.
pub(super) const BATCH: usize = 512;

/// How long a caller waits for the database before its call is spooled.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pause between checks whether calls can be recorded again.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// How long the spool is drained at shutdown. The remaining calls are recovered at the next start.
const LAST: Duration = Duration::from_secs(5);

/// Handle to the PostgreSQL journal writer.
#[derive(Clone, Debug)]
pub(super) struct Through {
    rows: mpsc::Sender<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    row: CallRow,
    /// Receives whether the call was recorded. Missing if no caller waits.
    written: Option<oneshot::Sender<bool>>,
}

impl Through {
    pub(super) fn open(
        store: Store,
        backlog: Backlog,
        reach: Arc<Reach>,
    ) -> (Through, impl Future<Output = ()> + Send + 'static) {
        let (rows, waiting) = mpsc::channel(QUEUE);
        reach.set_waiting(backlog.waiting());
        (Through { rows }, Writer { store, backlog, reach }.run(waiting))
    }

    /// Records a call and waits. Returns whether it is durable.
    pub(super) async fn keep(&self, row: CallRow) -> bool {
        let (written, safe) = oneshot::channel();
        let sent = self.rows.send(Waiting { row, written: Some(written) }).await;
        sent.is_ok() && safe.await.unwrap_or(false)
    }

    /// Queues a call for recording without waiting for the result.
    pub(super) async fn note(&self, row: CallRow) {
        let _ = self.rows.send(Waiting { row, written: None }).await;
    }
}

struct Writer {
    store: Store,
    backlog: Backlog,
    reach: Arc<Reach>,
}

impl Writer {
    async fn run(mut self, mut waiting: mpsc::Receiver<Waiting>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                received = waiting.recv_many(&mut batch, BATCH) => {
                    if received == 0 {
                        break;
                    }
                    gather(&mut waiting, &mut batch).await;
                    let (rows, written): (Vec<CallRow>, Vec<_>) =
                        batch.drain(..).map(|it| (it.row, it.written)).unzip();
                    let kept = self.keep(rows).await;
                    written.into_iter().flatten().for_each(|it| _ = it.send(kept));
                }
                // Probes for room, because no calls may arrive to do so while `/ready` reports that the journal is
                // full.
                () = sleep(PROBE_PAUSE), if self.reach.is_full() => {
                    let has_room = !self.reach.is_away() || self.backlog.has_room();
                    self.reach.set_full(!has_room);
                }
                drained = self.backlog.drain(&self.store), if !self.backlog.is_empty() => self.note(drained),
            }
        }
        let last = Instant::now() + LAST;
        while !self.backlog.is_empty() {
            let Ok(drained) = timeout_at(last, self.backlog.drain(&self.store)).await else { break };
            self.note(drained);
        }
    }

    /// Inserts the rows into the database, or else spools them. Returns whether either succeeded.
    async fn keep(&mut self, rows: Vec<CallRow>) -> bool {
        if self.backlog.is_empty() && !self.reach.is_away() {
            let why = match timeout(PATIENCE, self.store.record_calls(rows.iter().cloned())).await {
                Ok(Ok(())) => {
                    self.reach.set_full(false);
                    return true;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the database does not answer".to_owned(),
            };
            tracing::warn!(target: "wharf::journal", "calls wait in the spool: {why}");
        }
        let kept = self.backlog.add(&rows);
        self.reach.set_full(kept.is_err());
        if let Err(error) = &kept {
            self.reach.lose(rows.len(), error);
        }
        self.reach.set_waiting(self.backlog.waiting());
        kept.is_ok()
    }

    fn note(&mut self, drained: Drained) {
        if let Some(why) = self.backlog.settle(drained, self.reach.is_away()) {
            self.reach.lose(1, &why);
        }
        self.reach.set_waiting(self.backlog.waiting());
        if self.backlog.is_empty() {
            self.reach.set_full(false);
            tracing::info!(target: "wharf::journal", "all calls are in the database again");
        }
    }
}

/// Collects more records into this batch.
async fn gather(waiting: &mut mpsc::Receiver<Waiting>, batch: &mut Vec<Waiting>) {
    super::gather(batch.len(), || {
        while batch.len() < BATCH
            && let Ok(entry) = waiting.try_recv()
        {
            batch.push(entry);
        }
        batch.len()
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;
    use wharf_store::Location;

    fn call(name: &str) -> CallRow {
        CallRow { request_id: name.to_owned(), ..CallRow::default() }
    }

    /// While the database is away, no call is lost with a spool. Without one, calls are lost and reported as lost.
    #[tokio::test]
    async fn what_becomes_of_calls_while_the_database_is_away() {
        for (place, lost) in [(Some("postgres"), 0), (None, 1)] {
            let folder = TempDir::new().expect("a folder");
            let location = Location::Sqlite(folder.path().join("wharf.db"));
            let store = Store::open(&location).await.expect("the database opens");
            let backlog = Backlog::beside(place.map(|it| folder.path().join(it)).as_deref());
            let reach = Arc::<Reach>::default();
            let (through, writing) = Through::open(store.clone(), backlog.expect("a backlog"), reach.clone());
            let calling = async {
                reach.set_away(true);
                assert_eq!(through.keep(call("one")).await, lost == 0);
                assert_eq!((reach.waiting(), reach.lost()), (1 - lost, lost));
                assert_eq!(reach.is_full(), lost > 0);
                reach.set_away(false);
                assert!(through.keep(call("two")).await);
                drop(through);
            };
            tokio::join!(calling, writing);
            assert!(!reach.is_full() && reach.waiting() == 0);
            let is_kept = async |name| store.call(name).await.expect("it is read").is_some();
            assert_eq!((is_kept("one").await, is_kept("two").await), (lost == 0, true));
        }
    }
}
