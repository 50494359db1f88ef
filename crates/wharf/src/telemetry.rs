//! Traces for OpenTelemetry: a span for each request at our door, and one for each call that it led to.
//!
//! Written from what is known anyway when a request or a call is over, and sent by one task in batches, as OTLP in JSON
//! over HTTP. Nobody waits for it: what the collector does not take in time is dropped and counted. When it is off, a
//! request costs one look at an `Option`.

mod ask;
mod config;
mod export;
mod otlp;
mod span;
mod visit;

pub(crate) use ask::Asked;
pub(crate) use config::Config;
pub(crate) use export::Exporter;
use span::Span;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;
use wharf_runtime::{CallRecord, Handle, Happening, Trace};

/// How many spans may wait to be sent; of more, the newest are dropped.
const QUEUE: usize = 4_096;

tokio::task_local! {
    /// The request that this task answers.
    static CURRENT: Trace;
}

/// Where spans are handed in; cheap to clone, and does nothing if it is off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    spans: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
    /// How many of the traces that begin here are written down.
    ratio: f64,
    /// Its end tells the exporter that nothing more will come.
    _alive: watch::Sender<()>,
}

impl Telemetry {
    /// Hands spans to an exporter, which has to be run. Without a configuration there is neither.
    pub(crate) fn new(config: Option<Config>) -> (Telemetry, Option<Exporter>) {
        let Some(config) = config else { return (Telemetry::default(), None) };
        let (spans, taken) = mpsc::channel(QUEUE);
        let (_alive, alive) = watch::channel(());
        let dropped = Arc::<AtomicU64>::default();
        let inner = Inner { spans, dropped: dropped.clone(), ratio: config.ratio, _alive };
        (Telemetry(Some(Arc::new(inner))), Some(Exporter::new(config, taken, dropped, alive)))
    }

    /// Writes down a call to a source that is over, if it is part of a trace.
    pub(crate) fn called(&self, record: &CallRecord) {
        if let (Some(inner), Some(trace)) = (&self.0, &record.trace)
            && trace.sampled
            && record.source.is_some()
        {
            inner.take(Span::of_call(record, trace.clone()));
        }
    }

    /// Writes down every call, for those who have no journal that does.
    pub(crate) async fn follow(self, handle: Handle) {
        let mut events = handle.events();
        while let Some(event) = events.next().await {
            if let Happening::Called(record) = event.what {
                self.called(&record);
            }
        }
    }
}

impl Inner {
    fn take(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A new span: part of the caller's trace, if it names one, else the first of a trace of its own.
    fn begin(&self, caller: Option<Trace>) -> Trace {
        match caller {
            Some(caller) => child(&caller),
            None => {
                let id = Uuid::new_v4().into_bytes();
                Trace { id, span: span_id(), parent: None, sampled: is_sampled(&id, self.ratio), state: None }
            }
        }
    }
}

/// The span of a call that is about to be made for the request that this task answers.
pub(crate) fn call() -> Option<Trace> {
    CURRENT.try_with(child).ok()
}

fn child(parent: &Trace) -> Trace {
    Trace { span: span_id(), parent: Some(parent.span), ..parent.clone() }
}

fn span_id() -> [u8; 8] {
    let mut id = [0; 8];
    // The first half is random but for its version, which is never zero.
    id.copy_from_slice(&Uuid::new_v4().as_bytes()[..8]);
    id
}

/// The same for everybody who sees the trace.
fn is_sampled(id: &[u8; 16], ratio: f64) -> bool {
    let mut low = [0; 8];
    low.copy_from_slice(&id[8..]);
    // The variant of a UUID stands in the two highest bits, so the others decide.
    let part = (u64::from_be_bytes(low) << 2) as f64 / u64::MAX as f64;
    part < ratio || ratio >= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_as_many_as_wanted_are_sampled() {
        for (ratio, expected) in [(0.0, 0..=0), (1.0, 2_000..=2_000), (0.25, 400..=600)] {
            let sampled = (0..2_000).filter(|_| is_sampled(Uuid::new_v4().as_bytes(), ratio)).count();
            assert!(expected.contains(&sampled), "{sampled} of 2000 at {ratio}");
        }
    }
}
