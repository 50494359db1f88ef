//! Forwards progress and log messages of a running call to its client.
//!
//! A slow client never delays a call: when the queue is full, new reports are dropped. Most calls send none, so the
//! queue allocates nothing until the first.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Notify;
use wharf_mcp::{Raw, serve::Client, session::Progress};
use wharf_runtime::{LogSubscription, OnProgress};

/// Maximum number of reports queued for a slow client.
const MAX_QUEUED_REPORTS: usize = 64;

/// Receives the reports for the client.
#[derive(Debug)]
pub(super) struct Reports(Arc<ReportQueue>);

/// Queues the reports of the server.
#[derive(Clone, Debug)]
pub(super) struct Reporter(Arc<ReportQueue>);

#[derive(Debug, Default)]
struct ReportQueue {
    queued: Mutex<VecDeque<Report>>,
    arrived: Notify,
}

#[derive(Debug)]
pub(super) enum Report {
    Progress(Progress),
    Log(Raw),
}

pub(super) fn channel() -> (Reporter, Reports) {
    let queue = Arc::<ReportQueue>::default();
    (Reporter(queue.clone()), Reports(queue))
}

impl ReportQueue {
    fn push(&self, report: Report) {
        let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
        if queued.len() < MAX_QUEUED_REPORTS {
            queued.push_back(report);
            drop(queued);
            self.arrived.notify_one();
        }
    }

    fn pop(&self) -> Option<Report> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Reporter {
    /// Returns the progress callback, if the client asked for progress.
    pub(super) fn progress(&self, client: &Client) -> Option<OnProgress> {
        client.has_progress_token().then(|| -> OnProgress {
            let queue = self.0.clone();
            Box::new(move |at: &Progress| queue.push(Report::Progress(at.clone())))
        })
    }

    /// Returns the log callback and level, if the client asked for logs.
    pub(super) fn logs(&self, client: &Client) -> Option<LogSubscription> {
        let (level, explicit) = client.logs()?;
        let queue = self.0.clone();
        let on_log = Arc::new(move |line: &Raw| queue.push(Report::Log(line.clone())));
        Some(LogSubscription { level, explicit, on_log })
    }
}

impl Reports {
    /// Returns the next report. Cancel-safe.
    pub(super) async fn next(&mut self) -> Report {
        loop {
            if let Some(report) = self.0.pop() {
                return report;
            }
            self.0.arrived.notified().await;
        }
    }

    /// Sends all queued reports to the client.
    pub(super) async fn send_queued(&mut self, client: &Client) {
        while let Some(report) = self.0.pop() {
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
