//! Calls that PostgreSQL has not accepted: they stay in the spool and are inserted once the database accepts them
//! again.
//!
//! A call may be inserted twice but is never skipped: the database identifies it by its request id and stores it
//! once.

use super::{
    entry,
    spool::{Left, Spool},
    through::BATCH,
};
use std::{collections::VecDeque, future::Future, io, path::Path, pin::Pin, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};
use wharf_store::{CallRow, Store, StoreError};

/// Timeout for inserting spooled calls. No caller waits for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause before the next attempt.
const AGAIN: Duration = Duration::from_millis(250);

/// How often a reachable database may reject a single call before that call is given up.
const TRIES: u32 = 20;

/// The calls that have to be inserted, and the state of the insertion.
pub(super) struct Backlog {
    /// Missing if there is no folder for it.
    spool: Option<Spool>,
    /// Calls read from the spool and not inserted yet.
    page: VecDeque<CallRow>,
    /// The insertion in progress, and its number of calls.
    draining: Option<(Draining, usize)>,
    /// Whether the spool has to be truncated once the page is inserted.
    turned: bool,
    again: Instant,
    /// Number of calls per insert. It is halved after a rejection, to isolate the call that the database rejects.
    portion: usize,
    refusals: u32,
}

type Draining = Pin<Box<dyn Future<Output = Drained> + Send>>;

/// The calls of an insertion, and its result.
pub(super) type Drained = (Vec<CallRow>, Result<(), StoreError>);

impl Backlog {
    /// Creates a backlog with a spool at this path, and adopts the calls in spools whose owner has exited.
    pub(super) fn beside(path: Option<&Path>) -> io::Result<Backlog> {
        let mut backlog = Backlog {
            spool: None,
            page: VecDeque::new(),
            draining: None,
            turned: false,
            again: Instant::now(),
            portion: BATCH,
            refusals: 0,
        };
        let Some(path) = path else { return Ok(backlog) };
        let left = Left::beside(path)?;
        backlog.spool = Some(Spool::beside(path)?);
        for left in left {
            let rows: Vec<CallRow> = entry::read(&left.read()?).map(CallRow::from).collect();
            backlog.add(&rows)?;
            left.forget()?;
        }
        Ok(backlog)
    }

    /// Number of calls that are not in the database yet.
    pub(super) fn waiting(&self) -> u64 {
        let draining = self.draining.as_ref().map_or(0, |(_, calls)| *calls);
        let spooled = self.spool.as_ref().map_or(0, |it| it.load().entries);
        (spooled + self.page.len() + draining) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0 && !self.turned
    }

    /// Appends calls to the spool. After it returns, they survive a crash of this process.
    pub(super) fn add(&mut self, rows: &[CallRow]) -> io::Result<()> {
        if self.is_empty() {
            self.again = Instant::now() + AGAIN;
        }
        let spool = self.spool.as_mut().ok_or_else(|| io::Error::other("there is no folder for a spool"))?;
        let mut bytes = Vec::with_capacity(512 * rows.len());
        rows.iter().for_each(|row| entry::write_row(row, &mut bytes));
        spool.append(&bytes, rows.len()).map(drop)
    }

    /// Inserts the next calls. Cancel-safe: a later call continues the same insertion. Pass its result to
    /// [`Backlog::settle`].
    pub(super) async fn drain(&mut self, store: &Store) -> Drained {
        if self.draining.is_none() {
            let rows = self.take();
            let (calls, store, again) = (rows.len(), store.clone(), self.again);
            let draining = async move {
                sleep_until(again).await;
                let silent = || Err(StoreError::Open("the database does not answer".to_owned()));
                let outcome = timeout(PATIENCE, store.record_calls(rows.iter().cloned())).await;
                (rows, outcome.unwrap_or_else(|_| silent()))
            };
            self.draining = Some((Box::pin(draining), calls));
        }
        match &mut self.draining {
            Some((draining, _)) => draining.await,
            None => (Vec::new(), Ok(())),
        }
    }

    /// Processes the result of an insertion. Returns the reason if a call was given up because the database keeps
    /// rejecting it.
    pub(super) fn settle(&mut self, (rows, outcome): Drained, away: bool) -> Option<String> {
        self.draining = None;
        let alone = rows.len() == 1;
        let mut given_up = None;
        match outcome {
            Ok(()) => (self.portion, self.refusals) = (BATCH, 0),
            Err(StoreError::Engine(why)) if !away && alone && self.refusals >= TRIES => {
                self.refusals = 0;
                given_up = Some(why);
            }
            Err(_) => {
                self.again = Instant::now() + AGAIN;
                if !away {
                    self.refusals += u32::from(alone);
                    self.portion = (self.portion / 2).max(1);
                }
                rows.into_iter().rev().for_each(|it| self.page.push_front(it));
            }
        }
        if self.page.is_empty() && self.turned {
            self.forget();
        }
        given_up
    }

