//! The edition of a tool's definition that a call used. Calls do not store it: it follows from the time of the call.

use std::{collections::HashMap, sync::Arc};
use wharf_store::{CallRow, EditionRow, Store, StoreError};

/// Maximum number of tools whose editions are read for one page.
const MAX_TOOLS: usize = 100;

/// The editions of the tools of some calls.
pub(super) struct Editions(HashMap<(Arc<str>, Arc<str>), Vec<EditionRow>>);

impl Editions {
    /// Reads the editions of the tools that these calls used.
    pub(super) async fn of(store: &Store, calls: &[CallRow]) -> Result<Editions, StoreError> {
        let mut editions = HashMap::new();
        for call in calls.iter().filter(|it| !it.source.is_empty()) {
            let key = (call.source.clone(), call.tool_name.clone());
            if editions.len() < MAX_TOOLS && !editions.contains_key(&key) {
                let found = store.tool_editions(&key.0, &key.1).await?;
                editions.insert(key, found);
            }
        }
        Ok(Editions(editions))
    }

    /// Returns the hash of the edition at the time of the call. A call before the first stored edition used that one.
    pub(super) fn hash_of(&self, call: &CallRow) -> Option<&str> {
        let editions = self.0.get(&(call.source.clone(), call.tool_name.clone()))?;
        let edition = editions.iter().find(|it| it.first_seen <= call.execution_start).or(editions.last());
        edition.map(|it| it.definition_hash.as_str())
    }
}
