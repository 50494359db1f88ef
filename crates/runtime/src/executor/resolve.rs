//! Resolves the name in a call to a tool.
//!
//! A known name is found in the catalog without waiting. For an unknown name the executor waits for sources that may
//! offer it: one may still be starting, or this call may start it.

use super::Executor;
use crate::{
    Fault, FaultKind,
    catalog::{Catalog, Discovery, Page, ToolEntry},
    fault::Stage,
    names,
};
use std::sync::Arc;
use wharf_config::Source;

impl Executor {
    pub(super) async fn resolve(&self, name: &str) -> Result<Arc<ToolEntry>, Arc<Fault>> {
        let catalog = self.catalog_when(|_| true).await;
        if let Some(tool) = catalog.tool(name) {
            return Ok(tool.clone());
        }
        if let Some(fault) = self.left_out(name) {
            return Err(fault);
        }
        let catalog = self.look_closer(name, &catalog).await;
        match catalog.tool(name) {
            Some(tool) => Ok(tool.clone()),
            None => Err(unknown(name, &catalog)),
        }
    }

    /// Returns the fault of an unusable source if `name` refers to one.
    fn left_out(&self, name: &str) -> Option<Arc<Fault>> {
        let absent = self.absent.borrow();
        let spoken_of =
            |source: &str| follows(name, source, ":") || follows(name, &names::normal(source), "__");
        absent.iter().find(|(source, _)| spoken_of(source)).map(|(_, fault)| fault.clone())
    }

    /// Waits until every source that may offer the tool has been listed. Lists a source that has not been listed yet,
    /// or whose listing failed, if the name refers to exactly one.
    async fn look_closer(&self, name: &str, catalog: &Catalog) -> Arc<Catalog> {
        let pointed = pointed_at(name, catalog);
        if let [page] = pointed[..]
            && matches!(page.discovery, Discovery::Asleep | Discovery::Failed(_))
        {
            self.refresh(&page.berth).await;
        }
        // A listing that fails while a call waits for it counts as a failed call.
        pending(name, catalog).for_each(|it| it.berth.stale().note_waiting_caller());
        self.catalog_when(|it| it.tool(name).is_some() || pending(name, it).next().is_none()).await
    }
}

/// Returns the sources that `name` refers to, by `source:` or else by their prefix.
fn pointed_at<'a>(name: &str, catalog: &'a Catalog) -> Vec<&'a Page> {
    let source = |it: &Page| -> Arc<Source> { it.berth.source().clone() };
    let named: Vec<&Page> =
        catalog.pages.iter().filter(|it| follows(name, source(it).name.expose(), ":")).collect();
    if !named.is_empty() {
        return named;
    }
    let prefixed = |it: &&Page| {
        let source = source(it);
        let prefix = source.prefix.expose();
        !prefix.is_empty() && follows(name, prefix, "__")
    };
    catalog.pages.iter().filter(prefixed).collect()
}

/// Returns the sources that may offer the tool and are still being listed.
fn pending<'a>(name: &str, catalog: &'a Catalog) -> impl Iterator<Item = &'a Page> {
    let mut pages = pointed_at(name, catalog);
    if pages.is_empty() {
        pages = catalog.pages.iter().collect();
    }
    pages.into_iter().filter(|it| matches!(it.discovery, Discovery::Pending))
}

fn follows(name: &str, start: &str, separator: &str) -> bool {
    name.strip_prefix(start).is_some_and(|rest| rest.starts_with(separator))
}

/// Builds the fault for an unknown name: ambiguous, possibly offered by a source whose listing failed, or not found.
fn unknown(name: &str, catalog: &Catalog) -> Arc<Fault> {
    let pointed = pointed_at(name, catalog);
    let silent = |pages: &[&Page]| {
        pages.iter().find_map(|it| match &it.discovery {
            Discovery::Failed(fault) => Some(fault.clone()),
            Discovery::Asleep | Discovery::Pending | Discovery::Done => None,
        })
    };
    let everyone: Vec<&Page> = catalog.pages.iter().collect();
    let same: Vec<&str> = catalog.tools_called(name).map(|it| it.name.as_str()).collect();
    if !same.is_empty() {
        return not_found(
            format!("several servers have a tool '{name}'"),
            format!("say which: {}", same.join(", ")),
        );
    }
    let asked = if pointed.is_empty() { &everyone } else { &pointed };
    if let Some(fault) = silent(asked).filter(|_| !catalog.is_misspelt(name)) {
        return fault;
    }
    let hint = match catalog.nearest(name) {
        Some(near) => format!("did you mean `{near}`? `wharf tools` lists what there is"),
        None => "`wharf tools` lists what there is".to_owned(),
    };
    not_found(format!("there is no tool '{name}'"), hint)
}

fn not_found(cause: String, hint: String) -> Arc<Fault> {
    Arc::new(Fault::ours(FaultKind::ToolNotFound, Stage::Resolve, cause, Some(hint)))
}
