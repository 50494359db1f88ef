//! The definitions that operators have accepted, and those of the first listing of registered servers.

use super::{LockedKey, LockedKind};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use wharf_config::{LockedItem, LockedServer};

/// The accepted definitions.
#[derive(Clone, Debug, Default)]
pub struct AcceptedDefinitions {
    hashes: HashMap<LockedKey, String>,
    /// The accepted definitions of each source, in the form of a lock.
    servers: BTreeMap<String, LockedServer>,
}

impl AcceptedDefinitions {
    /// Adds a definition. That of instructions is their text, or null.
    pub fn insert(&mut self, key: LockedKey, hash: String, definition: Value) {
        let server = self.servers.entry(key.source.clone()).or_default();
        let items = match key.kind {
            LockedKind::Tool => Some(&mut server.tools),
            LockedKind::Prompt => Some(&mut server.prompts),
            LockedKind::Template => Some(&mut server.templates),
            LockedKind::Instructions => None,
        };
        match items {
            Some(items) => _ = items.insert(key.name.clone(), LockedItem { hash: hash.clone(), definition }),
            None => server.identity.instructions = definition.as_str().map(str::to_owned),
        }
        self.hashes.insert(key, hash);
    }

    /// Returns whether nothing has been accepted.
    pub(crate) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the accepted hash of an item.
    pub(crate) fn hash(&self, key: &LockedKey) -> Option<&String> {
        self.hashes.get(key)
    }

    /// Returns what was accepted of a source since its first listing. `None` until the first listing was accepted.
    pub fn first_use(&self, source: &str) -> Option<&LockedServer> {
        // The first listing always includes the instructions, even if the server has none.
        let marker =
            LockedKey { source: source.to_owned(), kind: LockedKind::Instructions, name: String::new() };
        self.servers.get(source).filter(|_| self.hashes.contains_key(&marker))
    }
}
