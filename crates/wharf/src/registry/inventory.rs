//! Stores the tools and the health of sources in the database whenever they change.

use super::{SourceRegistry, first_use::accept_first_listing};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{self, Instant};
use wharf_runtime::{
    Catalog, EventKind, Handle,
    catalog::{DisabledTools, Discovery, ToolEntry, tool_id},
};
use wharf_store::{ListedTool, Store, StoreError, ToolDates, ToolRow};

/// Pause before a failed write is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Writes the inventory of sources.
#[derive(Debug)]
pub(crate) struct Inventory {
    store: Store,
    /// The stored inventory, by source.
    stored: Mutex<HashMap<String, StoredInventory>>,
}

/// The hash and the dates of the stored tools of a source.
#[derive(Debug)]
struct StoredInventory {
    hash: String,
    /// Dates of the tools, by wire name.
    dates: HashMap<String, ToolDates>,
}

/// The tools of one source by wire name. If several have the same name, the first one counts.
#[derive(Debug)]
pub(crate) struct ListedTools<'a> {
    tools: BTreeMap<&'a str, &'a ToolEntry>,
    /// Hash over names and definitions, independent of the order of the list.
    pub(crate) hash: String,
}

impl<'a> ListedTools<'a> {
    /// Collects the tools of a source from a catalog.
    pub(crate) fn of(source: &str, catalog: &'a Catalog) -> ListedTools<'a> {
        let mut tools: BTreeMap<&str, &ToolEntry> = BTreeMap::new();
        for tool in catalog.tools.iter().filter(|it| it.source == source) {
            tools.entry(&*tool.wire_name).or_insert(tool);
        }
        let mut hash = Sha256::new();
        for (name, tool) in &tools {
            hash.update(name);
            hash.update([0]);
            hash.update(&tool.definition_hash);
            hash.update([0]);
        }
        let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        ListedTools { tools, hash }
    }

    /// Converts the tools to the store's type.
    pub(crate) fn rows(&self) -> Vec<ListedTool> {
        let row = |it: &&ToolEntry| ListedTool {
            wire_name: it.wire_name.as_ref().to_owned(),
            definition: it.listed.as_str().to_owned(),
            definition_hash: it.definition_hash.clone(),
        };
        self.tools.values().map(row).collect()
    }
}

impl Inventory {
    pub(super) fn new(store: Store) -> Inventory {
        Inventory { store, stored: Mutex::default() }
    }

    /// Stores the tools of a source if they have changed. `id` is set for a registered source.
    pub(crate) async fn store_tools(
        &self,
        source: &str,
        id: Option<&str>,
        listed: &ListedTools<'_>,
    ) -> Result<(), StoreError> {
        if self.stored().get(source).is_some_and(|it| it.hash == listed.hash) {
            return Ok(());
        }
        self.store.replace_tools(source, &listed.rows()).await?;
        if let Some(id) = id {
            self.store.store_inventory_hash(id, &listed.hash).await?;
        }
        let dates = self.store.tool_dates(source).await?;
        let dates = dates.into_iter().map(|it| (it.wire_name.clone(), it)).collect();
        self.stored().insert(source.to_owned(), StoredInventory { hash: listed.hash.clone(), dates });
        Ok(())
    }

    /// When a tool was first listed and when its definition last changed, if it is stored already.
    pub(crate) fn dates(&self, source: &str, wire_name: &str) -> Option<ToolDates> {
        self.stored().get(source)?.dates.get(wire_name).cloned()
    }

    /// The hash of the stored tools of a source.
    pub(crate) fn hash(&self, source: &str) -> Option<String> {
        self.stored().get(source).map(|it| it.hash.clone())
    }

    /// Drops the cached hash of a removed source, so that a new source with this name is stored again.
    pub(super) fn forget(&self, source: &str) {
        self.stored().remove(source);
    }

    fn stored(&self) -> MutexGuard<'_, HashMap<String, StoredInventory>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the disabled tools and the reasons.
pub(crate) async fn disabled_tools(store: &Store) -> Result<DisabledTools, StoreError> {
    let reason = |it: ToolRow| (tool_id(&it.source, &it.wire_name), it.reason.unwrap_or_default());
    Ok(store.disabled_tools().await?.into_iter().map(reason).collect())
}

/// Stores every change of tools and health. Retries failed writes until the runtime has shut down.
pub(super) async fn follow(registry: &SourceRegistry, handle: Handle) {
    let mut events = handle.changes();
    // The first pass stores lists that were read before the subscription began.
    let mut retry_at = Some(Instant::now() + RETRY_PAUSE);
    loop {
        let stored = tokio::select! {
            event = events.next() => match event.map(|it| (it.source, it.what)) {
                Some((source, EventKind::Listed { .. })) => store_listed_tools(registry, &handle, &source).await,
                Some((source, EventKind::Health(_))) => store_health(registry, &handle, Some(&source)).await,
                Some((_, EventKind::Missed(_))) => store_all(registry, &handle).await,
                Some(_) => continue,
                // The runtime has shut down.
                None => return,
            },
            () = sleep_until_due(retry_at) => {
                retry_at = None;
                store_all(registry, &handle).await
            }
        };
        if let Err(error) = stored {
            retry_at = retry_at.or(Some(Instant::now() + RETRY_PAUSE));
            tracing::warn!(target: "wharf::sources", "the tools and health of servers could not be stored, retrying later: {error}");
        }
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn store_all(registry: &SourceRegistry, handle: &Handle) -> Result<(), StoreError> {
    for state in handle.sources() {
        store_listed_tools(registry, handle, state.source.name.expose()).await?;
    }
    store_health(registry, handle, None).await
}

async fn store_listed_tools(
    registry: &SourceRegistry,
    handle: &Handle,
    source: &str,
) -> Result<(), StoreError> {
    let (registered, catalog) = (registry.registered(), handle.catalog());
    if !matches!(catalog.discovery(source), Some(Discovery::Done)) {
        return Ok(());
    }
    let id = registered.running(source).map(|it| it.row.id.as_str());
    registry.inventory().store_tools(source, id, &ListedTools::of(source, &catalog)).await?;
    accept_first_listing(registry, handle, &catalog, source).await
}

/// Stores the health of one registered source, or of all.
async fn store_health(
    registry: &SourceRegistry,
    handle: &Handle,
    source: Option<&str>,
) -> Result<(), StoreError> {
    let registered = registry.registered();
    for state in handle.sources() {
        let name = state.source.name.expose();
        let Some(entry) = registered.running(name).filter(|_| source.is_none_or(|it| it == name)) else {
            continue;
        };
        let (health, failures) = (state.status.health.as_str(), i64::from(state.status.failures));
        registry.shared.store.store_health(&entry.row.id, health, failures).await?;
    }
    Ok(())
}
