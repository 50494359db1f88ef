//! Calls that go straight into the database, in batches.

use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot},
    time,
};
use wharf_store::{CallRow, Store};

/// How many calls may wait to be written down.
const QUEUE: usize = 4_096;

/// The most that are written at once.
const BATCH: usize = 512;

/// How often others are let in before a write.
const TURNS: usize = 16;

/// How often a write is tried, and how long the pause between is.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// The way into the database.
#[derive(Clone, Debug)]
pub(super) struct Through {
    rows: mpsc::Sender<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    row: CallRow,
    /// Told when it is safe, or never will be.
    written: Option<oneshot::Sender<()>>,
}

impl Through {
    pub(super) fn open(store: Store) -> (Through, impl Future<Output = ()> + Send + 'static) {
        let (rows, waiting) = mpsc::channel(QUEUE);
        (Through { rows }, write(store, waiting))
    }

    /// Writes a call down, and comes back when it is safe.
    pub(super) async fn keep(&self, row: CallRow) {
        let (written, safe) = oneshot::channel();
        if self.rows.send(Waiting { row, written: Some(written) }).await.is_ok() {
            let _ = safe.await;
        }
    }

    /// Writes a call down that nobody waits for.
    pub(super) async fn note(&self, row: CallRow) {
        let _ = self.rows.send(Waiting { row, written: None }).await;
    }
}

async fn write(store: Store, mut waiting: mpsc::Receiver<Waiting>) {
    let mut batch = Vec::with_capacity(BATCH);
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        gather(&mut waiting, &mut batch).await;
        let (rows, written): (Vec<CallRow>, Vec<_>) = batch.drain(..).map(|it| (it.row, it.written)).unzip();
        keep(&store, rows).await;
        written.into_iter().flatten().for_each(|it| _ = it.send(()));
    }
}

/// A write costs about the same for one call as for ten. So those that are just ending are let in, as long as more
/// come: a call that is alone waits for nobody.
async fn gather(waiting: &mut mpsc::Receiver<Waiting>, batch: &mut Vec<Waiting>) {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
        let before = batch.len();
        while batch.len() < BATCH
            && let Ok(entry) = waiting.try_recv()
        {
            batch.push(entry);
        }
        if batch.len() == before {
            return;
        }
    }
}

/// Tries more than once; what cannot be written then is lost, and loudly.
async fn keep(store: &Store, rows: Vec<CallRow>) {
    for tried in 1..=TRIES {
        match store.record_calls(&rows).await {
            Ok(()) => return,
            Err(error) if tried == TRIES => {
                let calls = rows.len();
                tracing::error!(target: "wharf::journal", calls, "calls could not be written down: {error}");
            }
            Err(_) => time::sleep(PAUSE * tried).await,
        }
    }
}
