//! Counts the subscribers of each resource and publishes the set of subscribed resources.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// Maximum number of different resources that all clients together may subscribe to.
const MAX_SUBSCRIBED_RESOURCES: usize = 10_000;

/// Subscriber counts by resource URI.
#[derive(Clone, Debug, Default)]
pub(super) struct SubscribedResources(Arc<SubscriberCounts>);

#[derive(Debug, Default)]
struct SubscriberCounts {
    counts: Mutex<BTreeMap<String, usize>>,
    all: watch::Sender<Arc<BTreeSet<String>>>,
}

/// One client's subscription to one resource. Dropping it unsubscribes.
#[derive(Debug)]
pub(crate) struct ResourceSubscription {
    uri: String,
    watched: SubscribedResources,
}

impl SubscribedResources {
    /// Adds a subscriber to this resource. Returns `None` if the limit is reached.
    pub(super) fn subscribe(&self, uri: &str) -> Option<ResourceSubscription> {
        let mut counts = self.counts();
        if counts.len() >= MAX_SUBSCRIBED_RESOURCES && !counts.contains_key(uri) {
            return None;
        }
        let count = counts.entry(uri.to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            self.publish(&counts);
        }
        Some(ResourceSubscription { uri: uri.to_owned(), watched: self.clone() })
    }

    /// Returns the set of subscribed resources, as a channel that publishes every change.
    pub(super) fn all(&self) -> watch::Receiver<Arc<BTreeSet<String>>> {
        self.0.all.subscribe()
    }

    fn publish(&self, counts: &BTreeMap<String, usize>) {
        self.0.all.send_replace(Arc::new(counts.keys().cloned().collect()));
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResourceSubscription {
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        let mut counts = self.watched.counts();
        if let Some(count) = counts.get_mut(&self.uri) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.uri);
                self.watched.publish(&counts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_published_from_its_first_to_its_last_subscriber() {
        let watched = SubscribedResources::default();
        let all = watched.all();
        let seen = || all.borrow().iter().cloned().collect::<Vec<_>>().join(" ");
        let one = watched.subscribe("a").unwrap();
        let two = watched.subscribe("a").unwrap();
        let other = watched.subscribe("b").unwrap();
        assert_eq!(seen(), "a b");
        drop(one);
        assert_eq!(seen(), "a b");
        drop(two);
        assert_eq!(seen(), "b");
        drop(other);
        assert_eq!(seen(), "");
    }
}
