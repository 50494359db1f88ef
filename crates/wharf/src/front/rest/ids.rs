//! Keeps caller-chosen request ids unique. The journal has one row per id, so a second call with the same id would be
//! missing.

use super::calls::unreadable;
use crate::{front::problem::Problem, journal::Journal};
use http::StatusCode;
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The request ids of calls in flight.
#[derive(Debug, Default)]
pub(in crate::front) struct Ids(Mutex<HashSet<String>>);

/// A reserved request id. It is released on drop.
#[derive(Debug)]
pub(super) struct Named<'a> {
    ids: &'a Ids,
    id: String,
}

impl Ids {
    /// Reserves the request id of a call, if its caller chose one. Fails if the id is in use or already in the
    /// journal.
    pub(super) async fn take(
        &self,
        id: Option<&str>,
        journal: &Journal,
    ) -> Result<Option<Named<'_>>, Problem> {
        let Some(id) = id else { return Ok(None) };
        let used = || {
            Problem::new(StatusCode::CONFLICT, format!("there is a call '{id}' already"))
                .hint("each call has a `request_id` of its own; without one it is given one")
        };
        if !self.out().insert(id.to_owned()) {
            return Err(used());
        }
        let named = Named { ids: self, id: id.to_owned() };
        match journal.calls().await.call(id).await.map_err(|it| unreadable(&it))? {
            Some(_) => Err(used()),
            None => Ok(Some(named)),
        }
    }

    fn out(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        self.ids.out().remove(&self.id);
    }
}
