//! The journal writer: one task that records calls for both engines.
//!
//! On PostgreSQL, which other replicas read, a call is inserted before it is answered. Calls that end at about the same
//! time share one insertion. On SQLite the task of the caller appends the call to the spool before it answers, with others
//! that end at about the same time, and the writer inserts it together with more of them a moment later, because one
//! insertion for each call costs several times as much, and waking the writer and waiting for it more than the append.
//!
//! Calls that PostgreSQL does not accept in time go to the spool too. From then on all calls go through the spool, in
//! order, until the database has accepted everything, so that no caller waits for it to recover.

#[cfg(test)]
mod tests;

use super::{
    DatabaseStatus,
    replay::{Insertion, MAX_BATCH_ROWS, SharedSpool, SpoolReplay},
};
use std::{io, path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::yield_now,
    time::{Instant, sleep, timeout, timeout_at},
};
use wharf_store::{CallRow, Store};

/// Maximum number of calls that are queued for writing.
const MAX_QUEUED_ROWS: usize = 4_096;

/// How often a batch yields to let more calls join before it is written.
const MAX_GATHER_YIELDS: usize = 16;

/// How long a caller waits for the database before its call is spooled.
const INSERT_TIMEOUT: Duration = Duration::from_secs(1);

/// Size of the spool in bytes above which callers wait for a database that is slow, but not away.
const MAX_BEHIND_BYTES: u64 = 64 << 20;

/// How long a reader waits for spooled calls to be inserted.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between checks whether calls can be recorded again.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// How long spooled calls are inserted at shutdown. The next start inserts the others.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Handle to the task that writes the journal. The task ends when all handles are dropped.
#[derive(Clone, Debug)]
pub(super) struct JournalWriter {
    requests: mpsc::Sender<RecordRequest>,
    flushes: mpsc::UnboundedSender<oneshot::Sender<()>>,
    status: Arc<DatabaseStatus>,
    /// The spool, if calls go there first.
    direct: Option<DirectSpool>,
}

/// The spool that tasks of callers append to.
#[derive(Clone, Debug)]
struct DirectSpool {
    spool: Arc<SharedSpool>,
    /// Wakes the writer when the active file has its first call.
    begun: Arc<Notify>,
    status: Arc<DatabaseStatus>,
}

#[derive(Debug)]
struct RecordRequest {
    row: CallRow,
    /// Receives whether the call is durable.
    recorded: oneshot::Sender<bool>,
}

impl JournalWriter {
    /// Opens the spool and returns the handle and the task. Calls that an earlier process left in the spool are
    /// inserted first.
    pub(super) fn open(
        store: Store,
        spool: Option<&Path>,
        status: Arc<DatabaseStatus>,
    ) -> io::Result<(JournalWriter, impl Future<Output = ()> + Send + 'static)> {
        let replay = SpoolReplay::open(spool)?;
        let (requests, requested) = mpsc::channel(MAX_QUEUED_ROWS);
        let (flushes, flushed) = mpsc::unbounded_channel();
        let spools_first = !store.is_shared();
        let begun = Arc::<Notify>::default();
        let direct = replay.shared().filter(|_| spools_first);
        let direct = direct.map(|spool| DirectSpool { spool, begun: begun.clone(), status: status.clone() });
        let task =
            WriterTask { store, replay, status: status.clone(), spools_first, flushes: Vec::new(), begun };
        task.publish_waiting();
        Ok((JournalWriter { requests, flushes, status, direct }, task.run(requested, flushed)))
    }

    /// Records a call and returns whether it is durable: whether it survives a kill of this process. If others end at
    /// about the same time, they share the write.
    pub(super) async fn record(&self, row: CallRow, has_others: bool) -> bool {
        let is_well = !self.status.is_away() && !self.status.is_full();
        let row = match &self.direct {
            Some(direct) if is_well => direct.append(row, has_others).await,
            _ => Some(row),
        };
        let Some(row) = row else { return true };
        let (recorded, is_recorded) = oneshot::channel();
        let Ok(permit) = self.requests.reserve().await else { return false };
        permit.send(RecordRequest { row, recorded });
        is_recorded.await.unwrap_or(false)
    }

