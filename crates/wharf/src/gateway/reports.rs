//! What a server says in the course of a call, on its way to the client: how far it has got, and its log lines.
//!
//! Nobody waits for a client that reads slowly: what does not fit is dropped, the newest first.

use wharf_mcp::{
    Raw,
    serve::{Client, mailbox},
    session::Progress,
};
use wharf_runtime::{OnProgress, WantedLogs};

/// How many reports may wait for a slow client.
const WAITING: usize = 64;

/// The client's end.
#[derive(Debug)]
pub(super) struct Reports(mailbox::Receiver<Report>);

/// The server's end.
#[derive(Clone, Debug)]
pub(super) struct Reporter(mailbox::Sender<Report>);

#[derive(Debug)]
pub(super) enum Report {
    Progress(Progress),
    Log(Raw),
}

pub(super) fn channel() -> (Reporter, Reports) {
    let (reporter, reports) = mailbox::channel(WAITING);
    (Reporter(reporter), Reports(reports))
}

impl Reporter {
    /// Who is told of progress, if the client wants to hear of it.
    pub(super) fn progress(&self, client: &Client) -> Option<OnProgress> {
        let reports = self.0.clone();
        client.wants_progress().then(|| -> OnProgress {
            Box::new(move |at: &Progress| _ = reports.try_send(Report::Progress(at.clone())))
        })
    }

    /// Who is told log lines, if the client wants to hear any.
    pub(super) fn logs(&self, client: &Client) -> Option<WantedLogs> {
        let (level, explicit) = client.logs()?;
        let reports = self.0.clone();
        let told = std::sync::Arc::new(move |line: &Raw| _ = reports.try_send(Report::Log(line.clone())));
        Some(WantedLogs { level, explicit, told })
    }
}

impl Reports {
    /// The next report; `None` when there will be no more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Report> {
        self.0.recv().await
    }

    /// Tells what has been reported and not told yet.
    pub(super) async fn tell_rest(&mut self, client: &Client) {
        while let Some(report) = self.0.try_recv() {
            report.tell(client).await;
        }
    }
}

impl Report {
    pub(super) async fn tell(self, client: &Client) {
        match self {
            Report::Progress(at) => client.progress(at.progress, at.total, at.message.as_deref()).await,
            Report::Log(line) => client.pass_log(line).await,
        }
    }
}
