//! Per-request callbacks: progress, log lines, and a host for the server's questions.

use super::{deadline::DeadlineExtension, host::Host};
use crate::Raw;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Callback for the progress notifications of one request.
pub type OnProgress = Box<dyn FnMut(Progress) + Send>;

/// Callback for the log lines of one request; receives the params of `notifications/message`. It must not block.
pub type OnLog = Arc<dyn Fn(&Raw) + Send + Sync>;

/// For whom a request is made. Decides who may see a log line that names no request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// The authenticated principal, if any.
    pub principal: Option<Arc<str>>,
    /// Number of the client, if known.
    pub client: Option<u64>,
}

/// Progress of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Amount done so far.
    pub progress: f64,
    /// Total amount, if known.
    pub total: Option<f64>,
    /// Description of the current step.
    pub message: Option<String>,
    /// Raw params of the notification.
    pub raw: Raw,
}

/// Callbacks of one request; each is optional.
#[derive(Default)]
pub(crate) struct RequestHooks {
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) on_log: Option<OnLog>,
    /// Answers the server's questions instead of the session's host.
    pub(crate) host: Option<Arc<dyn Host>>,
    /// Receives the params of `notifications/subscriptions/acknowledged`.
    pub(crate) on_ack: Option<oneshot::Sender<Raw>>,
    /// Deadline to pause while a server question is being answered.
    pub(crate) extension: Option<Arc<DeadlineExtension>>,
    pub(crate) audience: Audience,
}

impl std::fmt::Debug for RequestHooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestHooks").field("audience", &self.audience).finish_non_exhaustive()
    }
}

/// Pending request that owns a message which names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOwner {
    /// Owned by this request.
    Known(u64),
    /// Several requests are pending, so the owner is ambiguous.
    Ambiguous,
    /// No pending request can own it.
    NoRequest,
}
