//! The task that exports spans in batches to one collector, in the background.

use super::{TelemetryConfig, otlp, span::Span};
use http::{StatusCode, header};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout_at},
};
use wharf_runtime::Handle;

/// Maximum number of spans in a batch.
const MAX_BATCH_SPANS: usize = 512;

/// How long the first span of a batch waits for more.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Timeout for sending a batch.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of attempts for a batch after transient errors, and the pause between them, which grows with each attempt.
const MAX_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// How long the export may take after the last span.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Exports spans until all handles are dropped.
pub(crate) struct Exporter {
    config: TelemetryConfig,
    spans: mpsc::Receiver<Span>,
    dropped: Arc<AtomicU64>,
    alive: watch::Receiver<()>,
}

/// An export error, and whether a retry can help.
enum ExportError {
    Transient(String),
    Permanent(String),
}

impl Exporter {
    pub(super) fn new(
        config: TelemetryConfig,
        spans: mpsc::Receiver<Span>,
        dropped: Arc<AtomicU64>,
        alive: watch::Receiver<()>,
    ) -> Exporter {
        Exporter { config, spans, dropped, alive }
    }

    /// Exports spans. Ends when all have been sent, or [`DRAIN_TIMEOUT`] after the last handle was dropped.
    pub(crate) async fn run(mut self, handle: Handle) {
        let origin = self.config.origin();
        tracing::info!(target: "wharf::telemetry", "sending traces to {origin}");
        let (mut alive, dropped) = (self.alive.clone(), self.dropped.clone());
        let deadline = async {
            while alive.changed().await.is_ok() {}
            sleep(DRAIN_TIMEOUT).await;
        };
        tokio::select! {
            () = self.send_all(&handle) => {}
            () = deadline => {
                tracing::warn!(target: "wharf::telemetry", "{origin} did not accept the last spans in time; they are lost");
            }
        }
        let dropped = dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(target: "wharf::telemetry", dropped, "some spans were dropped");
        }
    }

    async fn send_all(&mut self, handle: &Handle) {
        let client = reqwest::Client::builder()
            .timeout(SEND_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(target: "wharf::telemetry", "traces cannot be sent: {}", error.without_url());
                return;
            }
        };
        let (mut batch, mut works) = (Vec::with_capacity(MAX_BATCH_SPANS), true);
        loop {
            self.collect_batch(&mut batch).await;
            if batch.is_empty() {
                return;
            }
            add_source_attributes(&mut batch, handle);
            let sent = self.send(&client, &batch).await;
            self.report(&sent, batch.len(), &mut works);
            batch.clear();
        }
    }

    /// Collects a batch. It stays empty when there will be no more spans.
    async fn collect_batch(&mut self, batch: &mut Vec<Span>) {
        if self.spans.recv_many(batch, MAX_BATCH_SPANS).await == 0 {
            return;
        }
        let until = Instant::now() + BATCH_DELAY;
        while batch.len() < MAX_BATCH_SPANS {
            let room = MAX_BATCH_SPANS - batch.len();
            match timeout_at(until, self.spans.recv_many(batch, room)).await {
                Ok(1..) => {}
                // The time is up, or there will be no more spans.
                Ok(0) | Err(_) => return,
            }
        }
    }

    async fn send(&self, client: &reqwest::Client, batch: &[Span]) -> Result<(), String> {
        let body = otlp::request(&self.config.resource, batch).to_string();
        for attempt in 1.. {
            let request = client
                .post(self.config.endpoint.clone())
                .headers(self.config.headers.clone())
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.clone());
            match check_response(request.send().await) {
                Ok(()) => return Ok(()),
                Err(ExportError::Transient(_)) if attempt < MAX_ATTEMPTS => {
                    sleep(RETRY_DELAY * attempt).await
                }
                Err(ExportError::Transient(message) | ExportError::Permanent(message)) => {
                    return Err(message);
                }
            }
        }
        Ok(())
    }

    /// Logs only when the export starts to fail and when it works again.
    fn report(&self, sent: &Result<(), String>, spans: usize, works: &mut bool) {
        let origin = self.config.origin();
        match sent {
            Ok(()) if !*works => tracing::info!(target: "wharf::telemetry", "{origin} accepts traces again"),
            Ok(()) => {}
            Err(message) => {
                self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
                if *works {
                    tracing::warn!(target: "wharf::telemetry", "{origin} does not accept traces; dropping them: {message}");
                }
            }
        }
        *works = sent.is_ok();
    }
}

fn check_response(response: Result<reqwest::Response, reqwest::Error>) -> Result<(), ExportError> {
    match response {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => {
            let message = format!("the collector answered {}", response.status());
            Err(match response.status() {
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => ExportError::Transient(message),
                _ => ExportError::Permanent(message),
            })
        }
        // A timeout is not retried, because every further attempt would take as long.
        Err(error) if error.is_timeout() => Err(ExportError::Permanent("timeout".to_owned())),
        Err(error) => Err(ExportError::Transient(error.without_url().to_string())),
    }
}

/// Adds the transport and protocol version of the called sources.
fn add_source_attributes(batch: &mut [Span], handle: &Handle) {
    let sources: HashMap<String, _> =
        handle.sources().into_iter().map(|it| (it.source.name.expose().to_owned(), it)).collect();
    for span in batch {
        let Some(state) = span.source.as_deref().and_then(|it| sources.get(it)) else { continue };
        match state.source.endpoint.transport() {
            "stdio" => span.add("network.transport", "pipe"),
            "builtin" => {}
            transport => {
                span.add("network.transport", "tcp");
                let protocol = if transport == "websocket" { "websocket" } else { "http" };
                span.add("network.protocol.name", protocol);
            }
        }
        state.status.version.iter().for_each(|it| span.add("mcp.protocol.version", it));
    }
}
