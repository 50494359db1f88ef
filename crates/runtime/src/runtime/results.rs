//! Connects the stored results to a runtime.

use super::Handle;
use crate::{
    Call,
    result_handle::{PassedResult, ResultHandles},
};
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

    /// Returns the stored results that a call would pass to its tool. Makes no call. Returns none for a call that would
    /// be refused.
    pub async fn results_to_pass(&self, mut call: Call) -> Vec<PassedResult> {
        let Some(tool) = self.catalog().tool(&call.tool).cloned() else { return Vec::new() };
        match self.executor.passes_results(&tool, &call) {
            true => self.executor.pass_results(&tool, &mut call).await.unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// Returns whether callers of an interface (`agent`, `mcp`, `rest`) get handles from at least one source.
    pub fn has_handles_for(&self, via: &str) -> bool {
        self.executor.result_handles_for(via).is_some()
    }
}
