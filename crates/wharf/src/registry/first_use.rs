//! Accepts the first listing of a registered server, so that later changes of it are noticed.

use super::SourceRegistry;
use crate::accepted_definitions::accepted_definitions;
use serde_json::Value;
use wharf_config::{LockBasis, LockedItem, sha256};
use wharf_runtime::{Catalog, Handle, lock::LockedKind};
use wharf_store::{AcceptedDefinition, StoreError};

/// The principal of definitions that were accepted because the server was used for the first time.
const FIRST_USE: &str = "first-use";

/// Accepts what a source offers in this catalog if `[lock] registered` is `first-use` and no listing has been accepted.
pub(super) async fn accept_first_listing(
    registry: &SourceRegistry,
    handle: &Handle,
    catalog: &Catalog,
    source: &str,
) -> Result<(), StoreError> {
    let states = handle.sources();
    let Some(state) = states.iter().find(|it| it.source.name.expose() == source) else { return Ok(()) };
    let is_locked =
        state.source.lock.basis != LockBasis::FirstUse || handle.lock().accepted.first_use(source).is_some();
    if is_locked {
        return Ok(());
    }
    let current = catalog.locked_definitions(source);
    let kinds = [
        (LockedKind::Tool, current.tools),
        (LockedKind::Prompt, current.prompts),
        (LockedKind::Template, current.templates),
    ];
    let rows = kinds.into_iter().flat_map(|(kind, items)| {
        items
            .into_iter()
            .map(move |(name, LockedItem { hash, definition })| row(source, kind, name, hash, definition))
    });
    let text = state.status.instructions.as_deref();
    let hash = sha256(text.unwrap_or_default().as_bytes());
    let first = row(source, LockedKind::Instructions, String::new(), hash, text.into());
    let store = &registry.shared.store;
    store.accept_first_listing(&first, &rows.collect::<Vec<_>>()).await?;
    tracing::info!(target: "wharf::lock", source, "the first listing is accepted");
    handle.set_accepted_definitions(accepted_definitions(store).await?);
    Ok(())
}

fn row(source: &str, kind: LockedKind, name: String, hash: String, definition: Value) -> AcceptedDefinition {
    AcceptedDefinition {
        source: source.to_owned(),
        kind: kind.as_str().to_owned(),
        name,
        hash,
        definition: definition.to_string(),
        principal: FIRST_USE.to_owned(),
        reason: None,
        accepted_at: 0,
    }
}
