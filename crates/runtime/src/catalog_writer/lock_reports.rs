//! Reports what differs from the lock: one log line for each definition, and one event for each of a tool.

use crate::{
    Catalog,
    active_source::ActiveSource,
    catalog::ToolEntry,
    events::EventKind,
    lock::{Difference, LockState, LockedKind, describe_mismatch, instructions_hash},
};
use std::collections::HashSet;
use wharf_config::{LockMode, Source};

/// Maximum number of definitions that are remembered as reported.
const MAX_REPORTED: usize = 100_000;

/// Remembers which definitions have been reported.
#[derive(Default)]
pub(super) struct LockReports {
    reported: HashSet<(LockedKind, String, String)>,
}

impl LockReports {
    /// Logs the tools that differ from the lock and have not been reported. Returns an event for each, with its source.
    pub(super) fn new_events(&mut self, catalog: &Catalog) -> Vec<(String, EventKind)> {
        let changed = catalog.tools.iter().filter(|it| it.changed.is_some());
        let mut events = Vec::new();
        for tool in changed {
            let hash = &tool.locked().hash;
            if !self.is_new(LockedKind::Tool, tool.id(), hash) {
                continue;
            }
            let state = state(tool.config());
            tracing::warn!(target: "wharf::lock", tool = tool.id(), state, "{}", describe(tool));
            let event = EventKind::Lock { tool_id: tool.id(), state, hash: hash.clone() };
            events.push((tool.source.clone(), event));
        }
        events
    }

    /// Logs the prompts and templates that differ from the lock and have not been reported.
    pub(super) fn log_items(&mut self, catalog: &Catalog) {
        for item in &catalog.changed_items {
            let source = &*item.source;
            if self.is_new(item.kind, format!("{}:{}", source.name.expose(), item.name), &item.current.hash) {
                log(source, item.kind, &item.name, &item.differences);
            }
        }
    }

    /// Logs the instructions of a source if they differ from the lock and have not been reported.
    pub(super) fn log_instructions(&mut self, active_source: &ActiveSource, lock: &LockState) {
        let source = active_source.source();
        if lock.server(source).is_none() {
            return;
        }
        let state = active_source.state();
        let Some(text) = state.status.instructions.as_deref() else { return };
        let Some(differences) = lock.instruction_differences(source, text) else { return };
        let name = source.name.expose().to_owned();
        if self.is_new(LockedKind::Instructions, name, &instructions_hash(text)) {
            log(source, LockedKind::Instructions, "", &differences);
        }
    }

    /// Remembers a definition. Returns whether it has not been reported before.
    fn is_new(&mut self, kind: LockedKind, id: String, hash: &str) -> bool {
        self.reported.len() < MAX_REPORTED && self.reported.insert((kind, id, hash.to_owned()))
    }
}

fn state(source: &Source) -> &'static str {
    if source.lock.mode == LockMode::Enforce { "blocked" } else { "changed" }
}

fn log(source: &Source, kind: LockedKind, name: &str, differences: &[Difference]) {
    let mismatch = describe_mismatch(source, differences);
    let (kind, state, source) = (kind.as_str(), state(source), source.name.shown());
    match name {
        "" => {
            let mismatch = mismatch.replacen("differs", "differ", 1);
            tracing::warn!(target: "wharf::lock", source, kind, state, "the {kind} of `{source}` {mismatch}");
        }
        name => tracing::warn!(
            target: "wharf::lock", source, kind, name, state, "the {kind} `{name}` of `{source}` {mismatch}"
        ),
    }
}

fn describe(tool: &ToolEntry) -> String {
    let differences = tool.changed.as_deref().unwrap_or_default();
    format!("the tool `{}` {}", tool.name, describe_mismatch(tool.config(), differences))
}
