//! The set of sources that the runtime runs now, which changes with the plan.

use crate::active_source::ActiveSource;
use std::sync::Arc;
use wharf_config::Source;

/// The current sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveSources {
    /// Number of changes to the set of sources.
    pub(crate) edition: u64,
    pub(crate) active_sources: Vec<Arc<ActiveSource>>,
}

impl ActiveSources {
    /// Finds the source that runs this configuration: this value and not an equal one, because a source that was
    /// replaced may return with the same configuration.
    pub(crate) fn find(&self, config: &Arc<Source>) -> Option<&Arc<ActiveSource>> {
        self.active_sources.iter().find(|it| Arc::ptr_eq(it.source(), config))
    }

    /// Finds a source by its name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<ActiveSource>> {
        self.active_sources.iter().find(|it| &**it.name() == name)
    }
}
