//! Serialized lists of a catalog: written once per revision, served as bytes.

use super::{Gateway, VIA, invalid, result_resources, tool_mode::ToolMode};
use serde_json::json;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use wharf_config::ResultReader;
use wharf_mcp::{
    Raw, RpcError,
    serve::{self, Client, Incoming},
    session::{Era, List},
};
use wharf_runtime::{
    Catalog,
    catalog::{Sourced, ToolEntry},
    own_tool::OwnTool,
    result_handle::ResultTool,
    tool_search::{SearchedTool, ToolIndex, call_tool, find_tools},
};

/// Caches the lists of the catalog revision that was requested last.
#[derive(Debug, Default)]
pub(super) struct ListCache {
    cached: Mutex<Option<Arc<CachedLists>>>,
}

#[derive(Debug)]
struct CachedLists {
    revision: u64,
    has_handles: bool,
    tools: Raw,
    prompts: Raw,
    resources: Raw,
    templates: Raw,
    /// The list for clients that search, written at its first use.
    searching: OnceLock<Raw>,
    /// The index of the listed tools, built at the first search.
    index: OnceLock<ToolIndex>,
}

impl Gateway {
    /// Serves a list that merges all sources. Modern-era clients also receive its cache hints.
    pub(super) async fn list(
        &self,
        list: List,
        request: &Incoming,
        client: &Client,
    ) -> Result<Raw, RpcError> {
        reject_cursor(request.members.cursor.as_ref())?;
        let catalog = self.settled().await;
        let fresh = catalog.freshness(list);
        if fresh.is_over() {
            self.handle.refresh_expired(list);
        }
        let searching = (list == List::Tools
            && self.tool_mode.is_search(client, request.http.as_deref(), &catalog))
        .then_some(&*self.tool_mode);
        let written = self.lists.of(&catalog, list, self.handle.has_handles_for(VIA), searching);
        Ok(match client.terms().era {
            Era::Modern => serve::complete_list(&written, fresh.left(), fresh.shared, &self.about),
            Era::Legacy => written,
        })
    }
}

impl ListCache {
    /// Returns a list. `has_handles` says whether clients get handles to large results, `searching` is set for a client that
    /// searches for tools.
    pub(super) fn of(
        &self,
        catalog: &Catalog,
        list: List,
        has_handles: bool,
        searching: Option<&ToolMode>,
    ) -> Raw {
        let cached = self.cached(catalog, has_handles);
        match list {
            List::Tools => match searching {
                Some(mode) => cached.searching(catalog, mode),
                None => cached.tools.clone(),
            },
            List::Prompts => cached.prompts.clone(),
            List::Resources => cached.resources.clone(),
            List::Templates => cached.templates.clone(),
        }
    }

    /// Returns the tools that fit a question. The index is built at the first search of a catalog.
    pub(super) fn search<'a>(
        &self,
        catalog: &'a Catalog,
        question: &str,
        limit: usize,
    ) -> Vec<&'a Arc<ToolEntry>> {
        let has_handles = {
            let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
            cached.as_ref().is_some_and(|it| it.has_handles)
        };
        let cached = self.cached(catalog, has_handles);
        let tools: Vec<&Arc<ToolEntry>> = listed(catalog).collect();
        let index = cached.index.get_or_init(|| ToolIndex::new(tools.iter().map(|it| SearchedTool::of(it))));
        index.search(question, limit).into_iter().map(|at| tools[at]).collect()
    }

    fn cached(&self, catalog: &Catalog, has_handles: bool) -> Arc<CachedLists> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some(known) if known.revision == catalog.revision && known.has_handles == has_handles => {
                known.clone()
            }
            _ => cached.insert(Arc::new(CachedLists::of(catalog, has_handles))).clone(),
        }
    }
}

