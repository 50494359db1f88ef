//! The resources that clients want to hear of, each for as long as somebody does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// How many different resources all clients together may watch.
const MOST: usize = 10_000;

/// What is watched, by how many.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    counts: Mutex<BTreeMap<String, usize>>,
    all: watch::Sender<Arc<BTreeSet<String>>>,
}

/// One client's interest in one resource, until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    uri: String,
    watched: Watched,
}

impl Watched {
    /// Somebody wants to hear of this resource; `None` if too much is watched already.
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

    /// Everything that is watched, now and later.
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