    /// Returns whether the spool has room for more calls.
    pub(super) fn has_room(&mut self) -> bool {
        self.spool.as_mut().is_some_and(Spool::has_room)
    }

    /// Takes the next calls to insert, from the spool if the page is empty.
    fn take(&mut self) -> Vec<CallRow> {
        if self.page.is_empty()
            && let Some(spool) = &mut self.spool
        {
            match spool.turn() {
                Ok(page) => {
                    (self.page, self.turned) = (entry::read(&page).map(CallRow::from).collect(), true)
                }
                Err(error) => {
                    tracing::error!(target: "wharf::journal", "the spool cannot be read: {error}");
                    self.again = Instant::now() + AGAIN;
                }
            }
        }
        self.page.drain(..self.portion.min(self.page.len())).collect()
    }

    /// Truncates the part of the spool that is now in the database.
    fn forget(&mut self) {
        match self.spool.as_mut().map_or(Ok(()), Spool::forget) {
            Ok(()) => self.turned = false,
            Err(error) => {
                tracing::error!(target: "wharf::journal", "the spool cannot be emptied: {error}");
                self.again = Instant::now() + AGAIN;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;
    use wharf_store::{CallFilter, Location};

    fn calls(numbers: std::ops::Range<usize>) -> Vec<CallRow> {
        numbers.map(|it| CallRow { request_id: format!("call-{it}"), ..CallRow::default() }).collect()
    }

    async fn drain_all(backlog: &mut Backlog, store: &Store) {
        while !backlog.is_empty() {
            let drained = backlog.drain(store).await;
            backlog.settle(drained, false);
        }
    }

    /// A later process adopts the spool of a killed one, and a call that is inserted twice is stored once.
    #[tokio::test]
    async fn what_waits_is_brought_in_once_by_whoever_is_left() {
        let folder = TempDir::new().expect("a folder");
        let location = Location::Sqlite(folder.path().join("wharf.db"));
        let store = Store::open(&location).await.expect("the database opens");
        let place = folder.path().join("postgres");
        let mut killed = Backlog::beside(Some(&place)).expect("a backlog");
        killed.add(&calls(0..700)).expect("they are written");
        store.record_calls(calls(0..3)).await.expect("they are written");
        drop(killed);

        let mut next = Backlog::beside(Some(&place)).expect("a backlog");
        assert_eq!(next.waiting(), 700);
        next.add(&calls(700..710)).expect("they are written");
        drain_all(&mut next, &store).await;
        assert_eq!(next.waiting(), 0);
        let kept = store.list_calls(&CallFilter::default(), None, 1_000).await.expect("they are read");
        assert_eq!(kept.calls.len(), 710);
        drop(next);
        let left = Backlog::beside(Some(&place)).expect("a backlog");
        assert!(left.is_empty(), "nothing is left behind");
    }

    /// After a rejection the batches get smaller, and in the end the one rejected call is given up.
    #[tokio::test(start_paused = true)]
    async fn what_nobody_can_keep_holds_up_nobody_for_ever() {
        let folder = TempDir::new().expect("a folder");
        let mut backlog = Backlog::beside(Some(&folder.path().join("postgres"))).expect("a backlog");
        backlog.add(&calls(0..2)).expect("they are written");
        let (mut lost, mut tries) = (0, 0);
        while !backlog.is_empty() {
            let rows = backlog.take();
            let before = backlog.waiting();
            let refused = || StoreError::Engine("it is refused".to_owned());
            // Only the first call is rejected.
            let poisoned = rows.iter().any(|it| it.request_id == "call-0");
            let (count, outcome) = (rows.len(), if poisoned { Err(refused()) } else { Ok(()) });
            let given_up = backlog.settle((rows, outcome), false);
            tries += 1;
            assert_eq!(given_up.is_some(), poisoned && count == 1 && backlog.waiting() == before);
            lost += usize::from(given_up.is_some());
        }
        assert_eq!(lost, 1);
        assert!(tries > TRIES as usize, "{tries}");
        let mut away = Backlog::beside(Some(&folder.path().join("postgres"))).expect("a backlog");
        away.add(&calls(0..1)).expect("they are written");
        for _ in 0..3 * TRIES {
            let rows = away.take();
            away.settle((rows, Err(StoreError::Engine("nobody is there".to_owned()))), true);
        }
        assert_eq!(away.waiting(), 1, "a database that is away refuses nothing");
    }
}
