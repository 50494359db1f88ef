//! One source, as the curator sees it: what it offers, and when that is read the next time.

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

/// How long a source's lists are left alone after they were read.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Desk {
    pub(super) sheet: Sheet,
    reading: bool,
    read_at: Option<Instant>,
    /// Whether its lists could be read at least once.
    was_listed: bool,
    /// Set if failed readings are repeated without being asked for.
    retry: Option<Retry>,
}

/// A reading that is about to begin.
pub(super) struct Begun {
    pub(super) wanted: Vec<List>,
    /// Whether a caller asked for it.
    pub(super) asked: bool,
    /// Whether the catalog has to say that it is under way.
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
        // A source that starts with its first call is not started by us.
        let retry = (retries && awake).then(Retry::default);
        Desk { sheet, reading: false, read_at: None, was_listed: false, retry }
    }

    pub(super) fn is_of(&self, berth: &Arc<Berth>) -> bool {
        Arc::ptr_eq(self.berth(), berth)
    }

    fn berth(&self) -> &Arc<Berth> {
        &self.sheet.page.berth
    }

    /// Begins a reading, if one is due.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Begun> {
        let is_retry = !self.is_due(now);
        if is_retry && self.retry_at().is_none_or(|it| it > now) {
            return None;
        }
        self.reading = true;
        let stale = self.berth().stale();
        let (asked, mut wanted) = (stale.take_asked(), stale.take());
        wanted.extend(self.retry.iter_mut().flat_map(Retry::take_lists));
        // Clients do not wait for a source that is tried again without being asked for.
        let woken = !is_retry && self.wake();
        Some(Begun { wanted, asked, woken })
    }

    /// Takes what a reading has found.
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

    /// Notes why a reading failed; what was known before stays.
    pub(super) fn failed(&mut self, fault: Arc<Fault>, mut lists: Vec<List>) {
        self.ended();
        if let Some(retry) = &mut self.retry {
            // Whoever asked for them meanwhile has seen this reading fail.
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

    /// The next moment at which a reading may begin that may not yet.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let wanted = self.is_wanted().then_some(self.read_at).flatten().map(|it| it + PAUSE);
        [wanted, self.retry_at()].into_iter().flatten().min()
    }

    /// Whether there is something to read. A source that sleeps is not woken by its own news, nor one that rests.
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

    /// When a failed reading is repeated. Not before an open breaker lets a call pass, and not beside its probe. A server
    /// that was stopped because nobody used it stays stopped if its lists are known.
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

    /// Whoever comes while a source is being read that had nothing to show waits for that, and asks for no more.
    fn wake(&mut self) -> bool {
        let discovery = &mut self.sheet.page.discovery;
        let woken = matches!(discovery, Discovery::Asleep | Discovery::Failed(_));
        if woken {
            *discovery = Discovery::Pending;
        }
        woken
    }
}
