//! From the name that a caller uses to a tool.
//!
//! The catalog answers at once. Only a name that it does not know is worth waiting for: its source may still be starting,
//! or may start with this call.

use super::Executor;
use crate::{
    Fault, FaultKind,
    catalog::{Catalog, Discovery, Page, ToolEntry},
    config::Source,
    fault::Stage,
    names,
};
use std::sync::Arc;

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

    /// What callers of a source are told that cannot be used, if the name speaks of one.
    fn left_out(&self, name: &str) -> Option<Arc<Fault>> {
        let absent = self.absent.borrow();
        let spoken_of =
            |source: &str| follows(name, source, ":") || follows(name, &names::normal(source), "__");
        absent.iter().find(|(source, _)| spoken_of(source)).map(|(_, fault)| fault.clone())
    }

    /// The catalog once every source that may have the tool has been heard.
    async fn look_closer(&self, name: &str, catalog: &Catalog) -> Arc<Catalog> {
        let pointed = pointed_at(name, catalog);
        if let [page] = pointed[..]
            && matches!(page.discovery, Discovery::Asleep | Discovery::Failed(_))
        {
            self.refresh(&page.berth).await;
        }
        // A reading that fails while a caller waits for it is a failed call.
        pending(name, catalog).for_each(|it| it.berth.stale().note_waiting_caller());
        self.catalog_when(|it| it.tool(name).is_some() || pending(name, it).next().is_none()).await
    }
}

/// The sources that the name speaks of: by `source:`, or else by their prefix.
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

/// The sources that may have the tool and are being read.
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

/// There is no such tool; or a source that did not answer may have it.
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
