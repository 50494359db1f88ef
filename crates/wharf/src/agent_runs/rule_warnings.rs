//! Logs approval rules that match no tool, because a misspelt rule protects nothing.

use super::AgentRuns;
use crate::unmatched_rules::{unmatched_rules, unmatched_warning};
use std::{collections::HashSet, future};
use wharf_agent::RunRules;

impl AgentRuns {
    /// Logs each rule of the agent file that matches no tool, once, when the sources have settled. Never returns.
    pub(crate) async fn warn_about_rules(&self) {
        let mut changes = self.shared.registry.changes();
        let mut known = HashSet::new();
        loop {
            let configured = changes.borrow_and_update().file.agent.approval.clone();
            let catalog = self.shared.handle.settled().await;
            let unmatched = unmatched_rules(&RunRules { configured, ..RunRules::default() }, &catalog);
            for rule in unmatched.iter().filter(|it| !known.contains(*it)) {
                tracing::warn!(target: "wharf::agent", "{}", unmatched_warning(rule));
            }
            known = unmatched.into_iter().collect();
            if changes.changed().await.is_err() {
                return future::pending().await;
            }
        }
    }
}
