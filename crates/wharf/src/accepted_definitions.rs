//! Reads the definitions that operators have accepted.

use serde_json::Value;
use wharf_runtime::lock::{AcceptedDefinitions, LockedKey, LockedKind};
use wharf_store::{Store, StoreError};

/// Reads the accepted definitions from the database. Rows of unknown kinds, from a newer version, are ignored.
pub(crate) async fn accepted_definitions(store: &Store) -> Result<AcceptedDefinitions, StoreError> {
    let mut accepted = AcceptedDefinitions::default();
    for row in store.accepted_definitions().await? {
        let Some(kind) = LockedKind::parse(&row.kind) else { continue };
        let key = LockedKey { source: row.source, kind, name: row.name };
        let definition = serde_json::from_str(&row.definition).unwrap_or(Value::Null);
        accepted.insert(key, row.hash, definition);
    }
    Ok(accepted)
}
