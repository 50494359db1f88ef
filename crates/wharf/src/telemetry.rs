//! OpenTelemetry traces: a span for each request of a client, and one for each call to a source.
//!
//! Spans are built when a request or call completes. One task exports them in batches, as OTLP/JSON over HTTP. No
//! request waits for the export: spans that the collector does not accept in time are dropped and counted. When
//! traces are disabled, a request costs only the check of an `Option`.

mod config;
mod export;
mod otlp;
mod request_span;
mod source_request;
mod span;

pub(crate) use config::TelemetryConfig;
pub(crate) use export::Exporter;
pub(crate) use source_request::SourceRequest;
use span::Span;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;
use wharf_runtime::{CallRecord, EventKind, Handle, Trace};

/// Maximum number of queued spans. When the queue is full, new ones are dropped.
const MAX_QUEUED_SPANS: usize = 4_096;

tokio::task_local! {
    /// The trace of the request that this task handles.
    static CURRENT_TRACE: Trace;
}

/// Handle that accepts spans. Cheap to clone; does nothing if traces are disabled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry(Option<Arc<SpanSender>>);

/// Sends spans to the exporter, without waiting.
#[derive(Debug)]
struct SpanSender {
    spans: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
    /// Sampling ratio of traces that begin here.
    ratio: f64,
    /// Dropping it tells the exporter that there will be no more spans.
    _alive: watch::Sender<()>,
}

impl Telemetry {
    /// Creates the handle and the exporter, which has to be run. Without a configuration, traces are disabled.
    pub(crate) fn new(config: Option<TelemetryConfig>) -> (Telemetry, Option<Exporter>) {
        let Some(config) = config else { return (Telemetry::default(), None) };
        let (spans, taken) = mpsc::channel(MAX_QUEUED_SPANS);
        let (_alive, alive) = watch::channel(());
        let dropped = Arc::<AtomicU64>::default();
        let sender = SpanSender { spans, dropped: dropped.clone(), ratio: config.ratio, _alive };
        (Telemetry(Some(Arc::new(sender))), Some(Exporter::new(config, taken, dropped, alive)))
    }

    /// Records the span of a completed call to a source, if it belongs to a sampled trace.
    pub(crate) fn record_call(&self, record: &CallRecord) {
        if let (Some(sender), Some(trace)) = (&self.0, &record.trace)
            && trace.sampled
            && record.source.is_some()
        {
            sender.send(Span::for_call(record, trace.clone()));
        }
    }

    /// Records the spans of all calls, for commands without a journal.
    pub(crate) async fn record_calls(self, handle: Handle) {
        let mut events = handle.events();
        while let Some(event) = events.next().await {
            if let EventKind::Called(record) = event.what {
                self.record_call(&record);
            }
        }
    }
}

impl SpanSender {
    fn send(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Starts the trace context of a span: a child of the caller's span, or the root of a new trace.
    fn start_trace(&self, caller: Option<Trace>) -> Trace {
        match caller {
            Some(caller) => child(&caller),
            None => {
                let id = Uuid::new_v4().into_bytes();
                Trace { id, span: span_id(), parent: None, sampled: is_sampled(&id, self.ratio), state: None }
            }
        }
    }
}

/// Creates a child span for a call made by the request that this task handles.
pub(crate) fn child_trace() -> Option<Trace> {
    CURRENT_TRACE.try_with(child).ok()
}

fn child(parent: &Trace) -> Trace {
    Trace { span: span_id(), parent: Some(parent.span), ..parent.clone() }
}

fn span_id() -> [u8; 8] {
    let mut id = [0; 8];
    // The first half of a version 4 UUID is random except for the version, so it is never zero.
    id.copy_from_slice(&Uuid::new_v4().as_bytes()[..8]);
    id
}

/// Decides by the trace id alone, so that the decision is the same wherever it is made.
fn is_sampled(id: &[u8; 16], ratio: f64) -> bool {
    let mut low = [0; 8];
    low.copy_from_slice(&id[8..]);
    // The two highest bits are the UUID's variant, so they are shifted out.
    let part = (u64::from_be_bytes(low) << 2) as f64 / u64::MAX as f64;
    part < ratio || ratio >= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_ratio_is_respected() {
        for (ratio, expected) in [(0.0, 0..=0), (1.0, 2_000..=2_000), (0.25, 400..=600)] {
            let sampled = (0..2_000).filter(|_| is_sampled(Uuid::new_v4().as_bytes(), ratio)).count();
            assert!(expected.contains(&sampled), "{sampled} of 2000 at {ratio}");
        }
    }
}
