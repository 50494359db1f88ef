//! Connects the stored results to a runtime.

use super::Handle;
use crate::result_handle::ResultHandles;
use std::sync::Arc;

impl Handle {
    /// Stores large results from now on, for the readers that the sources name. Set once; later calls do nothing.
    pub fn keep_results(&self, handles: ResultHandles) {
        let _ = self.executor.results.set(Arc::new(handles));
    }

    /// Returns the stored results, if results are stored.
    pub fn results(&self) -> Option<&Arc<ResultHandles>> {
        self.executor.results.get()
    }

    /// Returns whether callers of an interface (`agent`, `mcp`, `rest`) get handles from at least one source.
    pub fn has_handles_for(&self, via: &str) -> bool {
        self.executor.result_handles_for(via).is_some()
    }
}
