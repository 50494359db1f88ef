//! Serialized lists of a catalog: written once per revision, served as bytes.

use super::invalid;
use serde_json::json;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};
use wharf_mcp::{Raw, RpcError, session::List};
use wharf_runtime::{Catalog, catalog::Sourced};

/// Caches the lists of the catalog revision that was requested last.
#[derive(Debug, Default)]
pub(super) struct ListCache {
    cached: Mutex<Option<Arc<CachedLists>>>,
}

#[derive(Debug)]
struct CachedLists {
    revision: u64,
    tools: Raw,
    prompts: Raw,
    resources: Raw,
    templates: Raw,
}

impl ListCache {
    pub(super) fn of(&self, catalog: &Catalog, list: List) -> Raw {
        let cached = self.cached(catalog);
        match list {
            List::Tools => cached.tools.clone(),
            List::Prompts => cached.prompts.clone(),
            List::Resources => cached.resources.clone(),
            List::Templates => cached.templates.clone(),
        }
    }

    fn cached(&self, catalog: &Catalog) -> Arc<CachedLists> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some(known) if known.revision == catalog.revision => known.clone(),
            _ => cached.insert(Arc::new(CachedLists::of(catalog))).clone(),
        }
    }
}

impl CachedLists {
    fn of(catalog: &Catalog) -> CachedLists {
        let tools = catalog.tools.iter().filter(|it| it.quarantined.is_none() && it.disabled.is_none());
        let tools = Raw::list(tools.map(|it| with_name(&it.raw, &it.name)));
        let prompts = Raw::list(catalog.prompts.iter().map(|it| with_name(&it.prompt.raw, &it.name)));
        CachedLists {
            revision: catalog.revision,
            tools: list("tools", tools),
            prompts: list("prompts", prompts),
            resources: list("resources", raw_items(&catalog.resources, |it| (&it.uri, &it.raw))),
            templates: list(
                "resourceTemplates",
                raw_items(&catalog.templates, |it| (&it.uri_template, &it.raw)),
            ),
        }
    }
}

/// Rejects every cursor: a list has only one page, so the gateway never issues one.
pub(super) fn reject_cursor(cursor: Option<&Raw>) -> Result<(), RpcError> {
    match cursor.filter(|it| it.as_str() != "\"\"") {
        None => Ok(()),
        Some(_) => Err(invalid("invalid `cursor`: this list has one page")),
    }
}

/// Replaces the definition's name with its shown name and keeps everything else as the server sent it.
fn with_name(raw: &Raw, name: &str) -> Raw {
    raw.with("name", &json!(name).into())
}

/// Lists each URI once: as the first of its sources describes it, which also answers for it.
fn raw_items<T>(items: &[Sourced<T>], parts: impl Fn(&T) -> (&String, &Raw)) -> Raw {
    let mut listed = HashSet::new();
    let parts = items.iter().map(|it| parts(&it.item)).filter(|(uri, _)| listed.insert(*uri));
    Raw::list(parts.map(|(_, raw)| raw.clone()).collect::<Vec<_>>())
}

fn list(key: &str, items: Raw) -> Raw {
    Raw::object([(key, items)])
}
