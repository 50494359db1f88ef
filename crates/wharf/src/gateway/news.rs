//! Tells clients what has changed and what servers say unasked, and has servers tell us what clients want to hear.

use super::{Gateway, bridge};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use wharf_mcp::{News, Raw, serve::Service};
use wharf_runtime::{Catalog, Event, Handle, Happening};

/// Tells every client of changes, until the runtime is gone.
pub(crate) async fn announce(service: Service<Gateway>, handle: Handle) {
    let lists = announce_lists(&service, &handle);
    let events = announce_events(&service, &handle);
    let watches = keep_watch(&service, &handle);
    tokio::join!(lists, events, watches);
}

async fn announce_lists(service: &Service<Gateway>, handle: &Handle) {
    let mut catalogs = handle.catalogs();
    let mut known = catalogs.borrow_and_update().clone();
    while catalogs.changed().await.is_ok() {
        let catalog = catalogs.borrow_and_update().clone();
        changes(&known, &catalog).into_iter().for_each(|it| service.announce(it));
        known = catalog;
    }
}

async fn announce_events(service: &Service<Gateway>, handle: &Handle) {
    let (mut events, watched) = (handle.changes(), service.watched());
    while let Some(Event { source, what, .. }) = events.next().await {
        match what {
            Happening::ResourceUpdated(uri) => service.announce(News::ResourceUpdated(uri)),
            Happening::Log { level, logger, data, of_call: false } => {
                let logger = logger.map_or(source.to_string(), |it| format!("{source}/{it}"));
                let line = json!({ "level": level, "logger": logger, "data": data });
                service.announce(News::Log(line.into()));
            }
            // Any of them may have been among those.
            Happening::Missed(_) => {
                let all = watched.borrow().clone();
                all.iter().for_each(|it| service.announce(News::ResourceUpdated(it.clone())));
            }
            _ => {}
        }
    }
}

/// Has each source tell of those of its resources that clients watch, from the first of them to the last.
async fn keep_watch(service: &Service<Gateway>, handle: &Handle) {
    let (mut watched, mut catalogs) = (service.watched(), handle.catalogs());
    let mut owners = HashMap::new();
    loop {
        let uris = watched.borrow_and_update().clone();
        let catalog = catalogs.borrow_and_update().clone();
        for (source, uris) in by_source(handle, &catalog, &uris, &mut owners) {
            // One that is gone tells nobody anything.
            let _ = handle.watch(&source, uris);
        }
        let changed = tokio::select! {
            changed = watched.changed() => changed,
            changed = catalogs.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// What is to be watched at each source. A resource whose source is down for a moment stays that source's.
fn by_source(
    handle: &Handle,
    catalog: &Catalog,
    uris: &Arc<BTreeSet<String>>,
    owners: &mut HashMap<String, String>,
) -> BTreeMap<String, BTreeSet<String>> {
    owners.retain(|uri, _| uris.contains(uri));
    let sources = handle.sources().into_iter();
    let mut wanted: BTreeMap<String, BTreeSet<String>> =
        sources.map(|it| (it.source.name.expose().to_owned(), BTreeSet::new())).collect();
    for uri in uris.iter() {
        if let Some(owner) = bridge::owner(catalog, uri) {
            owners.insert(uri.clone(), owner);
        }
        if let Some(watched) = owners.get(uri).and_then(|it| wanted.get_mut(it)) {
            watched.insert(uri.clone());
        }
    }
    wanted
}

/// What differs between two catalogs.
fn changes(before: &Catalog, after: &Catalog) -> Vec<News> {
    let tools = |it: &Catalog| -> Vec<(String, String)> {
        let shown = it.tools.iter().filter(|it| it.disabled.is_none());
        shown.map(|it| (it.name.clone(), it.definition_hash.clone())).collect()
    };
    let prompts = |it: &Catalog| -> Vec<(String, Raw)> {
        it.prompts.iter().map(|it| (it.name.clone(), it.prompt.raw.clone())).collect()
    };
    let resources = |it: &Catalog| -> Vec<Raw> {
        let resources = it.resources.iter().map(|it| it.item.raw.clone());
        resources.chain(it.templates.iter().map(|it| it.item.raw.clone())).collect()
    };
    let changed = [
        (tools(before) != tools(after), News::ToolsChanged),
        (prompts(before) != prompts(after), News::PromptsChanged),
        (resources(before) != resources(after), News::ResourcesChanged),
    ];
    changed.into_iter().filter(|(changed, _)| *changed).map(|(_, news)| news).collect()
}
