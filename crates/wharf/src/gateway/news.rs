//! Tells clients what has changed, each kind of list for itself.

use super::Gateway;
use wharf_mcp::{News, serve::Service};
use wharf_runtime::{Catalog, Handle, Happening};

/// Tells every client of changes, until the runtime is gone.
pub(crate) async fn announce(service: Service<Gateway>, handle: Handle) {
    let lists = announce_lists(&service, &handle);
    let resources = announce_resources(&service, &handle);
    tokio::join!(lists, resources);
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

async fn announce_resources(service: &Service<Gateway>, handle: &Handle) {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let Happening::ResourceUpdated(uri) = event.what {
            service.announce(News::ResourceUpdated(uri));
        }
    }
}

/// What differs between two catalogs.
fn changes(before: &Catalog, after: &Catalog) -> Vec<News> {
    let tools = |it: &Catalog| -> Vec<(String, String)> {
        it.tools.iter().map(|it| (it.name.clone(), it.definition_hash.clone())).collect()
    };
    let prompts = |it: &Catalog| -> Vec<(String, Vec<u8>)> {
        it.prompts.iter().map(|it| (it.name.clone(), it.prompt.raw.as_bytes().to_vec())).collect()
    };
    let resources = |it: &Catalog| -> Vec<Vec<u8>> {
        let resources = it.resources.iter().map(|it| it.item.raw.as_bytes().to_vec());
        resources.chain(it.templates.iter().map(|it| it.item.raw.as_bytes().to_vec())).collect()
    };
    let changed = [
        (tools(before) != tools(after), News::ToolsChanged),
        (prompts(before) != prompts(after), News::PromptsChanged),
        (resources(before) != resources(after), News::ResourcesChanged),
    ];
    changed.into_iter().filter(|(changed, _)| *changed).map(|(_, news)| news).collect()
}
