//! Keeps caller-chosen request ids unique. The journal has one row per id, so a second call with the same id would be
//! missing.

use super::calls::journal_unreadable;
use crate::{api::problem::Problem, journal::Journal};
use http::StatusCode;
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The request ids of calls in flight.
#[derive(Debug, Default)]
pub(in crate::api) struct RequestIds(Mutex<HashSet<String>>);

/// A reserved request id. It is released on drop.
#[derive(Debug)]
pub(super) struct ReservedId<'a> {
    request_ids: &'a RequestIds,
    id: String,
}

impl RequestIds {
    /// Reserves the request id of a call, if its caller chose one. Fails if the id is in use or already in the
    /// journal.
    pub(super) async fn reserve(
        &self,
        id: Option<&str>,
        journal: &Journal,
    ) -> Result<Option<ReservedId<'_>>, Problem> {
        let Some(id) = id else { return Ok(None) };
        let used = || {
            Problem::new(StatusCode::CONFLICT, format!("the `request_id` '{id}' is already in use"))
                .hint("use another `request_id`, or omit it and wharf generates one")
        };
        if !self.in_use().insert(id.to_owned()) {
            return Err(used());
        }
        let reserved = ReservedId { request_ids: self, id: id.to_owned() };
        match journal.calls().await.call(id).await.map_err(|it| journal_unreadable(&it))? {
            Some(_) => Err(used()),
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
