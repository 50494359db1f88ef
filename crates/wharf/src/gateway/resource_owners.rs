//! Finds the sources of resources that no list and no template names, and remembers which source answered for one.

use super::error;
use std::collections::HashMap;
use tokio::sync::watch;
use wharf_mcp::RpcError;
use wharf_runtime::Handle;

/// Maximum number of remembered resources that no client watches.
const MAX_REMEMBERED: usize = 10_000;

/// A capability of a server and a part of it.
pub(super) type ServerCapability = (&'static str, Option<&'static str>);

pub(super) const RESOURCES: ServerCapability = ("resources", None);
pub(super) const SUBSCRIPTIONS: ServerCapability = ("resources", Some("subscribe"));
pub(super) const COMPLETIONS: ServerCapability = ("completions", None);

/// Sources of resources, by URI.
#[derive(Debug, Default)]
pub(super) struct ResourceOwners(watch::Sender<HashMap<String, String>>);

impl ResourceOwners {
    /// Remembers the source of a resource. Its subscription moves to that source.
    pub(super) fn set(&self, uri: &str, source: &str) {
        self.0.send_if_modified(|owners| {
            let differs = owners.get(uri).is_none_or(|it| it != source);
            let has_room = owners.len() < MAX_REMEMBERED || owners.contains_key(uri);
            if differs && has_room {
                owners.insert(uri.to_owned(), source.to_owned());
            }
            differs && has_room
        });
    }

    pub(super) fn forget(&self, uri: &str) {
        self.0.send_if_modified(|owners| owners.remove(uri).is_some());
    }

    pub(super) fn get(&self, uri: &str) -> Option<String> {
        self.0.borrow().get(uri).cloned()
    }

    /// Forgets resources that are not watched, once there are too many.
    pub(super) fn trim(&self, is_watched: impl Fn(&str) -> bool) {
        self.0.send_if_modified(|owners| {
            if owners.len() >= MAX_REMEMBERED {
                owners.retain(|uri, _| is_watched(uri));
            }
            false
        });
    }

    /// Returns a receiver that sees every change.
    pub(super) fn subscribe(&self) -> watch::Receiver<HashMap<String, String>> {
        self.0.subscribe()
    }

    /// Returns the sources that may have the resource: the remembered one, then all with this capability, in the
    /// order of the configuration.
    pub(super) fn candidates(
        &self,
        handle: &Handle,
        uri: &str,
        (name, part): ServerCapability,
    ) -> Vec<String> {
        let remembered = self.get(uri);
        let capable = handle.sources().into_iter().filter(|it| it.status.offers(name, part));
        let capable = capable.map(|it| it.source.name.expose().to_owned());
        let others = capable.filter(|it| Some(it) != remembered.as_ref());
        remembered.clone().into_iter().chain(others).collect()
    }
}

/// Returns the error for a resource that none of several sources knows. A source that failed for another reason may be
/// the one that has it.
pub(super) fn error_of_all(failures: Vec<RpcError>, uri: &str, modern: bool) -> RpcError {
    let only = failures.len() == 1;
    let failure = failures.into_iter().find(|it| only || !error::is_not_found(it));
    failure.unwrap_or_else(|| error::no_resource(uri, modern))
}
