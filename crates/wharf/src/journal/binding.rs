//! The journal writer for SQLite: appends calls to the spool at once and moves them into the database in batches.

#[cfg(test)]
mod tests;

use super::{
    Reach,
    entry::{self, Entry},
    gather,
    spool::{Left, Load, Spool},
    unspoolable,
};
use std::{
    io,
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};
use wharf_store::Store;

/// Maximum time that a call stays in the spool before it is moved.
const SOON: Duration = Duration::from_millis(250);

/// Amount of spooled data that triggers a move before [`SOON`] has passed.
const ENOUGH: Load = Load { bytes: 4 << 20, entries: 2_048 };

/// Size of the spool in bytes above which the spooler waits for the database before it accepts more calls.
const FULL: u64 = 64 << 20;

/// Maximum time to wait for spooled calls to be moved.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a move may take before the database counts as stuck. No request waits for a stuck database.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Pause between checks whether the spool has room again.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// The first and the longest pause between attempts.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Number of attempts at shutdown. Calls that are still in the spool are recovered at the next start.
const LAST_TRIES: u32 = 3;

/// Handle to the SQLite journal writer.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pending: Arc<Mutex<Pending>>,
    /// Wakes the spooler when calls are pending.
    pends: mpsc::UnboundedSender<()>,
    asks: mpsc::UnboundedSender<Ask>,
    reach: Arc<Reach>,
}

/// The next write to the spool, and the callers that wait for it.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Receive whether the call was spooled.
    waiting: Vec<oneshot::Sender<bool>>,
}

/// Messages to the task that moves calls into the database.
#[derive(Debug)]
enum Ask {
    /// The spool is no longer empty.
    Begun,
    /// The spool holds enough for a batch.
    Enough,
    /// A reader needs all spooled calls in the database.
    Settle(oneshot::Sender<()>),
}

impl Binding {
    /// Moves calls of earlier processes into the database, then opens a new spool. Returns the handle and the writer
    /// task.
    pub(super) async fn open(
        store: Store,
        database: &Path,
        reach: Arc<Reach>,
    ) -> Result<(Binding, impl Future<Output = ()> + Send + 'static), String> {
        let trouble = |error: io::Error| unspoolable(database.parent().unwrap_or(database), &error);
        for left in Left::beside(database).map_err(trouble)? {
            bind(&store, left.read().map_err(trouble)?).await?;
            left.forget().map_err(trouble)?;
        }
        let spool = Arc::new(Mutex::new(Spool::beside(database).map_err(trouble)?));
        let (asks, asked) = mpsc::unbounded_channel();
        let (pends, pended) = mpsc::unbounded_channel();
        let pending = Arc::<Mutex<Pending>>::default();
        let spooler = Spooler {
            pending: pending.clone(),
            spool: spool.clone(),
            asks: asks.clone(),
            reach: reach.clone(),
        };
        let spooling = spooler.run(pended);
        let binding = Binder { store, spool, reach: reach.clone() }.run(asked);
        let writing = async { _ = tokio::join!(spooling, binding) };
        Ok((Binding { pending, pends, asks, reach }, writing))
    }

    /// Spools a call and returns whether that succeeded. If so, the call survives a crash of this process.
    pub(super) async fn keep(&self, entry: &Entry<'_>) -> bool {
        self.spool(|out| entry.write(out)).await
    }

    async fn spool(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let (written, safe) = oneshot::channel();
        let first = {
            let mut pending = lock(&self.pending);
            write(&mut pending.bytes);
            pending.waiting.push(written);
            pending.waiting.len() == 1
        };
        if first {
            let _ = self.pends.send(());
        }
        safe.await.unwrap_or(false)
    }

    /// Waits until all spooled calls are in the database, for at most [`PATIENCE`]. Returns at once if the database
    /// is stuck.
    pub(super) async fn settle(&self) {
        if !self.reach.is_away() {
            settle(&self.asks).await;
        }
    }
}

async fn settle(asks: &mpsc::UnboundedSender<Ask>) {
    let (settled, safe) = oneshot::channel();
    if asks.send(Ask::Settle(settled)).is_ok() {
        let _ = time::timeout(PATIENCE, safe).await;
    }
}

/// Appends calls to the spool; calls that end at about the same time share one write.
struct Spooler {
    pending: Arc<Mutex<Pending>>,
    spool: Arc<Mutex<Spool>>,
    asks: mpsc::UnboundedSender<Ask>,
    reach: Arc<Reach>,
}

