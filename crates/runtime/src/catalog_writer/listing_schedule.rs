//! Tracks the listing of one source: its current entries and when to read them again.

use super::retry::Retry;
use crate::{
    Fault,
    active_source::ActiveSource,
    catalog::{Discovery, ListedSource, Offer, SourceListing},
    circuit_breaker::BreakerState,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use wharf_mcp::session::List;

/// Minimum interval between two listings of a source.
const MIN_LISTING_INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct ListingSchedule {
    pub(super) active_source: Arc<ActiveSource>,
    pub(super) listed_source: ListedSource,
    reading: bool,
    read_at: Option<Instant>,
    /// Whether a listing has succeeded at least once.
    was_listed: bool,
    /// Retry state, if failed listings are retried in the background.
    retry: Option<Retry>,
}

/// A listing that is about to start.
pub(super) struct DueListing {
    pub(super) wanted: Vec<List>,
    /// Whether a caller requested it.
    pub(super) requested: bool,
    /// Whether the catalog has to be published because the source is now pending.
    pub(super) became_pending: bool,
}

impl ListingSchedule {
    pub(super) fn new(active_source: Arc<ActiveSource>, retries: bool) -> ListingSchedule {
        let source = active_source.source();
        if source.load_tools {
            active_source.lists_to_refresh().mark(List::Tools);
        }
        if source.load_prompts {
            active_source.lists_to_refresh().mark(List::Prompts);
        }
        let is_listed_at_start = source.load_tools || source.load_prompts;
        if is_listed_at_start {
            active_source.lists_to_refresh().mark(List::Resources);
            active_source.lists_to_refresh().mark(List::Templates);
        }
        let discovery = if is_listed_at_start { Discovery::Pending } else { Discovery::NotStarted };
        let listing = SourceListing {
            source: source.clone(),
            discovery,
            reads: 0,
            fresh: Default::default(),
            unread: Vec::new(),
        };
        let listed_source = ListedSource { listing, offer: Offer::default() };
        // A source that starts with its first call is not started in the background.
        let retry = (retries && is_listed_at_start).then(|| Retry::new(source.endpoint.is_remote()));
        ListingSchedule {
            active_source,
            listed_source,
            reading: false,
            read_at: None,
            was_listed: false,
            retry,
        }
    }

    pub(super) fn is_of(&self, active_source: &Arc<ActiveSource>) -> bool {
        Arc::ptr_eq(&self.active_source, active_source)
    }

    /// Starts a listing if one is due.
    pub(super) fn start_due(&mut self, now: Instant) -> Option<DueListing> {
        let is_retry = !self.is_due(now);
        if is_retry && self.retry_at().is_none_or(|it| it > now) {
            return None;
        }
        self.reading = true;
        let lists_to_refresh = self.active_source.lists_to_refresh();
        let (requested, mut wanted) = (lists_to_refresh.take_requested(), lists_to_refresh.take());
        wanted.extend(self.retry.iter_mut().flat_map(|it| std::mem::take(&mut it.lists)));
        // A background retry does not make the source pending, so clients do not wait for it.
        let became_pending = !is_retry && self.mark_pending();
        Some(DueListing { wanted, requested, became_pending })
    }

    /// Stores the result of a successful listing.
    pub(super) fn succeeded(&mut self, offer: Offer) {
        self.ended();
        let failures = self.retry.as_mut().map_or(0, Retry::succeeded);
        if failures > 0 {
            let (source, tools) = (&**self.active_source.name(), offer.tools.len());
            tracing::info!(target: "wharf::source", source, tools, failures, "`{source}` is available");
        }
        for (list, fault) in &offer.unread {
            let (source, hint) = (&**self.active_source.name(), fault.hint.as_deref());
            tracing::warn!(target: "wharf::source", source, hint, "could not read {}: {fault}", list.method());
        }
        self.was_listed = true;
        (self.listed_source.offer, self.listed_source.listing.discovery) = (offer, Discovery::Done);
    }

    /// Records a failed listing. Keeps the previous entries.
    pub(super) fn failed(&mut self, fault: Arc<Fault>, mut lists: Vec<List>) {
        self.ended();
        if let Some(retry) = &mut self.retry {
            // Requests that arrived during this listing have failed with it, so their lists join the retry.
            lists.extend(self.active_source.lists_to_refresh().take());
            if retry.failed(&fault, lists) {
                let (source, hint) = (&**self.active_source.name(), fault.hint.as_deref());
                tracing::warn!(target: "wharf::source", source, hint, "{fault}; retrying in the background");
            }
        }
        self.listed_source.listing.discovery = Discovery::Failed(fault);
    }

    fn ended(&mut self) {
        self.reading = false;
        self.read_at = Some(Instant::now());
        self.listed_source.listing.reads += 1;
    }

    /// Returns the earliest time at which the next listing becomes due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let wanted = self.is_wanted().then_some(self.read_at).flatten().map(|it| it + MIN_LISTING_INTERVAL);
        [wanted, self.retry_at()].into_iter().flatten().min()
    }

    /// Returns whether a list needs a refresh. Unless a caller asks, a source that was never listed is not started,
    /// and a source with an open breaker is not read.
    fn is_wanted(&self) -> bool {
        let active_source = &self.active_source;
        let not_started = matches!(self.listed_source.listing.discovery, Discovery::NotStarted);
        let breaker_open =
            !matches!(active_source.circuit_breaker().snapshot().state, BreakerState::Closed { .. });
        !self.reading
            && active_source.lists_to_refresh().has_marks()
            && (active_source.lists_to_refresh().is_requested() || !not_started && !breaker_open)
    }

    fn is_due(&self, now: Instant) -> bool {
        let interval_passed = self.read_at.is_none_or(|it| it + MIN_LISTING_INTERVAL <= now);
        self.is_wanted() && (interval_passed || self.active_source.lists_to_refresh().is_requested())
    }

    /// Returns the time of the next background retry. It waits until an open breaker allows a call, and does not run
    /// beside a probe. A server that was stopped as idle stays stopped if its lists are known.
    fn retry_at(&self) -> Option<Instant> {
        let at = self.retry.as_ref().filter(|_| !self.reading)?.at()?;
        if self.was_listed && self.active_source.is_stopped_as_idle() {
            return None;
        }
        match self.active_source.circuit_breaker().snapshot().state {
            BreakerState::Closed { .. } => Some(at),
            BreakerState::Open { until } => Some(at.max(until)),
            BreakerState::HalfOpen => None,
        }
    }

    /// Marks a source without a current listing as pending, so that new callers wait for this listing instead of
    /// requesting another.
    fn mark_pending(&mut self) -> bool {
        let discovery = &mut self.listed_source.listing.discovery;
        let became_pending = matches!(discovery, Discovery::NotStarted | Discovery::Failed(_));
        if became_pending {
            *discovery = Discovery::Pending;
        }
        became_pending
    }
}
