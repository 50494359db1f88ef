//! Diagnostics about faults to inject.

use crate::{diagnostic::Diagnostics, place::Place};

/// Diagnostics about faults to inject.
impl Diagnostics {
    pub(crate) fn no_faults(&mut self, at: Place) {
        self.error("X-01", at, "FaultError: 'faults' is missing")
            .hint("write `faults:` and a list of rules, for example `- {tool: \"*\", kind: drop}`");
    }

    pub(crate) fn fault_target(&mut self, at: Place) {
        self.error("X-02", at, "FaultError: a rule has either 'tool' or 'model: true'")
            .hint("`tool: \"server:*\"` is about calls, `model: true` about questions to the model");
    }

    pub(crate) fn fault_without_kind(&mut self, at: Place) {
        self.error("X-03", at, "FaultError: 'kind' is missing")
            .hint("for example `kind: tool_error`; docs/faults.md lists the kinds");
    }

    pub(crate) fn missing_fault_key(&mut self, at: Place, key: &str, kind: &str) {
        self.error("X-03", at, format!("FaultError: '{key}' is missing, which `kind: {kind}` needs"));
    }

    pub(crate) fn unused_fault_key(&mut self, at: Place, key: &str, kind: &str) {
        self.error("X-04", at, format!("FaultError: '{key}' has no meaning with `kind: {kind}`"))
            .hint("remove it");
    }

    pub(crate) fn fault_not_for_model(&mut self, at: Place, kind: &str) {
        self.error("X-05", at, format!("FaultError: a question to the model cannot have `kind: {kind}`"))
            .hint("use delay, drop or rpc_error");
    }

    pub(crate) fn fault_trigger(&mut self, at: Place) {
        self.error("X-06", at, "FaultError: a rule has either 'nth' or 'rate'").hint("remove one of them");
    }
}
