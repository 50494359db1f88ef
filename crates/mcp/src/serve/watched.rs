//! Counts the subscribers of each resource and publishes the set of subscribed resources.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// Maximum number of different resources that all clients together may subscribe to.
const MOST: usize = 10_000;

/// Subscriber counts by resource URI.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<BTreeMap<String, usize>>,
    all: watch::Sender<Arc<BTreeSet<String>>>,
}

/// One client's subscription to one resource. Dropping it unsubscribes.
#[derive(Debug)]
pub(crate) struct Hold {
    uri: String,
    watched: Watched,
}

impl Watched {
    /// Adds a subscriber to this resource. Returns `None` if the limit is reached.
    pub(super) fn hold(&self, uri: &str) -> Option<Hold> {
        let mut counts = self.counts();
        if counts.len() >= MOST && !counts.contains_key(uri) {
            return None;
        }
        let count = counts.entry(uri.to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            self.tell(&counts);
        }
        Some(Hold { uri: uri.to_owned(), watched: self.clone() })
    }

    /// Returns the set of subscribed resources, as a channel that publishes every change.
    pub(super) fn all(&self) -> watch::Receiver<Arc<BTreeSet<String>>> {
        self.0.all.subscribe()
    }

    fn tell(&self, counts: &BTreeMap<String, usize>) {
        self.0.all.send_replace(Arc::new(counts.keys().cloned().collect()));
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut counts = self.watched.counts();
        if let Some(count) = counts.get_mut(&self.uri) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.uri);
                self.watched.tell(&counts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_watched_from_the_first_to_the_last() {
        let watched = Watched::default();
        let all = watched.all();
        let seen = || all.borrow().iter().cloned().collect::<Vec<_>>().join(" ");
        let one = watched.hold("a").unwrap();
        let two = watched.hold("a").unwrap();
        let other = watched.hold("b").unwrap();
        assert_eq!(seen(), "a b");
        drop(one);
        assert_eq!(seen(), "a b");
        drop(two);
        assert_eq!(seen(), "b");
        drop(other);
        assert_eq!(seen(), "");
    }
}
