//! Remembers the sources and the definitions of their tools that listeners know. A comparison with a newer catalog gives
//! the events about them.

use crate::registry::SourceRegistry;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use wharf_config::Source;
use wharf_runtime::{Catalog, Handle};

/// The sources and tools of one moment.
pub(super) struct KnownWorld {
    /// Definition hash of each tool, by its id.
    tools: BTreeMap<String, ToolDefinition>,
    /// Sources by id.
    sources: BTreeMap<String, Arc<Source>>,
}

struct ToolDefinition {
    source: String,
    hash: String,
}

/// An event about a source: the name of the source, the kind and the data.
pub(super) type WorldEvent = (String, &'static str, Value);

impl KnownWorld {
    pub(super) fn new(catalog: &Catalog, handle: &Handle, registry: &SourceRegistry) -> KnownWorld {
        let definition = |it: &wharf_runtime::catalog::ToolEntry| ToolDefinition {
            source: it.source.clone(),
            hash: it.definition_hash.clone(),
        };
        let registered = registry.registered();
        let id =
            |name: &str| registered.running(name).map_or_else(|| name.to_owned(), |it| it.row.id.clone());
        KnownWorld {
            tools: catalog.tools.iter().map(|it| (it.id(), definition(it))).collect(),
            sources: handle
                .sources()
                .into_iter()
                .map(|it| (id(it.source.name.expose()), it.source.clone()))
                .collect(),
        }
    }

    /// Replaces the known world by the present one and returns what has changed.
    pub(super) fn update(&mut self, now: KnownWorld) -> Vec<WorldEvent> {
        let mut events: Vec<WorldEvent> = Vec::new();
        let mut tell = |source: &Source, id: &str, change: &str| {
            let data = json!({ "id": id, "change": change });
            events.push((source.name.expose().to_owned(), "source", data));
        };
        for (id, source) in &now.sources {
            match self.sources.get(id) {
                None => tell(source, id, "added"),
                Some(known) if !Arc::ptr_eq(known, source) => tell(source, id, "changed"),
                Some(_) => {}
            }
        }
        for (id, source) in self.sources.iter().filter(|(id, _)| !now.sources.contains_key(*id)) {
            tell(source, id, "removed");
        }
        for (id, tool) in &now.tools {
            if let Some(known) = self.tools.get(id).filter(|it| it.hash != tool.hash) {
                let data = json!({ "tool_id": id, "from": known.hash, "to": tool.hash });
                events.push((tool.source.clone(), "tool_changed", data));
            }
        }
        *self = now;
        events
    }
}
