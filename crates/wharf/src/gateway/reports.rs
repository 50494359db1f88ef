//! Forwards progress and log messages of a running call to its client.
//!
//! A slow client never delays a call: when the queue is full, new reports are dropped.

use tokio::sync::mpsc;
use wharf_mcp::{Raw, serve::Client, session::Progress};
use wharf_runtime::{LogSubscription, OnProgress};

/// Maximum number of reports queued for a slow client.
const MAX_QUEUED_REPORTS: usize = 64;

/// Receives the reports for the client. They are boxed, because a channel reserves space for 32 of them, and most calls
/// send none.
#[derive(Debug)]
pub(super) struct Reports(mpsc::Receiver<Box<Report>>);

/// Queues the reports of the server.
#[derive(Clone, Debug)]
pub(super) struct Reporter(mpsc::Sender<Box<Report>>);

#[derive(Debug)]
pub(super) enum Report {
    Progress(Progress),
    Log(Raw),
}

pub(super) fn channel() -> (Reporter, Reports) {
    let (reporter, reports) = mpsc::channel(MAX_QUEUED_REPORTS);
    (Reporter(reporter), Reports(reports))
}

impl Reporter {
    /// Returns the progress callback, if the client asked for progress.
    pub(super) fn progress(&self, client: &Client) -> Option<OnProgress> {
        let reports = self.0.clone();
        client.has_progress_token().then(|| -> OnProgress {
            Box::new(move |at: &Progress| _ = reports.try_send(Box::new(Report::Progress(at.clone()))))
        })
    }

    /// Returns the log callback and level, if the client asked for logs.
    pub(super) fn logs(&self, client: &Client) -> Option<LogSubscription> {
        let (level, explicit) = client.logs()?;
        let reports = self.0.clone();
        let on_log =
            std::sync::Arc::new(move |line: &Raw| _ = reports.try_send(Box::new(Report::Log(line.clone()))));
        Some(LogSubscription { level, explicit, on_log })
    }
}

impl Reports {
    /// Returns the next report, or `None` when there will be no more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Box<Report>> {
        self.0.recv().await
    }

    /// Sends all queued reports to the client.
    pub(super) async fn send_queued(&mut self, client: &Client) {
        while let Ok(report) = self.0.try_recv() {
            report.send(client).await;
        }
    }
}

impl Report {
    pub(super) async fn send(self, client: &Client) {
        match self {
            Report::Progress(at) => client.progress(at.progress, at.total, at.message.as_deref()).await,
            Report::Log(line) => client.forward_log(line).await,
        }
    }
}
