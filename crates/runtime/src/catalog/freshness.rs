//! Computes how long clients may cache a list and whether the cache may be shared, from the values that the servers
//! declare.

use crate::lists_to_refresh::ALL_LISTS;
use std::time::Duration;
use tokio::time::Instant;
use wharf_mcp::session::{List, Listing};

/// Cache lifetime and scope of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// End of the cache lifetime, if the list may be cached.
    until: Option<Instant>,
    /// Whether the cached list may be shared between clients.
    pub shared: bool,
}

/// Cache lifetime and scope of every kind of list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreshnessByList([Option<Freshness>; ALL_LISTS.len()]);

impl Freshness {
    /// Reads the server's declaration for a list just received. Returns `None` if the server has no such list.
    fn of(listing: &Listing) -> Option<Freshness> {
        let has_list = !listing.items.is_empty() || listing.ttl.is_some();
        // A lifetime of zero means that the list must not be cached.
        let until = listing.ttl.filter(|it| !it.is_zero()).map(|it| Instant::now() + it);
        has_list.then_some(Freshness { until, shared: !listing.private })
    }

    /// Combines two lists: the shorter lifetime, and shared only if both are.
    fn and(self, other: Freshness) -> Freshness {
        let until = self.until.zip(other.until).map(|(one, two)| one.min(two));
        Freshness { until, shared: self.shared && other.shared }
    }

    /// Returns the remaining cache lifetime.
    pub fn left(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |it| it.saturating_duration_since(Instant::now()))
    }

    /// Returns whether the list had a cache lifetime that has expired.
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|it| it <= Instant::now())
    }
}

impl FreshnessByList {
    /// Records the declaration of a list just read.
    pub(crate) fn note(&mut self, list: List, listing: &Listing) {
        if let Some(at) = list_index(list) {
            self.0[at] = Freshness::of(listing);
        }
    }

    pub(crate) fn get(&self, list: List) -> Option<Freshness> {
        list_index(list).and_then(|at| self.0[at])
    }

    /// Combines one list of all sources: the shortest lifetime and the narrowest scope.
    pub(crate) fn combined(all: impl Iterator<Item = FreshnessByList>, list: List) -> Freshness {
        all.filter_map(|it| it.get(list)).reduce(Freshness::and).unwrap_or_default()
    }
}

fn list_index(list: List) -> Option<usize> {
    ALL_LISTS.iter().position(|it| *it == list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_mcp::Raw;

    /// Each case: the lists of the sources as `milliseconds scope`, and the combined result.
    #[tokio::test(start_paused = true)]
    async fn combined_list_has_the_shortest_lifetime_and_narrowest_scope() {
        let cases: &[(&[&str], &str)] = &[
            (&[], "0 private"),
            (&["none"], "0 private"),
            (&["5000 public"], "5000 public"),
            (&["5000 public", "none"], "5000 public"),
            (&["5000 public", "800 public"], "800 public"),
            (&["800 public", "5000 private"], "800 private"),
            (&["5000 public", "0 public"], "0 public"),
            (&["5000 public", "silent"], "0 private"),
        ];
        for (sources, expected) in cases {
            let sources: Vec<FreshnessByList> = sources.iter().map(|it| source(it)).collect();
            let all = FreshnessByList::combined(sources.into_iter(), List::Prompts);
            let scope = if all.shared { "public" } else { "private" };
            assert_eq!(format!("{} {scope}", all.left().as_millis()), *expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn freshness_expires() {
        let fresh = source("5000 public").get(List::Prompts).unwrap();
        tokio::time::advance(Duration::from_millis(4_000)).await;
        assert_eq!((fresh.left(), fresh.is_over()), (Duration::from_millis(1_000), false));
        tokio::time::advance(Duration::from_millis(4_000)).await;
        assert_eq!((fresh.left(), fresh.is_over()), (Duration::ZERO, true));
        assert!(!source("0 public").get(List::Prompts).unwrap().is_over());
    }

    fn source(declared: &str) -> FreshnessByList {
        let some = Listing { items: vec![Raw::empty_object()], private: true, ttl: None };
        let listing = match declared.split_once(' ') {
            None if declared == "none" => Listing::default(),
            None => some,
            Some((ttl, scope)) => {
                let ttl = Some(Duration::from_millis(ttl.parse().unwrap()));
                Listing { ttl, private: scope == "private", ..some }
            }
        };
        let mut source = FreshnessByList::default();
        source.note(List::Prompts, &listing);
        source
    }
}
