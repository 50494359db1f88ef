//! The requests that wait for a response. The session task and the callers that send requests themselves share them.

use super::{hooks::RequestHooks, send_once::SendOnce};
use crate::{Disconnect, Failure, IdMap, Raw, Sent, Written};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::oneshot;

/// Channel for the outcome of a request.
pub(crate) type Reply = oneshot::Sender<Result<Raw, Failure>>;

/// Pending requests by id.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    requests: Mutex<IdMap<PendingRequest>>,
    /// Number of messages passed to the link. Changed under the lock of the requests only.
    passed: AtomicU64,
}

/// Pending request.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) reply: Reply,
    pub(crate) hooks: RequestHooks,
    /// Whether this is a handshake request; those must not be cancelled.
    pub(crate) handshake: bool,
    /// Whether a caller made this request, so that the server's log lines and questions may belong to it.
    pub(crate) is_caller_request: bool,
    pub(crate) send_once: SendOnce,
    pub(crate) progress: SendProgress,
}

/// How far the sending of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendProgress {
    /// Still in the queue of the session task.
    Queued,
    /// Passed to the link, at this position among all messages.
    Passed(u64),
    /// Being sent by its caller.
    Direct,
}

impl PendingRequests {
    /// Gives access to the requests. No callback may run meanwhile, because it may make requests.
    pub(crate) fn lock(&self) -> MutexGuard<'_, IdMap<PendingRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a message that is passed to the link and returns its position. The caller holds the lock until the message is
    /// in the queue of the link.
    pub(crate) fn next_position(&self) -> u64 {
        self.passed.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of requests.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

impl PendingRequest {
    pub(crate) fn new(
        method: &str,
        reply: Reply,
        hooks: RequestHooks,
        send_once: SendOnce,
    ) -> PendingRequest {
        let handshake = matches!(method, "initialize" | "server/discover");
        let is_caller_request = !handshake && is_caller_request(method);
        PendingRequest {
            reply,
            hooks,
            handshake,
            is_caller_request,
            send_once,
            progress: SendProgress::Queued,
        }
    }

    /// Fails the request. On an ordered link, the count of written messages tells whether it was sent.
    pub(crate) fn fail(self, written: &Written, ordered: bool, disconnect: &Arc<Disconnect>) {
        let sent = match self.progress {
            SendProgress::Queued => Sent::No,
            SendProgress::Passed(position) if ordered && position > written.count() => Sent::No,
            SendProgress::Passed(_) | SendProgress::Direct => Sent::Unknown,
        };
        let _ = self.reply.send(Err(Failure::closed(sent, disconnect.clone())));
    }
}

/// Returns whether a request does work for a caller, as opposed to maintaining the session.
fn is_caller_request(method: &str) -> bool {
    let upkeep = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    !upkeep.contains(&method) && !method.ends_with("/list") && !method.ends_with("/listen")
}
