//! Finds the prompts and resource templates that differ from the lock. Tools say so themselves.

use super::{ListedSource, Offer, valid_items};
use crate::lock::{Difference, LockState, LockedKind, locked_item};
use std::{collections::HashSet, sync::Arc};
use wharf_config::{LockMode, LockedItem, Source};
use wharf_mcp::Raw;

/// A prompt or template that differs from the lock, and that nobody accepted. Clients see it only if the lock warns.
#[derive(Clone, Debug)]
pub(crate) struct ChangedItem {
    /// Configuration of the source.
    pub(crate) source: Arc<Source>,
    pub(crate) kind: LockedKind,
    /// Name on the wire, or URI template.
    pub(crate) name: String,
    pub(crate) current: LockedItem,
    pub(crate) differences: Arc<[Difference]>,
}

/// Names of the items that clients must not see.
pub(super) struct BlockedItems<'a>(HashSet<(&'a str, LockedKind, &'a str)>);

/// Compares the prompts and templates of all sources with the lock.
pub(super) fn changed_items(listed_sources: &[ListedSource], lock: &LockState) -> Vec<ChangedItem> {
    let locked = listed_sources.iter().filter(|it| lock.server(&it.listing.source).is_some());
    let changed = locked.flat_map(|ListedSource { listing, offer }| {
        items(offer).filter_map(|(kind, name, raw)| {
            let (source, current) = (&listing.source, locked_item(raw));
            let differences = lock.differences(source, kind, name, &current)?;
            Some(ChangedItem { source: source.clone(), kind, name: name.to_owned(), current, differences })
        })
    });
    changed.collect()
}

fn items(offer: &Offer) -> impl Iterator<Item = (LockedKind, &str, &Raw)> {
    let prompts = valid_items(&offer.prompts).map(|it| (LockedKind::Prompt, &*it.name, &it.raw));
    let templates =
        valid_items(&offer.templates).map(|it| (LockedKind::Template, &*it.uri_template, &it.raw));
    prompts.chain(templates)
}

impl BlockedItems<'_> {
    /// Collects those of the changed items that are blocked.
    pub(super) fn of(changed: &[ChangedItem]) -> BlockedItems<'_> {
        let blocked = changed.iter().filter(|it| it.source.lock.mode == LockMode::Enforce);
        BlockedItems(blocked.map(|it| (it.source.name.expose(), it.kind, &*it.name)).collect())
    }

    /// Returns whether the lock allows this item.
    pub(super) fn allows(&self, source: &str, kind: LockedKind, name: &str) -> bool {
        !self.0.contains(&(source, kind, name))
    }
}
