//! The names that callers give their calls. A name is given once: the journal has one row for each, so a second call of the
//! same name would be missing from it.

use super::calls::unreadable;
use crate::{front::problem::Problem, journal::Journal};
use http::StatusCode;
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The names of calls that are out.
#[derive(Debug, Default)]
pub(in crate::front) struct Ids(Mutex<HashSet<String>>);

/// A name that is in use, until it is dropped.
#[derive(Debug)]
pub(super) struct Named<'a> {
    ids: &'a Ids,
    id: String,
}

impl Ids {
    /// Takes a name for a call, if its caller has given it one that nobody has used.
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
