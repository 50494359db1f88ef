//! How long a list may be kept by whoever is given it, and whether it may be shown to others: what servers say about
//! theirs, and what that makes for all of them together.

use crate::stale::LISTS;
use std::time::Duration;
use tokio::time::Instant;
use wharf_mcp::session::{List, Listing};

/// How long a list may be kept, and by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Until when, if at all.
    until: Option<Instant>,
    /// Whether others may see it than whom it was read for.
    pub shared: bool,
}

/// The same for each list that there is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freshnesses([Option<Freshness>; LISTS.len()]);

impl Freshness {
    /// What the server says about a list that was just read; nothing if it has no such list.
    fn of(listing: &Listing) -> Option<Freshness> {
        let has_list = !listing.items.is_empty() || listing.ttl.is_some();
        // Nothing is fresh for no time at all.
        let until = listing.ttl.filter(|it| !it.is_zero()).map(|it| Instant::now() + it);
        has_list.then_some(Freshness { until, shared: !listing.private })
    }

    /// Both together: the shorter time, the narrower circle.
    fn and(self, other: Freshness) -> Freshness {
        let until = self.until.zip(other.until).map(|(one, two)| one.min(two));
        Freshness { until, shared: self.shared && other.shared }
    }

    /// How long from now it may be kept.
    pub fn left(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |it| it.saturating_duration_since(Instant::now()))
    }

    /// Whether it could be kept, and no longer can.
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|it| it <= Instant::now())
    }
}

impl Freshnesses {
    /// A list was read.
    pub(crate) fn note(&mut self, list: List, listing: &Listing) {
        if let Some(at) = place(list) {
            self.0[at] = Freshness::of(listing);
        }
    }

    pub(crate) fn get(&self, list: List) -> Option<Freshness> {
        place(list).and_then(|at| self.0[at])
    }

    /// What one list of all these sources is: as fresh as the least fresh of them.
    pub(crate) fn together(all: impl Iterator<Item = Freshnesses>, list: List) -> Freshness {
        all.filter_map(|it| it.get(list)).reduce(Freshness::and).unwrap_or_default()
    }
}

fn place(list: List) -> Option<usize> {
    LISTS.iter().position(|it| *it == list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_mcp::Raw;

    /// The sources' lists as `milliseconds scope`, and what they make together.
    #[tokio::test(start_paused = true)]
    async fn a_list_is_as_fresh_as_the_least_fresh_of_its_sources() {
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
            let sources: Vec<Freshnesses> = sources.iter().map(|it| source(it)).collect();
            let all = Freshnesses::together(sources.into_iter(), List::Prompts);
            let scope = if all.shared { "public" } else { "private" };
            assert_eq!(format!("{} {scope}", all.left().as_millis()), *expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn freshness_passes() {
        let fresh = source("5000 public").get(List::Prompts).unwrap();
        tokio::time::advance(Duration::from_millis(4_000)).await;
        assert_eq!((fresh.left(), fresh.is_over()), (Duration::from_millis(1_000), false));
        tokio::time::advance(Duration::from_millis(4_000)).await;
        assert_eq!((fresh.left(), fresh.is_over()), (Duration::ZERO, true));
        assert!(!source("0 public").get(List::Prompts).unwrap().is_over());
    }

    fn source(said: &str) -> Freshnesses {
        let some = Listing { items: vec![Raw::empty_object()], private: true, ttl: None };
        let listing = match said.split_once(' ') {
            None if said == "none" => Listing::default(),
            None => some,
            Some((ttl, scope)) => {
                let ttl = Some(Duration::from_millis(ttl.parse().unwrap()));
                Listing { ttl, private: scope == "private", ..some }
            }
        };
        let mut source = Freshnesses::default();
        source.note(List::Prompts, &listing);
        source
    }
}