impl CachedLists {
    fn of(catalog: &Catalog, has_handles: bool) -> CachedLists {
        let own =
            ResultTool::ALL.into_iter().filter(|_| has_handles).map(|it| own_tool(it.definition(), true));
        let tools = Raw::list(listed(catalog).map(|it| shown_tool(it, has_handles)).chain(own));
        let own_template = has_handles.then(result_resources::template);
        let templates = raw_items(&catalog.templates, |it| (&it.uri_template, &it.raw), own_template);
        let prompts = Raw::list(catalog.prompts.iter().map(|it| with_name(&it.prompt.raw, &it.name)));
        CachedLists {
            revision: catalog.revision,
            has_handles,
            tools: list("tools", tools),
            prompts: list("prompts", prompts),
            resources: list("resources", raw_items(&catalog.resources, |it| (&it.uri, &it.raw), None)),
            templates: list("resourceTemplates", templates),
            searching: OnceLock::new(),
            index: OnceLock::new(),
        }
    }

    /// Returns the list for clients that search: the pinned tools, and our own.
    fn searching(&self, catalog: &Catalog, mode: &ToolMode) -> Raw {
        let write = || {
            let pinned =
                listed(catalog).filter(|it| mode.is_pinned(it)).map(|it| shown_tool(it, self.has_handles));
            let search = [own_tool(find_tools(), true), own_tool(call_tool(), false)];
            let reading = ResultTool::ALL.into_iter().filter(|_| self.has_handles);
            let own = search.into_iter().chain(reading.map(|it| own_tool(it.definition(), true)));
            list("tools", Raw::list(pinned.chain(own).collect::<Vec<_>>()))
        };
        self.searching.get_or_init(write).clone()
    }
}

/// Returns the tools that clients may see: sources in the order of the file, and their tools by wire name. Some servers list
/// in another order each time; equal bytes let the caches of model providers hit.
fn listed(catalog: &Catalog) -> impl Iterator<Item = &Arc<ToolEntry>> {
    let usable = catalog.tools.iter().filter(|it| it.quarantined.is_none() && it.blocked.is_none());
    let mut tools: Vec<&Arc<ToolEntry>> = usable.collect();
    for of_source in tools.chunk_by_mut(|one, two| one.source == two.source) {
        of_source.sort_by(|one, two| one.wire_name.cmp(&two.wire_name));
    }
    tools.into_iter()
}

/// Rejects every cursor: a list has only one page, so the gateway never issues one.
fn reject_cursor(cursor: Option<&Raw>) -> Result<(), RpcError> {
    match cursor.filter(|it| it.as_str() != "\"\"") {
        None => Ok(()),
        Some(_) => Err(invalid("invalid `cursor`: this list has one page")),
    }
}

/// Replaces the definition's name with its shown name and keeps everything else as the server sent it.
fn with_name(raw: &Raw, name: &str) -> Raw {
    raw.with("name", &json!(name).into())
}

/// Returns the definition of a tool. A client that gets a handle gets no structured content, so it sees no schema of it.
fn shown_tool(tool: &ToolEntry, has_handles: bool) -> Raw {
    let shown = with_name(&tool.raw, &tool.name);
    match has_handles && tool.config().results.is_for(ResultReader::Mcp) {
        true => shown.without(&["outputSchema"]),
        false => shown,
    }
}

fn own_tool(tool: OwnTool, is_read_only: bool) -> Raw {
    let OwnTool { name, description, input_schema } = tool;
    let mut definition = json!({ "name": name, "description": description, "inputSchema": input_schema });
    if is_read_only {
        definition["annotations"] = json!({ "readOnlyHint": true, "openWorldHint": false });
    }
    definition.into()
}

/// Lists each URI once: as the first of its sources describes it, which also answers for it. `own` is listed last.
fn raw_items<T>(items: &[Sourced<T>], parts: impl Fn(&T) -> (&String, &Raw), own: Option<Raw>) -> Raw {
    let mut listed = HashSet::new();
    let parts = items.iter().map(|it| parts(&it.item)).filter(|(uri, _)| listed.insert(*uri));
    Raw::list(parts.map(|(_, raw)| raw.clone()).chain(own).collect::<Vec<_>>())
}

fn list(key: &str, items: Raw) -> Raw {
    Raw::object([(key, items)])
}
