//! Tracks the listing of one source: its current entries and when to read them again.

use super::retry::Retry;
use crate::{
    Fault,
    berth::Berth,
    breaker::Breaker,
    catalog::{Discovery, Offer, Page, Sheet},
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use wharf_mcp::session::List;

/// Minimum interval between two listings of a source.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Desk {
    pub(super) sheet: Sheet,
    reading: bool,
    read_at: Option<Instant>,
    /// Whether a listing has succeeded at least once.
    was_listed: bool,
    /// Retry state, if failed listings are retried in the background.
    retry: Option<Retry>,
}

/// A listing that is about to start.
pub(super) struct Begun {
    pub(super) wanted: Vec<List>,
    /// Whether a caller requested it.
    pub(super) asked: bool,
    /// Whether the catalog has to be published because the source is now pending.
    pub(super) woken: bool,
}

impl Desk {
    pub(super) fn new(berth: Arc<Berth>, retries: bool) -> Desk {
        let source = berth.source();
        if source.load_tools {
            berth.stale().mark(List::Tools);
        }
        if source.load_prompts {
            berth.stale().mark(List::Prompts);
        }
        let awake = source.load_tools || source.load_prompts;
        if awake {
            berth.stale().mark(List::Resources);
            berth.stale().mark(List::Templates);
        }
        let discovery = if awake { Discovery::Pending } else { Discovery::Asleep };
        let page = Page { berth, discovery, reads: 0, fresh: Default::default(), unread: Vec::new() };
        let sheet = Sheet { page, offer: Offer::default() };
        // A source that starts with its first call is not started in the background.
        let retry = (retries && awake).then(Retry::default);
        Desk { sheet, reading: false, read_at: None, was_listed: false, retry }
    }

    pub(super) fn is_of(&self, berth: &Arc<Berth>) -> bool {
        Arc::ptr_eq(self.berth(), berth)
    }

    fn berth(&self) -> &Arc<Berth> {
        &self.sheet.page.berth
    }

    /// Starts a listing if one is due.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Begun> {
        let is_retry = !self.is_due(now);
        if is_retry && self.retry_at().is_none_or(|it| it > now) {
            return None;
        }
        self.reading = true;
        let stale = self.berth().stale();
        let (asked, mut wanted) = (stale.take_asked(), stale.take());
        wanted.extend(self.retry.iter_mut().flat_map(Retry::take_lists));
        // A background retry does not make the source pending, so clients do not wait for it.
        let woken = !is_retry && self.wake();
        Some(Begun { wanted, asked, woken })
    }

    /// Stores the result of a successful listing.
    pub(super) fn succeeded(&mut self, offer: Offer) {
        self.ended();
        let failures = self.retry.as_mut().map_or(0, Retry::succeeded);
        if failures > 0 {
            let (source, tools) = (&**self.berth().name(), offer.tools.len());
            tracing::info!(target: "wharf::source", source, tools, failures, "`{source}` is available");
        }
        for (list, fault) in &offer.unread {
            let (source, hint) = (&**self.berth().name(), fault.hint.as_deref());
            tracing::warn!(target: "wharf::source", source, hint, "could not read {}: {fault}", list.method());
        }
        self.was_listed = true;
        (self.sheet.offer, self.sheet.page.discovery) = (offer, Discovery::Done);
    }

    /// Records a failed listing. Keeps the previous entries.
    pub(super) fn failed(&mut self, fault: Arc<Fault>, mut lists: Vec<List>) {
        self.ended();
        if let Some(retry) = &mut self.retry {
            // Requests that arrived during this listing have failed with it, so their lists join the retry.
            lists.extend(self.sheet.page.berth.stale().take());
            if retry.failed(&fault, lists) {
                let (source, hint) = (&**self.sheet.page.berth.name(), fault.hint.as_deref());
                tracing::warn!(target: "wharf::source", source, hint, "{fault}; retrying in the background");
            }
        }
        self.sheet.page.discovery = Discovery::Failed(fault);
    }

    fn ended(&mut self) {
        self.reading = false;
        self.read_at = Some(Instant::now());
        self.sheet.page.reads += 1;
    }

    /// Returns the earliest time at which the next listing becomes due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let wanted = self.is_wanted().then_some(self.read_at).flatten().map(|it| it + PAUSE);
        [wanted, self.retry_at()].into_iter().flatten().min()
    }

    /// Returns whether a list needs a refresh. Unless a caller asks, a source that was never listed is not started,
    /// and a source with an open breaker is not read.
    fn is_wanted(&self) -> bool {
        let Page { berth, discovery, .. } = &self.sheet.page;
        let asleep = matches!(discovery, Discovery::Asleep);
        let rests = !matches!(berth.gate().state().breaker, Breaker::Closed { .. });
        !self.reading && berth.stale().any() && (berth.stale().is_asked() || !asleep && !rests)
    }

    fn is_due(&self, now: Instant) -> bool {
        let rested = self.read_at.is_none_or(|it| it + PAUSE <= now);
        self.is_wanted() && (rested || self.berth().stale().is_asked())
    }

    /// Returns the time of the next background retry. It waits until an open breaker allows a call, and does not run
    /// beside a probe. A server that was stopped as idle stays stopped if its lists are known.
    fn retry_at(&self) -> Option<Instant> {
        let at = self.retry.as_ref().filter(|_| !self.reading)?.at()?;
        if self.was_listed && self.berth().is_stopped_as_idle() {
            return None;
        }
        match self.berth().gate().state().breaker {
            Breaker::Closed { .. } => Some(at),
            Breaker::Open { until } => Some(at.max(until)),
            Breaker::HalfOpen => None,
        }
    }

    /// Marks a source without a current listing as pending, so that new callers wait for this listing instead of
    /// requesting another.
    fn wake(&mut self) -> bool {
        let discovery = &mut self.sheet.page.discovery;
        let woken = matches!(discovery, Discovery::Asleep | Discovery::Failed(_));
        if woken {
            *discovery = Discovery::Pending;
        }
        woken
    }
}
