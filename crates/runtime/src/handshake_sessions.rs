//! Opens sessions of the handshake era with servers that also speak 2026-07-28.
//!
//! The main session of such a server uses 2026-07-28, in which a server cannot send requests. A client of the
//! handshake era expects them: elicitation, sampling and roots. Its calls therefore go through a second session, which
//! is opened with the first such call. Over stdio it is a second process, because a server speaks one era per
//! connection.

use crate::{
    Fault, FaultKind,
    session_keeper::{SessionKeeper, SessionKeeperContext, incident::SharedSession},
};
use std::{
    collections::BTreeSet,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use wharf_mcp::RpcError;

/// Pause after a failure that says nothing about the eras of the server.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Keeps the handshake-era session of one source.
#[derive(Debug)]
pub(crate) struct HandshakeSessions {
    keeper: SessionKeeper,
    refusal: Mutex<Refusal>,
}

/// Whether to ask the server for a session.
#[derive(Clone, Copy, Debug, Default)]
enum Refusal {
    #[default]
    None,
    /// The last attempt failed for another reason than the era.
    Until(Instant),
    /// The server has no handshake, or its handshake starts no session.
    Final,
}

impl HandshakeSessions {
    /// Creates the keeper of the session and its task.
    pub(crate) fn new(
        context: SessionKeeperContext,
    ) -> (HandshakeSessions, impl Future<Output = ()> + Send + 'static) {
        let (keeper, task) = SessionKeeper::new(context);
        (HandshakeSessions { keeper, refusal: Mutex::default() }, task)
    }

    /// Returns an open session, or `None` if the server does not offer one in which it can send requests.
    pub(crate) async fn session(&self) -> Option<Arc<SharedSession>> {
        match *self.refusal() {
            Refusal::Final => return None,
            Refusal::Until(then) if Instant::now() < then => return None,
            Refusal::None | Refusal::Until(_) => {}
        }
        let refusal = match self.keeper.session().await {
            Ok(session) if session.takes_server_requests() => return Some(session),
            Ok(session) => {
                self.keeper.retire(Some(session));
                Refusal::Final
            }
            Err(failure) if is_about_era(&failure.fault) => Refusal::Final,
            Err(_) => Refusal::Until(Instant::now() + RETRY_PAUSE),
        };
        *self.refusal() = refusal;
        None
    }

    /// Returns the kept session if it is open. Does not count as use.
    pub(crate) fn open_session(&self) -> Option<Arc<SharedSession>> {
        self.keeper.open_session()
    }

    /// Retires `session` if it is the kept one, or the kept one if `None`.
    pub(crate) fn retire(&self, session: Option<Arc<SharedSession>>) {
        self.keeper.retire(session);
    }

    /// Retires the session and asks the server again for the next one.
    pub(crate) fn restart(&self) {
        self.keeper.retire(None);
        *self.refusal() = Refusal::None;
    }

    /// Replaces the set of watched resources.
    pub(crate) fn watch(&self, uris: BTreeSet<String>) {
        self.keeper.watch(uris);
    }

    /// Returns the number of requests the session has not answered yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.keeper.unanswered()
    }

    fn refusal(&self) -> std::sync::MutexGuard<'_, Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a handshake failed because the server has none: it answers with an error, or ignores the request.
fn is_about_era(fault: &Fault) -> bool {
    let is_client_error = |status| matches!(status, 400..=499) && !matches!(status, 401 | 403 | 407 | 429);
    match fault.kind {
        FaultKind::Protocol | FaultKind::Timeout => true,
        FaultKind::Connection => fault.status.is_some_and(is_client_error),
        _ => false,
    }
}

/// Returns whether a server of both eras failed in the handshake era because it asks for input in its result, which
/// exists in 2026-07-28 only. The same request then has to be sent in that era. That does not repeat the call: a
/// server that asks for input in its result expects to receive the request again.
pub(crate) fn needs_input_rounds(fault: &Fault) -> bool {
    let messages = [
        "InputRequiredResult requires negotiated protocol version",
        "has no input_required vocabulary",
        // The Python SDK checks results against the schema of the era. Its own results only fail in this case.
        "Handler returned an invalid result",
    ];
    let says_so = |it: &RpcError| messages.iter().any(|message| it.message.contains(message));
    fault.rpc.as_ref().is_some_and(says_so)
}
