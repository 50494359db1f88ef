//! Calls that are spooled at once and brought into the database a moment later, many at a time.

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

/// How long a call may wait in the spool.
const SOON: Duration = Duration::from_millis(250);

/// How much may wait in it before it is brought in.
const ENOUGH: Load = Load { bytes: 4 << 20, entries: 2_048 };

/// How many bytes it may hold before callers have to wait for it.
const FULL: u64 = 64 << 20;

/// How long those who wait for it are kept.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the database may take over calls before it counts as stuck. Nobody waits for a database that is.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// How soon it is tried again whether calls can be spooled.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// How long the pause is before another try, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often it is tried when we are leaving: what is not brought in then waits for the next start.
const LAST_TRIES: u32 = 3;

/// The way into the database by the spool.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pending: Arc<Mutex<Pending>>,
    /// Told when there is something pending.
    pends: mpsc::UnboundedSender<()>,
    asks: mpsc::UnboundedSender<Ask>,
    reach: Arc<Reach>,
}

/// What is to be spooled next, and who waits for it.
#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Told whether the call was spooled.
    waiting: Vec<oneshot::Sender<bool>>,
}

/// What the one who brings calls in is told.
#[derive(Debug)]
enum Ask {
    /// There is something now.
    Begun,
    /// There is enough of it.
    Enough,
    /// Somebody wants to read all there is.
    Settle(oneshot::Sender<()>),
}

impl Binding {
    /// Brings in what was left behind, and opens a spool.
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

    /// Spools a call, and says whether that was possible. When it comes back, the call survives us.
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

    /// Comes back when everything that was spooled is in the database, or is not for a good while. A database that is stuck
    /// is not waited for.
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

/// Spools calls: those that end at about the same time with one write.
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
                // Nobody may call while `/ready` says that calls cannot be written down.
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

    /// What the spool holds then; nothing if it did not take them.
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

/// Brings calls in.
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

    /// Lets more come, until there is enough or somebody wants it.
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

    /// Brings in everything that was spooled up to now, however often it takes.
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

    /// Brings a page in. A database that takes long over it counts as away until it has done it.
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

/// Brings in what is on a page.
async fn bind(store: &Store, page: Vec<u8>) -> Result<(), String> {
    store.record_page(page, entry::read).await.map_err(|error| error.to_string())
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
