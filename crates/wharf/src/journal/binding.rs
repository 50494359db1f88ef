//! Calls that are spooled at once and brought into the database a moment later, many at a time.

use super::{
    entry::{self, Entry},
    spool::{Left, Load, Spool},
};
use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};
use wharf_store::{CallRow, Store};

/// How long a call may wait in the spool.
const SOON: Duration = Duration::from_millis(250);

/// How much may wait in it before it is brought in.
const ENOUGH: Load = Load { bytes: 4 << 20, entries: 2_048 };

/// How many bytes it may hold before callers have to wait for it.
const FULL: u64 = 64 << 20;

/// How long those who wait for it are kept.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most that are brought in at once, so that others get at the database in between.
const BATCH: usize = 2_048;

/// How long the pause is before another try, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often it is tried when we are leaving: what is not brought in then waits for the next start.
const LAST_TRIES: u32 = 3;

/// The way into the database by the spool.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    spool: Arc<Mutex<Spool>>,
    asks: mpsc::UnboundedSender<Ask>,
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
    ) -> Result<(Binding, impl Future<Output = ()> + Send + 'static), String> {
        let trouble = |error: io::Error| {
            let folder = database.parent().unwrap_or(database).display().to_string();
            format!("calls cannot be spooled in `{folder}`: {error}\nhelp: see that wharf may write there")
        };
        for left in Left::beside(database).map_err(trouble)? {
            let rows: Vec<CallRow> = entry::read(&left.read().map_err(trouble)?).collect();
            for batch in rows.chunks(BATCH) {
                store.record_calls(batch).await.map_err(|error| error.to_string())?;
            }
            left.forget().map_err(trouble)?;
        }
        let spool = Arc::new(Mutex::new(Spool::beside(database).map_err(trouble)?));
        let (asks, asked) = mpsc::unbounded_channel();
        let writing = Binder { store, spool: spool.clone() }.run(asked);
        Ok((Binding { spool, asks }, writing))
    }

    /// Spools a call. When it comes back, the call survives us.
    pub(super) async fn keep(&self, entry: &Entry<'_>) {
        let load = self.append(entry);
        let ask = match load {
            Load { entries: 1, .. } => Some(Ask::Begun),
            // Asked for once: the page is turned after that.
            load if load.entries == ENOUGH.entries || load.bytes >= ENOUGH.bytes => Some(Ask::Enough),
            _ => None,
        };
        ask.into_iter().for_each(|it| _ = self.asks.send(it));
        if load.bytes >= FULL {
            self.settle().await;
        }
    }

    fn append(&self, entry: &Entry<'_>) -> Load {
        let mut bytes = Vec::with_capacity(512);
        entry.write(&mut bytes);
        lock(&self.spool).append(&bytes).unwrap_or_else(|error| {
            tracing::error!(target: "wharf::journal", "a call could not be written down: {error}");
            Load::default()
        })
    }

    /// Comes back when everything that was spooled is in the database, or is not for a good while.
    pub(super) async fn settle(&self) {
        let (settled, safe) = oneshot::channel();
        if self.asks.send(Ask::Settle(settled)).is_ok() {
            let _ = time::timeout(PATIENCE, safe).await;
        }
    }
}

/// Brings calls in.
struct Binder {
    store: Store,
    spool: Arc<Mutex<Spool>>,
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
                Ok(page) => self.bind(&page).await,
                Err(error) => Err(error.to_string()),
            };
            let Err(error) = done else { return };
            tried += 1;
            tracing::error!(target: "wharf::journal", tried, "calls wait in the spool: {error}");
            if tries.is_some_and(|most| tried >= most) {
                return;
            }
            time::sleep((PAUSE * 2_u32.saturating_pow(tried)).min(LONGEST_PAUSE)).await;
        }
    }

    async fn bind(&self, page: &[u8]) -> Result<(), String> {
        let rows: Vec<CallRow> = entry::read(page).collect();
        for batch in rows.chunks(BATCH) {
            self.store.record_calls(batch).await.map_err(|error| error.to_string())?;
        }
        lock(&self.spool).forget().map_err(|error| error.to_string())
    }
}

fn lock(spool: &Mutex<Spool>) -> MutexGuard<'_, Spool> {
    spool.lock().unwrap_or_else(PoisonError::into_inner)
}
