//! Stores the tools and the health of sources in the database whenever they change.

use super::Registry;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{self, Instant};
use wharf_runtime::{
    Catalog, Handle, Happening,
    catalog::{Discovery, SwitchedOff, ToolEntry, tool_id},
};
use wharf_store::{ListedTool, Store, StoreError, ToolRow};

/// Pause before a failed write is retried.
const AGAIN: Duration = Duration::from_secs(5);

/// Writes the inventory of sources.
#[derive(Debug)]
pub(crate) struct Inventory {
    store: Store,
    /// Hash of the stored inventory, by source.
    noted: Mutex<HashMap<String, String>>,
}

/// The tools of one source by wire name. If several have the same name, the first one counts.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    tools: BTreeMap<&'a str, &'a ToolEntry>,
    /// Hash over names and definitions, independent of the order of the list.
    pub(crate) hash: String,
}

impl<'a> Listed<'a> {
    /// Collects the tools of a source from a catalog.
    pub(crate) fn of(source: &str, catalog: &'a Catalog) -> Listed<'a> {
        let mut tools: BTreeMap<&str, &ToolEntry> = BTreeMap::new();
        for tool in catalog.tools.iter().filter(|it| it.source == source) {
            tools.entry(tool.wire_name.as_str()).or_insert(tool);
        }
        let mut hash = Sha256::new();
        for (name, tool) in &tools {
            hash.update(name);
            hash.update([0]);
            hash.update(&tool.definition_hash);
            hash.update([0]);
        }
        let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Listed { tools, hash }
    }

    /// Converts the tools to the store's type.
    pub(crate) fn rows(&self) -> Vec<ListedTool> {
        let row = |it: &&ToolEntry| ListedTool {
            wire_name: it.wire_name.clone(),
            definition: it.raw.as_str().to_owned(),
            definition_hash: it.definition_hash.clone(),
        };
        self.tools.values().map(row).collect()
    }
}

impl Inventory {
    pub(super) fn new(store: Store) -> Inventory {
        Inventory { store, noted: Mutex::default() }
    }

    /// Stores the tools of a source if they have changed. `id` is set for a registered source.
    pub(crate) async fn note(
        &self,
        source: &str,
        id: Option<&str>,
        listed: &Listed<'_>,
    ) -> Result<(), StoreError> {
        if self.noted().get(source) == Some(&listed.hash) {
            return Ok(());
        }
        self.store.replace_tools(source, &listed.rows()).await?;
        if let Some(id) = id {
            self.store.note_inventory(id, &listed.hash).await?;
        }
        self.noted().insert(source.to_owned(), listed.hash.clone());
        Ok(())
    }

    /// The hash of the stored tools of a source.
    pub(crate) fn hash(&self, source: &str) -> Option<String> {
        self.noted().get(source).cloned()
    }

    /// Drops the cached hash of a removed source, so that a new source with this name is stored again.
    pub(super) fn forget(&self, source: &str) {
        self.noted().remove(source);
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the disabled tools and the reasons.
pub(crate) async fn switched_off(store: &Store) -> Result<SwitchedOff, StoreError> {
    let reason = |it: ToolRow| (tool_id(&it.source, &it.wire_name), it.reason.unwrap_or_default());
    Ok(store.disabled_tools().await?.into_iter().map(reason).collect())
}

/// Stores every change of tools and health. Retries failed writes until the runtime has shut down.
pub(super) async fn follow(registry: &Registry, handle: Handle) {
    let mut events = handle.changes();
    // The first pass stores lists that were read before the subscription began.
    let mut owed = Some(Instant::now() + AGAIN);
    loop {
        let noted = tokio::select! {
            event = events.next() => match event.map(|it| (it.source, it.what)) {
                Some((source, Happening::Listed { .. })) => note_offer(registry, &handle, &source).await,
                Some((source, Happening::Health(_))) => note_health(registry, &handle, Some(&source)).await,
                Some((_, Happening::Missed(_))) => note_all(registry, &handle).await,
                Some(_) => continue,
                // The runtime has shut down.
                None => return,
            },
            () = until(owed) => {
                owed = None;
                note_all(registry, &handle).await
            }
        };
        if let Err(error) = noted {
            owed = owed.or(Some(Instant::now() + AGAIN));
            tracing::warn!(target: "wharf::sources", "the tools and states of servers are written down later: {error}");
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn note_all(registry: &Registry, handle: &Handle) -> Result<(), StoreError> {
    for state in handle.sources() {
        note_offer(registry, handle, state.source.name.expose()).await?;
    }
    note_health(registry, handle, None).await
}

async fn note_offer(registry: &Registry, handle: &Handle, source: &str) -> Result<(), StoreError> {
    let (book, catalog) = (registry.book(), handle.catalog());
    if !matches!(catalog.discovery(source), Some(Discovery::Done)) {
        return Ok(());
    }
    let id = book.running(source).map(|it| it.row.id.as_str());
    registry.inventory().note(source, id, &Listed::of(source, &catalog)).await
}

/// Stores the health of one registered source, or of all.
async fn note_health(registry: &Registry, handle: &Handle, source: Option<&str>) -> Result<(), StoreError> {
    let book = registry.book();
    for state in handle.sources() {
        let name = state.source.name.expose();
        let Some(entry) = book.running(name).filter(|_| source.is_none_or(|it| it == name)) else { continue };
        let (health, failures) = (state.standing.health.as_str(), i64::from(state.standing.failures));
        registry.shared.store.note_health(&entry.row.id, health, failures).await?;
    }
    Ok(())
}
