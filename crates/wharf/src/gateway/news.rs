//! Forwards catalog changes and unsolicited server notifications to clients, and subscribes at sources to the
//! resources that clients watch.

use super::{Gateway, questions::ClientRoots, resource_owners::ResourceOwners, routing};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time;
use wharf_mcp::{News, Raw, serve::Service};
use wharf_runtime::{Catalog, Event, EventKind, Handle};

/// Minimum interval between two notifications about roots.
const ROOT_CHANGE_INTERVAL: Duration = Duration::from_millis(200);

/// Announces changes to all clients until the runtime has shut down.
pub(crate) async fn announce(service: Service<Gateway>, handle: Handle) {
    let lists = announce_lists(&service, &handle);
    let events = announce_events(&service, &handle);
    let watches = sync_subscriptions(&service, &handle);
    let roots = forward_root_changes(&service, &handle);
    tokio::join!(lists, events, watches, roots);
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
            EventKind::ResourceUpdated(uri) => service.announce(News::ResourceUpdated(uri)),
            EventKind::Log { level, logger, data, of_call: false } => {
                let logger = logger.map_or(source.to_string(), |it| format!("{source}/{it}"));
                let line = json!({ "level": level, "logger": logger, "data": data });
                service.announce(News::Log(line.into()));
            }
            EventKind::ElicitationComplete(params) => {
                service.handler().elicitations.complete(&source, params);
            }
            // The missed events may include an update of any watched resource, so all of them are announced as
            // updated.
            EventKind::Missed(_) => {
                let all = watched.borrow().clone();
                all.iter().for_each(|it| service.announce(News::ResourceUpdated(it.clone())));
            }
            _ => {}
        }
    }
}

/// Tells servers that the roots of a client have changed. Changes that come quickly are forwarded as one.
async fn forward_root_changes(service: &Service<Gateway>, handle: &Handle) {
    let mut changes = service.handler().root_changes.subscribe();
    // Ends with the catalog, that is, with the runtime.
    let mut catalogs = handle.catalogs();
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            ended = catalogs.changed() => match ended {
                Ok(()) => continue,
                Err(_) => return,
            },
        }
        let client = changes.borrow_and_update().clone();
        if let Some(client) = client {
            handle.roots_changed(Arc::new(ClientRoots(client))).await;
            time::sleep(ROOT_CHANGE_INTERVAL).await;
        }
    }
}

/// Keeps each source's subscriptions equal to the set of resources that clients watch.
async fn sync_subscriptions(service: &Service<Gateway>, handle: &Handle) {
    let owners = &service.handler().resource_owners;
    let (mut watched, mut catalogs, mut assigned) =
        (service.watched(), handle.catalogs(), owners.subscribe());
    loop {
        assigned.mark_unchanged();
        let uris = watched.borrow_and_update().clone();
        let catalog = catalogs.borrow_and_update().clone();
        for (source, uris) in by_source(handle, &catalog, &uris, owners) {
            // A source that has been removed sends no updates.
            let _ = handle.watch(&source, uris);
        }
        let changed = tokio::select! {
            changed = watched.changed() => changed,
            changed = catalogs.changed() => changed,
            changed = assigned.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Groups the watched URIs by source. A URI stays with its last known source while that source is down. Sources
/// without any get an empty set, which ends their subscriptions.
fn by_source(
    handle: &Handle,
    catalog: &Catalog,
    uris: &Arc<BTreeSet<String>>,
    owners: &ResourceOwners,
) -> BTreeMap<String, BTreeSet<String>> {
    owners.trim(|uri| uris.contains(uri));
    let sources = handle.sources().into_iter();
    let mut wanted: BTreeMap<String, BTreeSet<String>> =
        sources.map(|it| (it.source.name.expose().to_owned(), BTreeSet::new())).collect();
    for uri in uris.iter() {
        if let Some(owner) = routing::owner(catalog, uri) {
            owners.set(uri, &owner);
        }
        if let Some(watched) = owners.get(uri).and_then(|it| wanted.get_mut(&it)) {
            watched.insert(uri.clone());
        }
    }
    wanted
}

/// Compares two catalogs and returns a notification for each list that differs.
fn changes(before: &Catalog, after: &Catalog) -> Vec<News> {
    let tools = |it: &Catalog| -> Vec<(String, String)> {
        let shown = it.tools.iter().filter(|it| it.blocked.is_none());
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
