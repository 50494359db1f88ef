//! Reports tools that differ from the lock: one log line and one event for each definition.

use crate::{Catalog, catalog::ToolEntry, events::EventKind, lock::describe_mismatch};
use std::collections::HashSet;
use wharf_config::LockMode;

/// Maximum number of definitions that are remembered as reported.
const MAX_REPORTED: usize = 100_000;

/// Remembers which definitions have been reported.
#[derive(Default)]
pub(super) struct LockReports {
    reported: HashSet<(String, String)>,
}

impl LockReports {
    /// Logs the tools that differ from the lock and have not been reported. Returns an event for each, with its source.
    pub(super) fn new_events(&mut self, catalog: &Catalog) -> Vec<(String, EventKind)> {
        let changed = catalog.tools.iter().filter(|it| it.changed.is_some());
        let mut events = Vec::new();
        for tool in changed {
            let hash = &tool.locked().hash;
            let is_known = self.reported.contains(&(tool.id(), hash.clone()));
            if is_known || self.reported.len() >= MAX_REPORTED {
                continue;
            }
            self.reported.insert((tool.id(), hash.clone()));
            let state = if tool.config().lock.mode == LockMode::Enforce { "blocked" } else { "changed" };
            tracing::warn!(target: "wharf::lock", tool = tool.id(), state, "{}", describe(tool));
            let event = EventKind::Lock { tool_id: tool.id(), state, hash: hash.clone() };
            events.push((tool.source.clone(), event));
        }
        events
    }
}

fn describe(tool: &ToolEntry) -> String {
    let differences = tool.changed.as_deref().unwrap_or_default();
    format!("the tool `{}` {}", tool.name, describe_mismatch(tool.config(), differences))
}
