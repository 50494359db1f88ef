//! Answers what `wharf why` asks about the agent of the running plan.

use super::AgentRuns;
use wharf_agent::{RunRules, model::ModelOptions};
use wharf_runtime::{Catalog, catalog::ToolEntry};

impl AgentRuns {
    /// Returns the approval rules of the agent file and of the operator.
    pub(crate) fn rules(&self) -> RunRules {
        let configured = self.shared.registry.registered().file.agent.approval.clone();
        RunRules { configured, operator: self.shared.policy.approval.clone(), ..RunRules::default() }
    }

    /// Returns whether the model of the agent file finds a tool by a question only.
    pub(crate) fn is_deferred(&self, tool: &ToolEntry, catalog: &Catalog) -> bool {
        let registered = self.shared.registry.registered();
        let Some(model) = &registered.file.model else { return false };
        let window = ModelOptions::of(model).context_window;
        wharf_agent::is_deferred(tool, catalog, &self.rules(), &registered.file.agent.context, window)
    }
}