impl Spooler {
    async fn run(self, mut pends: mpsc::UnboundedReceiver<()>) {
        loop {
            tokio::select! {
                pended = pends.recv() => match pended {
                    Some(()) => self.spool_pending().await,
                    None => return,
                },
                // Probes the spool, because no calls may arrive to do so while `/ready` reports that the journal is
                // full.
                () = time::sleep(PROBE_PAUSE), if self.reach.is_full() => {
                    let has_room = lock(&self.spool).has_room();
                    self.reach.set_full(!has_room);
                }
            }
        }
    }

    async fn spool_pending(&self) {
        gather(0, || lock(&self.pending).waiting.len()).await;
        let Pending { bytes, waiting } = std::mem::take(&mut *lock(&self.pending));
        let load = self.append(&bytes, waiting.len());
        waiting.into_iter().for_each(|it| _ = it.send(load.is_some()));
        if load.is_some_and(|it| it.bytes >= FULL) && !self.reach.is_away() {
            settle(&self.asks).await;
        }
    }

    /// Appends entries and returns the load of the spool, or `None` if the write failed.
    fn append(&self, bytes: &[u8], entries: usize) -> Option<Load> {
        let (appended, waiting) = {
            let mut spool = lock(&self.spool);
            (spool.append(bytes, entries), spool.waiting())
        };
        self.reach.set_full(appended.is_err());
        let load = appended.inspect_err(|error| self.reach.lose(entries, error)).ok()?;
        if self.reach.is_away() {
            self.reach.set_waiting(waiting);
        }
        let ask = match load {
            load if load.entries == entries => Some(Ask::Begun),
            load if load.entries >= ENOUGH.entries || load.bytes >= ENOUGH.bytes => Some(Ask::Enough),
            _ => None,
        };
        ask.into_iter().for_each(|it| _ = self.asks.send(it));
        Some(load)
    }
}

/// Moves spooled calls into the database.
struct Binder {
    store: Store,
    spool: Arc<Mutex<Spool>>,
    reach: Arc<Reach>,
}

impl Binder {
    async fn run(self, mut asks: mpsc::UnboundedReceiver<Ask>) {
        let mut settling = Vec::new();
        while let Some(ask) = asks.recv().await {
            match ask {
                Ask::Begun => self.wait(&mut asks, &mut settling).await,
                Ask::Enough => {}
                Ask::Settle(told) => settling.push(told),
            }
            self.bring_in(None).await;
            settling.drain(..).for_each(|told| _ = told.send(()));
        }
        self.bring_in(Some(LAST_TRIES)).await;
    }

    /// Waits for more calls, until there are enough, a reader asks for them, or [`SOON`] has passed.
    async fn wait(&self, asks: &mut mpsc::UnboundedReceiver<Ask>, settling: &mut Vec<oneshot::Sender<()>>) {
        let more = async {
            loop {
                match asks.recv().await {
                    Some(Ask::Begun) => {}
                    Some(Ask::Enough) | None => return None,
                    Some(Ask::Settle(told)) => return Some(told),
                }
            }
        };
        if let Ok(Some(told)) = time::timeout(SOON, more).await {
            settling.push(told);
        }
    }

    /// Moves everything spooled so far into the database. Retries until it succeeds, or up to `tries` times.
    async fn bring_in(&self, tries: Option<u32>) {
        let mut tried = 0;
        loop {
            let page = lock(&self.spool).turn();
            let done = match page {
                Ok(page) => self.bind(page).await,
                Err(error) => Err(error.to_string()),
            };
            let Err(error) = done else { return };
            tried += 1;
            self.is_stuck(&error);
            if tries.is_some_and(|most| tried >= most) {
                return;
            }
            time::sleep((PAUSE * 2_u32.saturating_pow(tried)).min(LONGEST_PAUSE)).await;
        }
    }

    /// Moves one page into the database. If that takes too long, the database counts as away until it is done.
    async fn bind(&self, page: Vec<u8>) -> Result<(), String> {
        let mut binding = pin!(bind(&self.store, page));
        let bound = match time::timeout(STUCK_AFTER, &mut binding).await {
            Ok(bound) => bound,
            Err(_) => {
                self.is_stuck("the database takes too long over them");
                binding.await
            }
        };
        bound?;
        lock(&self.spool).forget().map_err(|error| error.to_string())?;
        if self.reach.set_away(false) {
            self.reach.set_waiting(0);
            tracing::info!(target: "wharf::journal", "all calls are in the database again");
        }
        Ok(())
    }

    fn is_stuck(&self, why: &str) {
        self.reach.set_waiting(lock(&self.spool).waiting());
        if self.reach.set_away(true) {
            tracing::error!(target: "wharf::journal", "calls wait in the spool: {why}");
        }
    }
}

/// Inserts the calls of one page.
async fn bind(store: &Store, page: Vec<u8>) -> Result<(), String> {
    store.record_page(page, entry::read).await.map_err(|error| error.to_string())
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