    /// Waits until all calls recorded so far are in the database, but not for a database that is away.
    pub(super) async fn flush(&self) {
        let (flushed, is_flushed) = oneshot::channel();
        if !self.status.is_away() && self.flushes.send(flushed).is_ok() {
            let _ = timeout(FLUSH_TIMEOUT, is_flushed).await;
        }
    }
}

impl DirectSpool {
    /// Appends a call. Returns it if the writer has to decide: the database is far behind, or the spool does not accept
    /// it.
    async fn append(&self, row: CallRow, has_others: bool) -> Option<CallRow> {
        let staged = {
            let mut spool = self.spool.lock();
            if spool.bytes() >= MAX_BEHIND_BYTES {
                return Some(row);
            }
            StagedTicket { direct: self, ticket: Some(spool.stage(row)) }
        };
        if has_others {
            yield_now().await;
        }
        staged.commit()
    }

    fn commit(&self, ticket: u64) -> Option<CallRow> {
        let mut spool = self.spool.lock();
        let was_empty = spool.rows() == 0;
        let rejected = spool.commit(ticket);
        let has_begun = was_empty && spool.rows() > 0;
        drop(spool);
        if has_begun {
            self.begun.notify_one();
        }
        rejected
    }
}

/// A call that waits for a write. Dropping the ticket writes it, because the call was made even if its caller has
/// disconnected.
struct StagedTicket<'a> {
    direct: &'a DirectSpool,
    ticket: Option<u64>,
}

impl StagedTicket<'_> {
    fn commit(mut self) -> Option<CallRow> {
        self.ticket.take().and_then(|ticket| self.direct.commit(ticket))
    }
}

impl Drop for StagedTicket<'_> {
    fn drop(&mut self) {
        if self.ticket.take().and_then(|ticket| self.direct.commit(ticket)).is_some() {
            self.direct.status.lose(1, &"the spool does not accept a call whose caller has disconnected");
        }
    }
}

struct WriterTask {
    store: Store,
    replay: SpoolReplay,
    status: Arc<DatabaseStatus>,
    /// Whether calls go to the spool while the database is well.
    spools_first: bool,
    /// Readers that wait until this many calls of the spool are done.
    flushes: Vec<(u64, oneshot::Sender<()>)>,
    /// Notified when an empty spool got a call.
    begun: Arc<Notify>,
}

impl WriterTask {
    async fn run(
        mut self,
        mut requests: mpsc::Receiver<RecordRequest>,
        mut flushes: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    ) {
        let mut batch = Vec::with_capacity(MAX_BATCH_ROWS);
        loop {
            tokio::select! {
                received = requests.recv_many(&mut batch, MAX_BATCH_ROWS), if !self.is_behind() => {
                    if received == 0 {
                        break;
                    }
                    gather(&mut requests, &mut batch).await;
                    let (rows, recorded): (Vec<CallRow>, Vec<_>) =
                        batch.drain(..).map(|it| (it.row, it.recorded)).unzip();
                    let is_recorded = self.record(rows).await;
                    recorded.into_iter().for_each(|it| _ = it.send(is_recorded));
                }
                Some(flushed) = flushes.recv() => self.flush(flushed),
                // Probes for room, because no calls may arrive to do so while `/ready` reports that the journal is
                // full.
                () = sleep(PROBE_PAUSE), if self.status.is_full() => {
                    let has_room = self.can_insert() || self.replay.has_room();
                    self.status.set_full(!has_room);
                }
                insertion = self.replay.insert_next(&self.store), if !self.replay.is_empty() => {
                    self.settle(insertion);
                }
                // The next turn inserts it.
                () = self.begun.notified(), if self.replay.is_empty() => {}
            }
        }
        self.replay.set_hurry(true);
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        while !self.replay.is_empty() {
            let Ok(insertion) = timeout_at(end, self.replay.insert_next(&self.store)).await else { break };
            self.settle(insertion);
        }
    }

