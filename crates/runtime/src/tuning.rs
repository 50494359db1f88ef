//! How a runtime is to behave, beyond what its plan says.

use crate::{
    arbiter::Arbiter,
    breaker::BreakerPolicy,
    events::Observer,
    glob::Glob,
    upstream::{Consent, Declines},
};
use std::{fmt, sync::Arc, time::Duration};
use wharf_mcp::session::List;

/// The operator's choices.
#[derive(Clone)]
pub struct Tuning {
    /// When a source rests.
    pub breaker: BreakerPolicy,
    /// Who speaks for others that call the same sources, if there are any.
    pub arbiter: Option<Arc<dyn Arbiter>>,
    /// Who answers what servers ask.
    pub consent: Arc<dyn Consent>,
    /// After how long without a call a server is stopped, if ever.
    pub idle_stop: Option<Duration>,
    /// The tools that may be run twice, as globs over `source:tool`.
    pub repeatable: Vec<Glob>,
    /// The lists that are read at the start and kept up to date.
    pub lists: Vec<List>,
    /// Whether a source whose lists could not be read is tried again without being asked: for hosts that run on.
    pub background_retries: bool,
    /// Who hears what happens.
    pub observers: Vec<Arc<dyn Observer>>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            breaker: BreakerPolicy::default(),
            arbiter: None,
            consent: Arc::new(Declines),
            idle_stop: None,
            repeatable: Vec::new(),
            lists: vec![List::Tools, List::Prompts, List::Resources, List::Templates],
            background_retries: false,
            observers: Vec::new(),
        }
    }
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning")
            .field("breaker", &self.breaker)
            .field("idle_stop", &self.idle_stop)
            .field("lists", &self.lists)
            .finish_non_exhaustive()
    }
}
