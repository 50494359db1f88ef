//! Defines the options of a runtime that are not part of its plan.

use crate::{
    BreakerPolicy, Glob,
    cassette::Recorder,
    circuit_breaker::coordinator::BreakerCoordinator,
    consent::{Consent, DeclineAll},
    events::Observer,
};
use std::{fmt, sync::Arc, time::Duration};
use wharf_mcp::session::List;

/// Options of a runtime.
#[derive(Clone)]
pub struct RuntimeOptions {
    /// Thresholds of the circuit breakers.
    pub breaker: BreakerPolicy,
    /// Coordinates breakers with other replicas, if there are any.
    pub coordinator: Option<Arc<dyn BreakerCoordinator>>,
    /// Answers the requests that servers send to the client.
    pub consent: Arc<dyn Consent>,
    /// Idle time after which a server is stopped, if set.
    pub idle_stop: Option<Duration>,
    /// Tools that may be retried after the request was sent, as globs over `source:tool`.
    pub repeatable: Vec<Glob>,
    /// Kinds of lists to read at startup and keep up to date.
    pub lists: Vec<List>,
    /// Whether failed listings are retried in the background. Intended for long-running hosts.
    pub background_retries: bool,
    /// Observers that receive all events.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Records the calls, if wanted.
    pub recorder: Option<Arc<Recorder>>,
}

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        RuntimeOptions {
            breaker: BreakerPolicy::default(),
            coordinator: None,
            consent: Arc::new(DeclineAll),
            idle_stop: None,
            repeatable: Vec::new(),
            lists: vec![List::Tools, List::Prompts, List::Resources, List::Templates],
            background_retries: false,
            observers: Vec::new(),
            recorder: None,
        }
    }
}

impl fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeOptions")
            .field("breaker", &self.breaker)
            .field("idle_stop", &self.idle_stop)
            .field("lists", &self.lists)
            .finish_non_exhaustive()
    }
}
