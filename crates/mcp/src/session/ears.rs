//! Who hears what a server says in the course of one request, and who answers what it asks meanwhile.

use super::{host::Host, until::Stretch};
use crate::Raw;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Told about the progress of one request.
pub type OnProgress = Box<dyn FnMut(Progress) + Send>;

/// Told the log lines of one request: the parameters of `notifications/message`. It must not block.
pub type OnLog = Arc<dyn Fn(&Raw) + Send + Sync>;

/// How far a request has got.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
    /// The whole notification.
    pub raw: Raw,
}

/// What one request listens with; nobody has to listen.
#[derive(Default)]
pub(crate) struct Ears {
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) on_log: Option<OnLog>,
    /// Who answers, instead of the session's own host.
    pub(crate) host: Option<Arc<dyn Host>>,
    /// What a subscription was accepted with.
    pub(crate) on_ack: Option<oneshot::Sender<Raw>>,
    /// Whose clock stands still while a question is being answered.
    pub(crate) patience: Option<Arc<Stretch>>,
}

/// The request that something belongs to which does not say so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// This one.
    To(u64),
    /// One of several.
    Unclear,
    /// None is under way.
    Nowhere,
}
