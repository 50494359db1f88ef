//! Forwards that the roots of a client have changed, and lets that client answer for them.
//!
//! A server of the handshake era that learns of the change asks for the roots at once, outside any call. All clients
//! share its session, so for a short time the client that reported the change answers.

use crate::{
    active_sources::ActiveSources,
    consent::{Answerable, Consent, ServerRequest},
};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};
use wharf_mcp::{Raw, RpcError, session::Era};

/// How long the client that reported a change answers for its roots.
const REPORTER_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for a server to accept the notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers like the runtime's consent, and questions about roots through the client that reported a change last.
pub(crate) struct RootChanges {
    consent: Arc<dyn Consent>,
    reporter: Mutex<Option<(Arc<dyn Consent>, Instant)>>,
}

impl RootChanges {
    pub(crate) fn new(consent: Arc<dyn Consent>) -> RootChanges {
        RootChanges { consent, reporter: Mutex::new(None) }
    }

    /// Notifies every server of the handshake era whose roots are those of the clients.
    pub(crate) async fn forward(&self, reporter: Arc<dyn Consent>, sources: ActiveSources) {
        *self.reporter.lock().unwrap_or_else(PoisonError::into_inner) = Some((reporter, Instant::now()));
        let affected = sources.active_sources.iter().filter(|it| it.source().roots.is_empty());
        let mut notifying = JoinSet::new();
        let sessions = affected.flat_map(|it| it.open_sessions());
        for session in sessions.filter(|it| it.terms().era == Era::Legacy) {
            notifying.spawn(async move {
                let notified = session.notify("notifications/roots/list_changed", None);
                let _ = time::timeout(NOTIFY_TIMEOUT, notified).await;
            });
        }
        while notifying.join_next().await.is_some() {}
    }

    fn reporter(&self) -> Option<Arc<dyn Consent>> {
        let reporter = self.reporter.lock().unwrap_or_else(PoisonError::into_inner);
        let (reporter, since) = reporter.as_ref()?;
        (since.elapsed() < REPORTER_TIMEOUT).then(|| reporter.clone())
    }
}

impl Consent for RootChanges {
    fn answers(&self) -> Answerable {
        self.consent.answers()
    }

    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        match self.reporter().filter(|_| request.method == "roots/list") {
            Some(reporter) => reporter.answer(request),
            None => self.consent.answer(request),
        }
    }
}

impl fmt::Debug for RootChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootChanges").finish_non_exhaustive()
    }
}