    /// Returns whether calls have to wait for the database, because it inserts them more slowly than they end.
    fn is_behind(&self) -> bool {
        self.spools_first && !self.status.is_away() && self.replay.bytes() >= MAX_BEHIND_BYTES
    }

    /// Returns whether calls are inserted before they are answered.
    fn can_insert(&self) -> bool {
        !self.spools_first && self.replay.is_empty() && !self.status.is_away()
    }

    /// Inserts the rows into the database, or else spools them. Returns whether either succeeded.
    async fn record(&mut self, rows: Vec<CallRow>) -> bool {
        if self.can_insert() {
            let why = match timeout(INSERT_TIMEOUT, self.store.record_calls(rows.clone())).await {
                Ok(Ok(())) => {
                    self.status.set_full(false);
                    return true;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the database does not answer".to_owned(),
            };
            tracing::warn!(target: "wharf::journal", "calls wait in the spool: {why}");
        }
        let count = rows.len();
        let spooled = self.replay.spool(rows);
        self.status.set_full(spooled.is_err());
        if let Err(error) = &spooled {
            self.status.lose(count, error);
        }
        self.publish_waiting();
        spooled.is_ok()
    }

    /// Registers a reader that waits for the calls spooled so far.
    fn flush(&mut self, flushed: oneshot::Sender<()>) {
        self.flushes.push((self.replay.spooled(), flushed));
        self.answer_flushes();
    }

    /// Answers the readers whose calls are in the database.
    fn answer_flushes(&mut self) {
        let done = self.replay.done();
        self.flushes.extract_if(.., |(spooled, _)| *spooled <= done).for_each(|(_, it)| _ = it.send(()));
        self.replay.set_hurry(!self.flushes.is_empty());
    }

    /// Processes the result of an insertion from the spool.
    fn settle(&mut self, insertion: Insertion) {
        if self.spools_first {
            self.set_away(insertion.1.as_ref().err().map(ToString::to_string));
        }
        if let Some(why) = self.replay.settle(insertion, self.status.is_away()) {
            self.status.lose(1, &why);
        }
        self.answer_flushes();
        self.publish_waiting();
    }

    /// Sets whether the database is away. On PostgreSQL the replica's own connection decides that.
    fn set_away(&mut self, why: Option<String>) {
        let is_new = self.status.set_away(why.is_some());
        if let Some(why) = why {
            self.flushes.clear();
            if is_new {
                tracing::error!(target: "wharf::journal", "calls wait in the spool: {why}");
            }
        }
    }

    /// Publishes the number of waiting calls. While SQLite is well, every call is in the spool for a moment; these do
    /// not count.
    fn publish_waiting(&self) {
        let is_usual = self.spools_first && !self.status.is_away();
        let waiting = if is_usual { 0 } else { self.replay.waiting() };
        if self.status.set_waiting(waiting) > 0 && waiting == 0 {
            tracing::info!(target: "wharf::journal", "the database accepts calls again");
        }
    }
}

/// Collects more calls into this batch. A write, and the wakeup after it, cost about the same for one call as for ten. A
/// single call does not wait: the loop ends as soon as none has joined.
async fn gather(requests: &mut mpsc::Receiver<RecordRequest>, batch: &mut Vec<RecordRequest>) {
    for _ in 0..MAX_GATHER_YIELDS {
        let before = batch.len();
        yield_now().await;
        while batch.len() < MAX_BATCH_ROWS
            && let Ok(request) = requests.try_recv()
        {
            batch.push(request);
        }
        if batch.len() == before {
            return;
        }
    }
}
