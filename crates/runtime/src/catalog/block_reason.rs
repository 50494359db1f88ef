//! Reasons why a listed tool must not be called.

use crate::lock::{Difference, LockState, LockedKind};
use std::sync::Arc;
use wharf_config::{LockMode, Source};

use super::{DisabledTools, OfferedTool, tool_id};

/// Reason why a tool must not be called.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockReason {
    /// An operator disabled it, for this reason.
    SwitchedOff(String),
    /// It differs from `wharf.lock`, and the lock is enforced.
    LockMismatch(Arc<[Difference]>),
}

impl BlockReason {
    /// Finds the reason to block a tool, given how it differs from the lock.
    pub(super) fn of(
        tool: &OfferedTool,
        source: &Source,
        off: &DisabledTools,
        changed: Option<&Arc<[Difference]>>,
    ) -> Option<BlockReason> {
        let switched_off = off.get(&tool_id(source.name.expose(), &tool.wire_name)).cloned();
        let enforced = changed.filter(|_| source.lock.mode == LockMode::Enforce).cloned();
        switched_off.map(BlockReason::SwitchedOff).or(enforced.map(BlockReason::LockMismatch))
    }
}

/// Returns how a tool differs from the lock, if it does.
pub(super) fn tool_differences(
    tool: &OfferedTool,
    source: &Source,
    lock: &LockState,
) -> Option<Arc<[Difference]>> {
    lock.server(source)?;
    lock.differences(source, LockedKind::Tool, &tool.wire_name, tool.locked())
}
