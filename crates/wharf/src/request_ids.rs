//! Keeps caller-chosen request ids unique, for REST and MCP together. The journal has one row per id, so a second call
//! with the same id would be missing.

use crate::journal::Journal;
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};
use wharf_store::StoreError;

/// Maximum length of a `request_id` or `thread_id`, in characters.
pub(crate) const MAX_ID_CHARS: usize = 256;

/// The request ids of calls in flight.
#[derive(Debug, Default)]
pub(crate) struct RequestIds(Mutex<HashSet<String>>);

/// A reserved request id. It is released on drop.
#[derive(Debug)]
pub(crate) struct ReservedId<'a> {
    request_ids: &'a RequestIds,
    id: String,
}

/// The reason why an id cannot be reserved.
#[derive(Debug)]
pub(crate) enum ReserveError {
    /// A call in flight or in the journal has this id.
    InUse,
    /// The journal cannot be read.
    Unreadable(StoreError),
}

impl RequestIds {
    /// Reserves the request id of a call, if its caller chose one. Fails if the id is in use or already in the
    /// journal.
    pub(crate) async fn reserve(
        &self,
        id: Option<&str>,
        journal: &Journal,
    ) -> Result<Option<ReservedId<'_>>, ReserveError> {
        let Some(id) = id else { return Ok(None) };
        if !self.in_use().insert(id.to_owned()) {
            return Err(ReserveError::InUse);
        }
        let reserved = ReservedId { request_ids: self, id: id.to_owned() };
        match journal.calls().await.call(id).await.map_err(ReserveError::Unreadable)? {
            Some(_) => Err(ReserveError::InUse),
            None => Ok(Some(reserved)),
        }
    }

    fn in_use(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReservedId<'_> {
    fn drop(&mut self) {
        self.request_ids.in_use().remove(&self.id);
    }
}
