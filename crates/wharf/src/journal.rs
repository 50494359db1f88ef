//! The journal of calls: a call that was answered is written down before its caller hears of it.
//!
//! Calls that end at about the same time share one write and one sync of the disk, so the journal costs a caller a
//! moment and the machine little. A call whose caller left is written down too.

use crate::{metrics::Metrics, telemetry::Telemetry};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};
use wharf_runtime::{CallRecord, Handle, Happening, Outcome};
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

/// Writes calls down.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    entries: mpsc::Sender<Entry>,
    store: Store,
    metrics: Arc<Metrics>,
    telemetry: Telemetry,
}

#[derive(Debug)]
struct Entry {
    row: CallRow,
    /// Told when it is safe, or never will be.
    written: Option<oneshot::Sender<()>>,
}

impl Journal {
    /// A journal in this database, and the task that writes it: it ends when the journal is dropped.
    pub(crate) fn new(store: Store) -> (Journal, impl Future<Output = ()> + Send + 'static) {
        let (entries, written) = mpsc::channel(QUEUE);
        let (metrics, telemetry) = (Arc::default(), Telemetry::default());
        (Journal { entries, store: store.clone(), metrics, telemetry }, write(store, written))
    }

    /// With traces.
    pub(crate) fn traced(self, telemetry: Telemetry) -> Journal {
        Journal { telemetry, ..self }
    }

    /// Where spans are handed in.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Where calls are looked up.
    pub(crate) fn store(&self) -> &Store {
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
        let (written, safe) = oneshot::channel();
        let entry = Entry { row: row(record, door), written: Some(written) };
        if self.entries.send(entry).await.is_ok() {
            let _ = safe.await;
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
                let entry = Entry { row: row(&record, "gone"), written: None };
                let _ = self.entries.send(entry).await;
            }
        }
    }
}

async fn write(store: Store, mut entries: mpsc::Receiver<Entry>) {
    let mut batch = Vec::with_capacity(BATCH);
    while entries.recv_many(&mut batch, BATCH).await > 0 {
        gather(&mut entries, &mut batch).await;
        let (rows, written): (Vec<CallRow>, Vec<_>) = batch.drain(..).map(|it| (it.row, it.written)).unzip();
        keep(&store, &rows).await;
        written.into_iter().flatten().for_each(|it| _ = it.send(()));
    }
}

/// A write costs about the same for one call as for ten. So those that are just ending are let in, as long as more
/// come: a call that is alone waits for nobody.
async fn gather(entries: &mut mpsc::Receiver<Entry>, batch: &mut Vec<Entry>) {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
        let before = batch.len();
        while batch.len() < BATCH
            && let Ok(entry) = entries.try_recv()
        {
            batch.push(entry);
        }
        if batch.len() == before {
            return;
        }
    }
}

/// Tries more than once; what cannot be written then is lost, and loudly.
async fn keep(store: &Store, rows: &[CallRow]) {
    for tried in 1..=TRIES {
        match store.record_calls(rows).await {
            Ok(()) => return,
            Err(error) if tried == TRIES => {
                let calls = rows.len();
                tracing::error!(target: "wharf::journal", calls, "calls could not be written down: {error}");
            }
            Err(_) => time::sleep(PAUSE * tried).await,
        }
    }
}

fn row(record: &CallRecord, door: &str) -> CallRow {
    let micros = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let text = |raw: wharf_mcp::Raw| raw.as_str().to_owned();
    let result = match &record.outcome {
        Outcome::Answered(result) => Some(text(record.redacted(result))),
        Outcome::Refused(_) | Outcome::Failed(_) => None,
    };
    let error_type = match &record.outcome {
        Outcome::Answered(_) => None,
        Outcome::Refused(_) => Some("ToolError".to_owned()),
        Outcome::Failed(fault) => Some(fault.kind.as_str().to_owned()),
    };
    CallRow {
        request_id: record.request_id.to_string(),
        thread_id: record.thread_id.clone(),
        source: record.source.as_deref().unwrap_or_default().to_owned(),
        tool_name: record.wire_name.as_ref().unwrap_or(&record.tool).clone(),
        parameters: record.parameters().map_or_else(|| "{}".to_owned(), text),
        execution_start: i64::try_from(micros(record.started)).unwrap_or(i64::MAX),
        execution_duration_ms: record.took.as_secs_f64() * 1_000.0,
        status: record.status().as_str().to_owned(),
        result,
        error: record.error_text(),
        error_type,
        door: Some(door.to_owned()),
        principal: record.principal.as_deref().map(str::to_owned),
    }
}
