//! Compares what the servers offer with `wharf.lock` and with the definitions that operators have accepted since.

mod accepted;
mod compare;
mod difference;
mod resolve_references;
mod schema_compare;
mod server_compare;
#[cfg(test)]
mod tests;
mod text_diff;

pub use accepted::AcceptedDefinitions;
pub use compare::{compare_instructions, compare_items, compare_tools};
pub use difference::{Difference, DifferenceKind, DifferenceSeverity};
use serde_json::{Value, json};
pub use server_compare::{ItemDifferences, compare_servers};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
pub use text_diff::{show_invisible, word_diff};
use wharf_config::{LockBasis, LockFile, LockMode, LockedItem, LockedServer, Source};
use wharf_mcp::Raw;

/// Maximum number of comparisons that are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The lock and the definitions that operators have accepted since.
#[derive(Clone, Debug, Default)]
pub struct LockState {
    /// The lock, if there is one and it is used.
    pub file: Option<Arc<LockFile>>,
    /// The accepted definitions.
    pub accepted: Arc<AcceptedDefinitions>,
    /// Results of comparisons, because a catalog is assembled more often than a definition changes.
    compared: Arc<Mutex<HashMap<String, Arc<[Difference]>>>>,
}

/// Identifies what is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockedKey {
    /// Name of the source.
    pub source: String,
    /// Kind of the item.
    pub kind: LockedKind,
    /// Name on the wire, or URI template. Empty for instructions.
    pub name: String,
}

/// Kinds of items that are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockedKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource template.
    Template,
    /// The instructions of the server.
    Instructions,
}

impl LockedKind {
    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            LockedKind::Tool => "tool",
            LockedKind::Prompt => "prompt",
            LockedKind::Template => "template",
            LockedKind::Instructions => "instructions",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<LockedKind> {
        use LockedKind::{Instructions, Prompt, Template, Tool};
        [Tool, Prompt, Template, Instructions].into_iter().find(|it| it.as_str() == name)
    }
}

impl LockState {
    /// Creates a state.
    pub fn new(file: Option<Arc<LockFile>>, accepted: Arc<AcceptedDefinitions>) -> LockState {
        LockState { file, accepted, compared: Arc::default() }
    }

    /// Returns the locked server of a source, if the lock applies to it.
    pub fn server(&self, source: &Source) -> Option<&LockedServer> {
        let name = source.name.expose();
        match source.lock.basis {
            _ if source.lock.mode == LockMode::Off => None,
            LockBasis::File => self.file.as_ref()?.servers.get(name),
            LockBasis::FirstUse => self.accepted.first_use(name),
        }
    }

    /// Returns how an item differs from the lock. `None` if it does not, if it is accepted, or without a lock.
    pub(crate) fn differences(
        &self,
        source: &Source,
        kind: LockedKind,
        name: &str,
        current: &LockedItem,
    ) -> Option<Arc<[Difference]>> {
        let server = self.server(source)?;
        let items = match kind {
            LockedKind::Tool => &server.tools,
            LockedKind::Prompt => &server.prompts,
            LockedKind::Template => &server.templates,
            LockedKind::Instructions => return None,
        };
        let locked = items.get(name);
        if locked.is_some_and(|it| it.hash == current.hash)
            || self.is_accepted(source, kind, name, &current.hash)
        {
            return None;
        }
        let id = format!("{} {} {name} {}", source.name.expose(), kind.as_str(), current.hash);
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compared.get(&id) {
            return Some(known.clone());
        }
        let (before, after) = (locked.map(|it| &it.definition), Some(&current.definition));
        let found: Arc<[Difference]> = match kind {
            LockedKind::Tool => compare_tools(before, after).into(),
            _ => compare_items(before, after).into(),
        };
        if compared.len() < MAX_REMEMBERED {
            compared.insert(id, found.clone());
        }
        Some(found)
    }

    pub(crate) fn is_accepted(&self, source: &Source, kind: LockedKind, name: &str, hash: &str) -> bool {
        if self.accepted.is_empty() {
            return false;
        }
        let key = LockedKey { source: source.name.expose().to_owned(), kind, name: name.to_owned() };
        self.accepted.hash(&key).is_some_and(|it| it == hash)
    }

    /// Returns whether clients may receive these instructions of a source.
    pub fn allows_instructions(&self, source: &Source, text: &str) -> bool {
        source.lock.mode != LockMode::Enforce || self.instruction_differences(source, text).is_none()
    }

    /// Returns how instructions differ from the lock. `None` if they do not, if they are accepted, or without a lock.
    pub(crate) fn instruction_differences(&self, source: &Source, text: &str) -> Option<Vec<Difference>> {
        let locked = self.server(source)?.identity.instructions.as_deref();
        let is_accepted = || self.is_accepted(source, LockedKind::Instructions, "", &instructions_hash(text));
        (locked != Some(text) && !is_accepted()).then(|| compare_instructions(locked, Some(text)))
    }
}

/// Returns the hash by which instructions are accepted.
pub(crate) fn instructions_hash(text: &str) -> String {
    wharf_config::sha256(text.as_bytes())
}

/// Builds the message for a definition that differs from the lock of its source.
pub(crate) fn describe_mismatch(source: &Source, differences: &[Difference]) -> String {
    let lock = match source.lock.basis {
        LockBasis::File => "wharf.lock",
        LockBasis::FirstUse => "the accepted definition",
    };
    let all: Vec<String> = differences.iter().map(Difference::summary).collect();
    format!("differs from {lock}: {}", all.join(", "))
}

/// Builds the hint to review and accept a tool that differs from the lock.
pub(crate) fn review_hint(source: &Source, tool_id: &str) -> String {
    match source.lock.basis {
        LockBasis::File => {
            format!("review it with `wharf lock --diff {tool_id}`, then `wharf lock --accept {tool_id}`")
        }
        LockBasis::FirstUse => format!(
            "review it in the console or with GET /api/v1/lock, then `wharf lock --accept {tool_id} --server URL`"
        ),
    }
}

/// Locks a definition as a server sent it.
pub fn locked_item(definition: &Raw) -> LockedItem {
    // JSON that has no other form, such as a number beyond double precision, is locked as received.
    let as_received = || json!({ "$raw": definition.as_str() });
    LockedItem::of(definition.decode::<Value>().unwrap_or_else(|_| as_received()))
}
