//! Serialized lists of a catalog: written once per revision, served as bytes.

use super::invalid;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use wharf_mcp::{Raw, RpcError, session::List};
use wharf_runtime::{
    Catalog,
    catalog::{Freshness, Sourced},
};

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
            resources: list("resources", raw_items(&catalog.resources, |it| &it.raw)),
            templates: list("resourceTemplates", raw_items(&catalog.templates, |it| &it.raw)),
        }
    }
}

/// Rejects every cursor: a list has only one page, so the gateway never issues one.
pub(super) fn reject_cursor(params: Option<&Raw>) -> Result<(), RpcError> {
    let cursor =
        params.and_then(|it| it.member("cursor")).filter(|it| !matches!(it.as_str(), "null" | "\"\""));
    match cursor {
        None => Ok(()),
        Some(_) => Err(invalid("invalid `cursor`: this list has one page")),
    }
}

/// Adds `ttlMs` and `cacheScope` to a list. A list that must not be cached stays unchanged, because that is the
/// default.
pub(super) fn with_hints(list: Raw, fresh: Freshness) -> Raw {
    let left = u64::try_from(fresh.left().as_millis()).unwrap_or(u64::MAX);
    if left == 0 && !fresh.shared {
        return list;
    }
    let scope = if fresh.shared { "public" } else { "private" };
    list.with("ttlMs", &json!(left).into()).with("cacheScope", &json!(scope).into())
}

/// Replaces the definition's name with its shown name and keeps everything else as the server sent it.
fn with_name(raw: &Raw, name: &str) -> Raw {
    raw.with("name", &json!(name).into())
}

fn raw_items<T>(items: &[Sourced<T>], raw: impl Fn(&T) -> &Raw) -> Raw {
    Raw::list(items.iter().map(|it| raw(&it.item).clone()))
}

fn list(key: &str, items: Raw) -> Raw {
    Raw::object([(key, items)])
}
