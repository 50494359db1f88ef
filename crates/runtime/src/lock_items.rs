//! Lists every locked and every listed tool, prompt and template, and the instructions of each server, with their state.

use crate::{
    SourceState,
    catalog::Catalog,
    lock::{
        Difference, LockState, LockedKind, compare_instructions, compare_items, compare_tools,
        instructions_hash, locked_item,
    },
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wharf_config::{LockBasis, LockFile, LockedItem, LockedServer, Source};
use wharf_mcp::Raw;

/// A tool, prompt, template or the instructions of a server, compared with the lock.
#[derive(Clone, Debug)]
pub struct LockItem {
    /// Name of the source.
    pub source: String,
    /// Kind of the item.
    pub kind: LockedKind,
    /// Name on the wire, or URI template. Empty for instructions.
    pub name: String,
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
            tools: collect_items(tools.map(|it| (it.wire_name.to_string(), it.locked().clone()))),
            prompts: collect_items(prompts.map(|it| item(&it.prompt.name, &it.prompt.raw))),
            templates: collect_items(templates.map(|it| item(&it.item.uri_template, &it.item.raw))),
            ..LockedServer::default()
        }
    }

    /// Returns the current definitions of a source, with those that the lock blocks.
    fn all_definitions(&self, source: &str) -> LockedServer {
        let mut all = self.locked_definitions(source);
        for item in self.changed_items.iter().filter(|it| it.source.name.expose() == source) {
            let items = if item.kind == LockedKind::Prompt { &mut all.prompts } else { &mut all.templates };
            items.insert(item.name.clone(), item.current.clone());
        }
        all
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
    /// Compares all that the sources offer and to which the lock applies, in the order of the sources.
    pub fn items(&self, catalog: &Catalog, sources: &[SourceState]) -> Vec<LockItem> {
        sources.iter().flat_map(|it| self.items_of(catalog, it)).collect()
    }

    fn items_of(&self, catalog: &Catalog, state: &SourceState) -> Vec<LockItem> {
        let source = &*state.source;
        let Some(server) = self.server(source) else { return Vec::new() };
        let current = catalog.all_definitions(source.name.expose());
        let lists = [
            (LockedKind::Tool, &server.tools, current.tools),
            (LockedKind::Prompt, &server.prompts, current.prompts),
            (LockedKind::Template, &server.templates, current.templates),
        ];
        let listed = lists.into_iter().flat_map(|(kind, locked, mut current)| {
            // The lock has every tool of the server, the catalog only those that agent.yaml does not disable.
            let is_disabled = |name: &&String| {
                kind == LockedKind::Tool && source.overrides.find(name).is_some_and(|it| !it.enabled)
            };
            let locked_names = locked.keys().filter(|it| !is_disabled(it));
            let names: BTreeSet<String> = locked_names.chain(current.keys()).cloned().collect();
            let item = |name: String| {
                let current = current.remove(&name);
                self.item(source, kind, locked.get(&name), current, name)
            };
            names.into_iter().map(item).collect::<Vec<_>>()
        });
        let as_item = |text: &str| LockedItem { hash: instructions_hash(text), definition: json!(text) };
        // A server has no instructions before its first session, so missing ones are not "gone".
        let instructions = state.status.instructions.as_deref().map(|text| {
            let locked = server.identity.instructions.as_deref().map(as_item);
            let kind = LockedKind::Instructions;
            self.item(source, kind, locked.as_ref(), Some(as_item(text)), String::new())
        });
        listed.chain(instructions).collect()
    }

    fn item(
        &self,
        source: &Source,
        kind: LockedKind,
        locked: Option<&LockedItem>,
        current: Option<LockedItem>,
        name: String,
    ) -> LockItem {
        let is_same = locked.map(|it| &it.hash) == current.as_ref().map(|it| &it.hash);
        let is_accepted = current.as_ref().is_some_and(|it| self.is_accepted(source, kind, &name, &it.hash));
        let state = match (locked, &current) {
            _ if is_same && source.lock.basis == LockBasis::File => "same",
            _ if is_accepted => "accepted",
            (None, _) => "new",
            (Some(_), None) => "gone",
            (Some(_), Some(_)) => "changed",
        };
        let (before, after) = (locked.map(|it| &it.definition), current.as_ref().map(|it| &it.definition));
        let differences = match kind {
            _ if is_same => Vec::new(),
            LockedKind::Tool => compare_tools(before, after),
            LockedKind::Prompt | LockedKind::Template => compare_items(before, after),
            LockedKind::Instructions => {
                compare_instructions(before.and_then(Value::as_str), after.and_then(Value::as_str))
            }
        };
        let (source, locked_hash) = (source.name.expose().to_owned(), locked.map(|it| it.hash.clone()));
        LockItem { source, kind, name, state, current, locked_hash, differences }
    }

    /// Returns the lock with the accepted definitions that are still current.
    pub fn file_with_accepted(&self, catalog: &Catalog, sources: &[SourceState]) -> Option<LockFile> {
        let mut file = self.file.as_deref()?.clone();
        for item in self.items(catalog, sources).into_iter().filter(|it| it.state == "accepted") {
            let (Some(server), Some(current)) = (file.servers.get_mut(&item.source), item.current) else {
                continue;
            };
            match item.kind {
                LockedKind::Tool => _ = server.tools.insert(item.name, current),
                LockedKind::Prompt => _ = server.prompts.insert(item.name, current),
                LockedKind::Template => _ = server.templates.insert(item.name, current),
                LockedKind::Instructions => {
                    server.identity.instructions = current.definition.as_str().map(str::to_owned);
                }
            }
        }
        Some(file)
    }
}
