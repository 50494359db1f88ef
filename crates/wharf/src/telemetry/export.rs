//! The task that exports spans in batches to one collector, in the background.

use super::{Config, otlp, span::Span};
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
const BATCH: usize = 512;

/// How long the first span of a batch waits for more.
const GATHER: Duration = Duration::from_secs(1);

/// Timeout for sending a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of attempts for a batch after transient errors, and the pause between them, which grows with each attempt.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// How long the export may take after the last span.
const DRAIN: Duration = Duration::from_secs(5);

/// Exports spans until all handles are dropped.
pub(crate) struct Exporter {
    config: Config,
    spans: mpsc::Receiver<Span>,
    dropped: Arc<AtomicU64>,
    alive: watch::Receiver<()>,
}

/// An export error, and whether a retry can help.
enum Trouble {
    Passing(String),
    Lasting(String),
}

impl Exporter {
    pub(super) fn new(
        config: Config,
        spans: mpsc::Receiver<Span>,
        dropped: Arc<AtomicU64>,
        alive: watch::Receiver<()>,
    ) -> Exporter {
        Exporter { config, spans, dropped, alive }
    }

    /// Exports spans. Ends when all have been sent, or [`DRAIN`] after the last handle was dropped.
    pub(crate) async fn run(mut self, handle: Handle) {
        let place = self.config.place();
        tracing::info!(target: "wharf::telemetry", "traces are sent to {place}");
        let (mut alive, dropped) = (self.alive.clone(), self.dropped.clone());
        let late = async {
            while alive.changed().await.is_ok() {}
            sleep(DRAIN).await;
        };
        tokio::select! {
            () = self.send_all(&handle) => {}
            () = late => {
                tracing::warn!(target: "wharf::telemetry", "{place} took too long: the last spans are lost");
            }
        }
        let dropped = dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(target: "wharf::telemetry", dropped, "some spans were not sent");
        }
    }

    async fn send_all(&mut self, handle: &Handle) {
        let client = reqwest::Client::builder()
            .timeout(PATIENCE)
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
        let (mut batch, mut works) = (Vec::with_capacity(BATCH), true);
        loop {
            self.gather(&mut batch).await;
            if batch.is_empty() {
                return;
            }
            complete(&mut batch, handle);
            let sent = self.send(&client, &batch).await;
            self.report(&sent, batch.len(), &mut works);
            batch.clear();
        }
    }

    /// Collects a batch. It stays empty when there will be no more spans.
    async fn gather(&mut self, batch: &mut Vec<Span>) {
        if self.spans.recv_many(batch, BATCH).await == 0 {
            return;
        }
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            match timeout_at(until, self.spans.recv_many(batch, room)).await {
                Ok(1..) => {}
                // The time is up, or there will be no more spans.
                Ok(0) | Err(_) => return,
            }
        }
    }

    async fn send(&self, client: &reqwest::Client, batch: &[Span]) -> Result<(), String> {
        let body = otlp::request(&self.config.resource, batch).to_string();
        for tried in 1.. {
            let request = client
                .post(self.config.endpoint.clone())
                .headers(self.config.headers.clone())
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.clone());
            match judge(request.send().await) {
                Ok(()) => return Ok(()),
                Err(Trouble::Passing(_)) if tried < TRIES => sleep(PAUSE * tried).await,
                Err(Trouble::Passing(what) | Trouble::Lasting(what)) => return Err(what),
            }
        }
        Ok(())
    }

    /// Logs only when the export starts to fail and when it works again.
    fn report(&self, sent: &Result<(), String>, spans: usize, works: &mut bool) {
        let place = self.config.place();
        match sent {
            Ok(()) if !*works => tracing::info!(target: "wharf::telemetry", "{place} takes traces again"),
            Ok(()) => {}
            Err(what) => {
                self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
                if *works {
                    tracing::warn!(target: "wharf::telemetry", "{place} does not take traces, which are dropped: {what}");
                }
            }
        }
        *works = sent.is_ok();
    }
}

fn judge(response: Result<reqwest::Response, reqwest::Error>) -> Result<(), Trouble> {
    match response {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => {
            let what = format!("it answers with {}", response.status());
            Err(match response.status() {
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => Trouble::Passing(what),
                _ => Trouble::Lasting(what),
            })
        }
        // A timeout is not retried, because every further attempt would take as long.
        Err(error) if error.is_timeout() => Err(Trouble::Lasting("it does not answer in time".to_owned())),
        Err(error) => Err(Trouble::Passing(error.without_url().to_string())),
    }
}

/// Adds the transport and protocol version of the called sources.
fn complete(batch: &mut [Span], handle: &Handle) {
    let sources: HashMap<String, _> =
        handle.sources().into_iter().map(|it| (it.source.name.expose().to_owned(), it)).collect();
    for span in batch {
        let Some(state) = span.source.as_deref().and_then(|it| sources.get(it)) else { continue };
        match state.source.endpoint.transport() {
            "stdio" => span.says("network.transport", "pipe"),
            "builtin" => {}
            transport => {
                span.says("network.transport", "tcp");
                let protocol = if transport == "websocket" { "websocket" } else { "http" };
                span.says("network.protocol.name", protocol);
            }
        }
        state.standing.version.iter().for_each(|it| span.says("mcp.protocol.version", it));
    }
}
