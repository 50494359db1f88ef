//! Reads the definitions that operators have accepted.

use wharf_runtime::lock::{AcceptedDefinitions, LockedKey, LockedKind};
use wharf_store::{AcceptedDefinition, Store, StoreError};

/// Reads the accepted definitions from the database. Rows of unknown kinds, from a newer version, are ignored.
pub(crate) async fn accepted_definitions(store: &Store) -> Result<AcceptedDefinitions, StoreError> {
    let accepted = |it: AcceptedDefinition| {
        let key = LockedKey { source: it.source, kind: LockedKind::parse(&it.kind)?, name: it.name };
        Some((key, it.hash))
    };
    Ok(store.accepted_definitions().await?.into_iter().filter_map(accepted).collect())
}
