//! Resolves the name in a call to a tool.
//!
//! A known name is found in the catalog without waiting. For an unknown name the executor waits for sources that may
//! offer it: one may still be starting, or this call may start it.

use super::Executor;
use crate::{
    Fault, FaultKind,
    catalog::{Catalog, Discovery, SourceListing, ToolEntry, tool_names},
    fault::Stage,
};
use std::sync::Arc;

impl Executor {
    pub(super) async fn resolve(&self, name: &str) -> Result<Arc<ToolEntry>, Arc<Fault>> {
        let catalog = self.catalog_when(|_| true).await;
        if let Some(tool) = catalog.tool(name) {
            return Ok(tool.clone());
        }
        if let Some(fault) = self.unavailable_fault(name) {
            return Err(fault);
        }
        let catalog = self.wait_for_candidates(name, &catalog).await;
        match catalog.tool(name) {
            Some(tool) => Ok(tool.clone()),
            None => Err(unknown_tool(name, &catalog)),
        }
    }

    /// Returns the fault of an unusable source if `name` refers to one.
    pub(crate) fn unavailable_fault(&self, name: &str) -> Option<Arc<Fault>> {
        let unavailable_sources = self.unavailable_sources.borrow();
        let is_named = |source: &str| {
            has_prefix(name, source, ":") || has_prefix(name, &tool_names::normalize(source), "__")
        };
        unavailable_sources.iter().find(|(source, _)| is_named(source)).map(|(_, fault)| fault.clone())
    }

    /// Waits until every source that may offer the tool has been listed. Lists a source that has not been listed yet,
    /// or whose listing failed, if the name refers to exactly one.
    async fn wait_for_candidates(&self, name: &str, catalog: &Catalog) -> Arc<Catalog> {
        let candidates = candidate_listings(name, catalog);
        if let [listing] = candidates[..]
            && matches!(listing.discovery, Discovery::NotStarted | Discovery::Failed(_))
            && let Ok(active_source) = self.active_source(&listing.source)
        {
            self.refresh(&active_source).await;
        }
        // A listing that fails while a call waits for it counts as a failed call.
        let waited_for = pending(name, catalog).filter_map(|it| self.active_source(&it.source).ok());
        waited_for.for_each(|it| it.lists_to_refresh().note_waiting_caller());
        self.catalog_when(|it| it.tool(name).is_some() || pending(name, it).next().is_none()).await
    }
}

/// Returns the sources that `name` refers to, by `source:` or else by their prefix.
fn candidate_listings<'a>(name: &str, catalog: &'a Catalog) -> Vec<&'a SourceListing> {
    let named: Vec<&SourceListing> =
        catalog.listings.iter().filter(|it| has_prefix(name, it.source.name.expose(), ":")).collect();
    if !named.is_empty() {
        return named;
    }
    let prefixed = |it: &&SourceListing| {
        let prefix = it.source.prefix.expose();
        !prefix.is_empty() && has_prefix(name, prefix, "__")
    };
    catalog.listings.iter().filter(prefixed).collect()
}

/// Returns the sources that may offer the tool and are still being listed.
fn pending<'a>(name: &str, catalog: &'a Catalog) -> impl Iterator<Item = &'a SourceListing> {
    let mut listings = candidate_listings(name, catalog);
    if listings.is_empty() {
        listings = catalog.listings.iter().collect();
    }
    listings.into_iter().filter(|it| matches!(it.discovery, Discovery::Pending))
}

fn has_prefix(name: &str, start: &str, separator: &str) -> bool {
    name.strip_prefix(start).is_some_and(|rest| rest.starts_with(separator))
}

/// Builds the fault for an unknown name: ambiguous, possibly offered by a source whose listing failed, or not found.
fn unknown_tool(name: &str, catalog: &Catalog) -> Arc<Fault> {
    let candidates = candidate_listings(name, catalog);
    let failed_listing = |listings: &[&SourceListing]| {
        listings.iter().find_map(|it| match &it.discovery {
            Discovery::Failed(fault) => Some(fault.clone()),
            Discovery::NotStarted | Discovery::Pending | Discovery::Done => None,
        })
    };
    let all: Vec<&SourceListing> = catalog.listings.iter().collect();
    let same = catalog.tools.iter().filter(|it| *it.wire_name == *name);
    let same: Vec<&str> = same.map(|it| it.name.as_str()).collect();
    if !same.is_empty() {
        return not_found(
            format!("several servers have a tool '{name}'"),
            format!("choose one: {}", same.join(", ")),
        );
    }
    let candidates_or_all = if candidates.is_empty() { &all } else { &candidates };
    if let Some(fault) = failed_listing(candidates_or_all).filter(|_| !catalog.is_misspelt(name)) {
        return fault;
    }
    let hint = match catalog.nearest(name) {
        Some(near) => format!("did you mean `{near}`? `wharf tools` lists all tools"),
        None => "`wharf tools` lists all tools".to_owned(),
    };
    not_found(format!("there is no tool '{name}'"), hint)
}

fn not_found(cause: String, hint: String) -> Arc<Fault> {
    Arc::new(Fault::local(FaultKind::ToolNotFound, Stage::Resolve, cause, Some(hint)))
}
