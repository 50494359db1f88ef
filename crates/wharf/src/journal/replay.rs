//! Inserts spooled calls into the database, oldest first.
//!
//! A call may be inserted twice but is never skipped: the database identifies it by its request id and stores it
//! once.

use super::spool::Spool;
use std::{
    collections::VecDeque,
    future, io,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout};
use wharf_store::{CallRow, Store, StoreError};

/// Maximum number of calls per insertion. Each insertion writes the last pages of the table and its indexes again.
pub(super) const MAX_BATCH_ROWS: usize = 4_096;

/// How long calls are collected in the spool before they are inserted together.
const COLLECT_TIME: Duration = Duration::from_millis(250);

/// Timeout for an insertion. No caller waits for it.
const INSERT_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed insertion.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// How often a reachable database may reject a single call before that call is given up.
const MAX_REJECTIONS: u32 = 20;

/// The spool, to which the writer and the tasks of callers append. The lock is held for one `write` to a file.
#[derive(Debug)]
pub(super) struct SharedSpool(Mutex<Spool>);

impl SharedSpool {
    pub(super) fn lock(&self) -> MutexGuard<'_, Spool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The spool, and the state of moving its calls into the database.
pub(super) struct SpoolReplay {
    /// Missing if there is no folder for it.
    spool: Option<Arc<SharedSpool>>,
    /// Calls of the spool's oldest file that are not inserted yet.
    rows: VecDeque<CallRow>,
    /// Whether `rows` are those of the oldest file. It is removed once they are inserted.
    has_read: bool,
    /// Number of calls of the oldest file that are done.
    done_of_oldest: usize,
    inserting: Option<Pin<Box<dyn Future<Output = Insertion> + Send>>>,
    /// Earliest time of the next insertion, after a failure.
    not_before: Instant,
    /// Whether calls are inserted without collecting more.
    hurries: bool,
    /// Number of calls per insertion. It is halved after a rejection, to isolate the call that the database rejects.
    batch_rows: usize,
    rejections: u32,
    done: u64,
}

/// The number of calls of an insertion, and its result.
pub(super) type Insertion = (usize, Result<(), StoreError>);

impl SpoolReplay {
    /// Opens the spool at this path, which may hold calls of a process that has exited.
    pub(super) fn open(base: Option<&Path>) -> io::Result<SpoolReplay> {
        let spool = base.map(Spool::open).transpose()?;
        Ok(SpoolReplay {
            spool: spool.map(|it| Arc::new(SharedSpool(Mutex::new(it)))),
            rows: VecDeque::new(),
            has_read: false,
            done_of_oldest: 0,
            inserting: None,
            not_before: Instant::now(),
            hurries: false,
            batch_rows: MAX_BATCH_ROWS,
            rejections: 0,
            done: 0,
        })
    }

    /// The spool, for the tasks of callers.
    pub(super) fn shared(&self) -> Option<Arc<SharedSpool>> {
        self.spool.clone()
    }

    fn lock(&self) -> Option<MutexGuard<'_, Spool>> {
        self.spool.as_ref().map(|it| it.lock())
    }

    /// Number of calls that are not in the database yet.
    pub(super) fn waiting(&self) -> u64 {
        self.spooled() - self.done
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0 && !self.has_read
    }

    /// Total number of calls that were spooled.
    pub(super) fn spooled(&self) -> u64 {
        self.lock().map_or(0, |it| it.spooled())
    }

