//! Lists every locked and every listed tool with its state.

use crate::{
    catalog::Catalog,
    lock::{Difference, LockState, LockedKey, LockedKind, compare_tools, locked_item},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use wharf_config::{LockBasis, LockFile, LockedItem, LockedServer, Source};
use wharf_mcp::Raw;

/// A tool compared with the lock.
#[derive(Clone, Debug)]
pub struct LockItem {
    /// Name of the source.
    pub source: String,
    /// Name on the wire.
    pub tool: String,
    /// `same`, `changed`, `new`, `gone` or `accepted`.
    pub state: &'static str,
    /// The current definition, unless gone.
    pub current: Option<LockedItem>,
    /// The locked hash, unless new.
    pub locked_hash: Option<String>,
    /// The differences.
    pub differences: Vec<Difference>,
}

impl Catalog {
    /// Returns the current definitions of a source, in the form of a lock without package and identity.
    pub fn locked_definitions(&self, source: &str) -> LockedServer {
        let tools = self.tools.iter().filter(|it| it.source == source);
        let prompts = self.prompts.iter().filter(|it| it.source == source);
        let templates = self.templates.iter().filter(|it| it.source == source);
        let item = |name: &str, raw: &Raw| (name.to_owned(), locked_item(raw));
        LockedServer {
            tools: collect_items(tools.map(|it| item(&it.wire_name, &it.listed))),
            prompts: collect_items(prompts.map(|it| item(&it.prompt.name, &it.prompt.raw))),
            templates: collect_items(templates.map(|it| item(&it.item.uri_template, &it.item.raw))),
            ..LockedServer::default()
        }
    }
}

/// Collects items by name. Of several with one name, the one with the smallest hash stays, so that the order of a list does
/// not matter.
fn collect_items(items: impl Iterator<Item = (String, LockedItem)>) -> BTreeMap<String, LockedItem> {
    let mut collected: BTreeMap<String, LockedItem> = BTreeMap::new();
    for (name, item) in items {
        match collected.get(&name) {
            Some(known) if known.hash <= item.hash => {}
            _ => _ = collected.insert(name, item),
        }
    }
    collected
}

impl LockState {
    /// Compares all tools of the sources to which the lock applies, in the order of the sources.
    pub fn items(&self, catalog: &Catalog, sources: &[Arc<Source>]) -> Vec<LockItem> {
        sources.iter().flat_map(|it| self.items_of(catalog, it)).collect()
    }

    fn items_of(&self, catalog: &Catalog, source: &Source) -> Vec<LockItem> {
        let Some(server) = self.server(source) else { return Vec::new() };
        let source_name = source.name.expose();
        let tools = catalog.tools.iter().filter(|it| it.source == source_name);
        let current = collect_items(tools.map(|it| (it.wire_name.to_string(), it.locked().clone())));
        // The lock has every tool of the server, the catalog only those that agent.yaml does not disable.
        let is_disabled = |name: &&str| source.overrides.find(name).is_some_and(|it| !it.enabled);
        let locked = server.tools.keys().map(String::as_str).filter(|it| !is_disabled(it));
        let names: BTreeSet<&str> = locked.chain(current.keys().map(String::as_str)).collect();
        let item = |name: &str| {
            let (locked, current) = (server.tools.get(name), current.get(name));
            let is_same = locked.map(|it| &it.hash) == current.map(|it| &it.hash);
            let is_accepted =
                current.is_some_and(|it| self.is_accepted(source, LockedKind::Tool, name, &it.hash));
            let state = match (locked, current) {
                _ if is_same && source.lock.basis == LockBasis::File => "same",
                _ if is_accepted => "accepted",
                (None, _) => "new",
                (Some(_), None) => "gone",
                (Some(_), Some(_)) => "changed",
            };
            let (before, after) = (locked.map(|it| &it.definition), current.map(|it| &it.definition));
            LockItem {
                source: source_name.to_owned(),
                tool: name.to_owned(),
                state,
                current: current.cloned(),
                locked_hash: locked.map(|it| it.hash.clone()),
                differences: if is_same { Vec::new() } else { compare_tools(before, after) },
            }
        };
        names.into_iter().map(item).collect()
    }

    /// Returns the lock with the accepted definitions of tools that are still current.
    pub fn file_with_accepted(&self, catalog: &Catalog) -> Option<LockFile> {
        let mut file = self.file.as_deref()?.clone();
        for tool in &catalog.tools {
            let key = LockedKey {
                source: tool.source.clone(),
                kind: LockedKind::Tool,
                name: tool.wire_name.to_string(),
            };
            let is_accepted = self.accepted.hash(&key).is_some_and(|it| *it == tool.locked().hash);
            if let Some(server) = file.servers.get_mut(&tool.source).filter(|_| is_accepted) {
                server.tools.insert(tool.wire_name.to_string(), tool.locked().clone());
            }
        }
        Some(file)
    }
}