    /// Number of those that are done: inserted or given up.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Size of the spool in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().map_or(0, |it| it.bytes())
    }

    /// Returns whether the spool has room for more calls.
    pub(super) fn has_room(&self) -> bool {
        self.lock().is_some_and(|mut it| it.has_room())
    }

    /// Appends calls to the spool. After it returns, they survive a kill of this process.
    pub(super) fn spool(&self, rows: Vec<CallRow>) -> io::Result<()> {
        self.lock().ok_or_else(|| io::Error::other("there is no folder for a spool"))?.append(rows)
    }

    /// Sets whether calls are inserted without collecting more.
    pub(super) fn set_hurry(&mut self, hurries: bool) {
        self.hurries = hurries;
    }

    /// Inserts the next calls when they are due. Cancel-safe: a later call continues the same insertion. Pass its
    /// result to [`SpoolReplay::settle`].
    pub(super) async fn insert_next(&mut self, store: &Store) -> Insertion {
        if self.inserting.is_none() {
            sleep_until(self.due()).await;
            let (rows, store) = (self.next_rows(), store.clone());
            self.inserting = Some(Box::pin(async move {
                let silent = |_| Err(StoreError::Open("the database does not answer".to_owned()));
                let count = rows.len();
                let inserted = timeout(INSERT_TIMEOUT, store.record_calls(rows)).await;
                (count, inserted.unwrap_or_else(silent))
            }));
        }
        match &mut self.inserting {
            Some(inserting) => inserting.await,
            None => future::pending().await,
        }
    }

    /// Processes the result of an insertion. Returns the reason if a call was given up because the database keeps
    /// rejecting it. A database that is `away` rejects nothing.
    pub(super) fn settle(&mut self, (count, result): Insertion, away: bool) -> Option<String> {
        self.inserting = None;
        let mut given_up = None;
        match result {
            Ok(()) => (self.batch_rows, self.rejections) = (MAX_BATCH_ROWS, 0),
            Err(StoreError::Engine(why)) if !away && count == 1 && self.rejections >= MAX_REJECTIONS => {
                self.rejections = 0;
                given_up = Some(why);
            }
            Err(_) => {
                if !away {
                    self.rejections += u32::from(count == 1);
                    self.batch_rows = (self.batch_rows / 2).max(1);
                }
                // The calls are read again from the file.
                self.rows.clear();
                self.has_read = false;
                self.not_before = Instant::now() + RETRY_PAUSE;
                return None;
            }
        }
        self.done += count as u64;
        self.done_of_oldest += count;
        if self.rows.is_empty() && self.has_read {
            self.remove_oldest();
        }
        given_up
    }

    /// Returns when to insert the next calls. Full files and the rest of a file are not held back.
    fn due(&self) -> Instant {
        let collects_since = self.lock().and_then(|it| it.collects_since());
        match collects_since {
            Some(since) if !self.has_read && !self.hurries => self.not_before.max(since + COLLECT_TIME),
            _ => self.not_before,
        }
    }

    /// Takes the next calls, from the spool's oldest file if there are none.
    fn next_rows(&mut self) -> Vec<CallRow> {
        let oldest = if self.has_read { None } else { self.lock().map(|mut it| it.read_oldest()) };
        if let Some(oldest) = oldest {
            match oldest {
                Ok(rows) => {
                    (self.rows, self.has_read) = (rows.into(), true);
                    self.rows.drain(..self.done_of_oldest.min(self.rows.len()));
                }
                Err(error) => self.fail("the spool cannot be read", &error),
            }
        }
        let rest = self.rows.split_off(self.batch_rows.min(self.rows.len()));
        std::mem::replace(&mut self.rows, rest).into()
    }

    /// Removes the file whose calls are now in the database.
    fn remove_oldest(&mut self) {
        let Some(mut spool) = self.lock() else { return };
        let removed = spool.remove_oldest();
        // The rows of a damaged file may be fewer than were counted.
        let done = spool.spooled() - spool.rows() as u64;
        drop(spool);
        match removed {
            Ok(()) => (self.has_read, self.done_of_oldest, self.done) = (false, 0, done),
            Err(error) => self.fail("the spool cannot be emptied", &error),
        }
    }

    fn fail(&mut self, what: &str, error: &io::Error) {
        tracing::error!(target: "wharf::journal", "{what}: {error}");
        self.not_before = Instant::now() + RETRY_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;
    use wharf_store::{CallFilter, Location};

    fn calls(numbers: std::ops::Range<usize>) -> Vec<CallRow> {
        numbers.map(|it| CallRow { request_id: format!("call-{it}").into(), ..CallRow::default() }).collect()
    }

    fn open(folder: &TempDir) -> SpoolReplay {
        SpoolReplay::open(Some(&folder.path().join("postgres"))).expect("the spool opens")
    }

    async fn insert_all(replay: &mut SpoolReplay, store: &Store) {
        while !replay.is_empty() {
            let insertion = replay.insert_next(store).await;
            replay.settle(insertion, false);
        }
    }

    #[tokio::test]
    async fn calls_of_a_killed_process_are_inserted_once_by_the_next() {
        let folder = TempDir::new().expect("a folder");
        let location = Location::Sqlite(folder.path().join("wharf.db"));
        let store = Store::open(&location).await.expect("the database opens");
        let killed = open(&folder);
        killed.spool(calls(0..1_700)).expect("they are written");
        store.record_calls(calls(0..3)).await.expect("they are written");
        drop(killed);

        let mut next = open(&folder);
        assert_eq!(next.waiting(), 1_700);
        next.spool(calls(1_700..1_710)).expect("they are written");
        insert_all(&mut next, &store).await;
        assert_eq!(next.waiting(), 0);
        let kept = store.list_calls(&CallFilter::default(), None, 2_000).await.expect("they are read");
        assert_eq!(kept.calls.len(), 1_710);
        drop(next);
        assert!(open(&folder).is_empty(), "nothing is left behind");
    }

    /// After a rejection the batches get smaller, and in the end the one rejected call is given up.
    #[tokio::test(start_paused = true)]
    async fn only_a_call_that_the_database_keeps_rejecting_is_given_up() {
        let folder = TempDir::new().expect("a folder");
        let mut replay = open(&folder);
        replay.spool(calls(0..2)).expect("they are written");
        let (mut lost, mut tries) = (0, 0);
        while !replay.is_empty() {
            let rows = replay.next_rows();
            let rejected = || StoreError::Engine("it is rejected".to_owned());
            // Only the first call is rejected.
            let has_first = rows.iter().any(|it| &*it.request_id == "call-0");
            let (count, result) = (rows.len(), if has_first { Err(rejected()) } else { Ok(()) });
            let given_up = replay.settle((count, result), false);
            tries += 1;
            assert!(given_up.is_none() || (has_first && count == 1));
            lost += usize::from(given_up.is_some());
        }
        assert_eq!(lost, 1);
        assert!(tries > MAX_REJECTIONS as usize, "{tries}");
        let mut away = open(&folder);
        away.spool(calls(0..1)).expect("they are written");
        for _ in 0..3 * MAX_REJECTIONS {
            let count = away.next_rows().len();
            away.settle((count, Err(StoreError::Engine("it is away".to_owned()))), true);
        }
        assert_eq!(away.waiting(), 1, "a database that is away rejects nothing");
    }
}
