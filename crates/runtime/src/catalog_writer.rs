//! Writes the catalog, as its only writer: lists what the sources offer, at startup and after every change.
//!
//! Lists all sources in parallel, in its own tasks, and each source at most twice a second regardless of how often it
//! reports changes. A failed listing leaves the previous entries in place. With background retries enabled, the
//! listing is retried later.

mod listing_schedule;
mod lock_reports;
mod retry;

use crate::{
    Fault, FaultKind,
    active_source::ActiveSource,
    active_sources::ActiveSources,
    catalog::{Catalog, DisabledTools, ListedSource, Offer},
    events::EventKind,
    lock::LockState,
    session_keeper::incident::Reached,
};
use listing_schedule::{DueListing, ListingSchedule};
use lock_reports::LockReports;
use std::sync::Arc;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{self, Instant},
};
use wharf_mcp::session::List;

/// The task that writes the catalog, and its state.
pub(crate) struct CatalogWriter {
    pub(crate) catalog: watch::Sender<Arc<Catalog>>,
    /// The current sources and their changes.
    pub(crate) sources: watch::Receiver<ActiveSources>,
    /// Notified when a list needs a refresh.
    pub(crate) refresh_needed: Arc<Notify>,
    /// Tools that operators have disabled, and changes to them.
    pub(crate) disabled_tools: watch::Receiver<Arc<DisabledTools>>,
    /// The lock, and changes to it.
    lock: watch::Receiver<Arc<LockState>>,
    /// Reports what differs from the lock, once for each definition.
    lock_reports: LockReports,
    /// The kinds of lists to read.
    pub(crate) lists: Vec<List>,
    /// Whether failed listings are retried in the background.
    retries: bool,
    edition: u64,
    schedules: Vec<ListingSchedule>,
    reading: JoinSet<ListingResult>,
}

/// Result of listing one source.
struct ListingResult {
    active_source: Arc<ActiveSource>,
    lists: Vec<List>,
    offer: Result<Offer, Arc<Fault>>,
}

impl CatalogWriter {
    pub(crate) fn new(
        catalog: watch::Sender<Arc<Catalog>>,
        sources: watch::Receiver<ActiveSources>,
        refresh_needed: Arc<Notify>,
        disabled_tools: watch::Receiver<Arc<DisabledTools>>,
        lock: watch::Receiver<Arc<LockState>>,
        lists: Vec<List>,
        retries: bool,
    ) -> CatalogWriter {
        let (schedules, reading) = (Vec::new(), JoinSet::new());
        CatalogWriter {
            catalog,
            sources,
            refresh_needed,
            disabled_tools,
            lock,
            lock_reports: LockReports::default(),
            lists,
            retries,
            edition: 0,
            schedules,
            reading,
        }
    }

    /// Runs until the runtime drops the sender of the sources.
    pub(crate) async fn run(mut self) {
        let refresh_needed = self.refresh_needed.clone();
        loop {
            let due = self.next_due();
            tokio::select! {
                changed = self.sources.changed() => match changed {
                    Ok(()) => self.update_sources(),
                    Err(_) => break,
                },
                Some(Ok(reading)) = self.reading.join_next() => self.settle(reading),
                Ok(()) = self.disabled_tools.changed() => self.publish(),
                Ok(()) = self.lock.changed() => self.publish(),
                () = refresh_needed.notified() => {}
                () = sleep_until(due) => {}
            }
            self.start_due();
        }
        self.reading.shutdown().await;
    }

    /// Takes over a new set of sources. Keeps the entries of sources that stay.
    fn update_sources(&mut self) {
        let ActiveSources { edition, active_sources } = self.sources.borrow_and_update().clone();
        self.edition = edition;
        let mut known = std::mem::take(&mut self.schedules);
        self.schedules = active_sources
            .into_iter()
            .map(|active_source| match known.iter().position(|it| it.is_of(&active_source)) {
                Some(at) => known.swap_remove(at),
                None => ListingSchedule::new(active_source, self.retries),
            })
            .collect();
        self.publish();
    }

    /// Starts every listing that is due: a list needs a refresh and the minimum interval has passed, or a retry is
    /// due.
    fn start_due(&mut self) {
        let (now, mut changed) = (Instant::now(), false);
        for schedule in &mut self.schedules {
            let Some(DueListing { wanted, requested, became_pending }) = schedule.start_due(now) else {
                continue;
            };
            let (active_source, mut offer) =
                (schedule.active_source.clone(), schedule.listed_source.offer.clone());
            let lists: Vec<List> = self.lists.iter().copied().filter(|it| wanted.contains(it)).collect();
            changed |= became_pending;
            self.reading.spawn(async move {
                let read = read(&active_source, &mut offer, &lists, requested).await;
                ListingResult { active_source, lists, offer: read.map(|()| offer) }
            });
        }
        if changed {
            self.publish();
        }
    }

    fn settle(&mut self, ListingResult { active_source, lists, offer }: ListingResult) {
        let Some(schedule) = self.schedules.iter_mut().find(|it| it.is_of(&active_source)) else { return };
        let mut listed = None;
        match offer {
            Ok(offer) => {
                listed = Some(offer.tools.len());
                schedule.succeeded(offer);
            }
            Err(fault) => {
                let is_open = fault.kind == FaultKind::BreakerOpen;
                schedule.failed(fault, lists);
                if is_open {
                    // The breaker was open, so nothing was read. Read the lists once the breaker is closed.
                    active_source.lists_to_refresh().mark_all();
                }
            }
        }
        self.publish();
        // Published after the catalog, so that listeners find the tools in it.
        if let Some(tools) = listed {
            active_source.publish(EventKind::Listed { tools });
        }
    }

    fn publish(&mut self) {
        let listed_sources: Vec<ListedSource> =
            self.schedules.iter().map(|it| it.listed_source.clone()).collect();
        let revision = self.catalog.borrow().revision + 1;
        let off = self.disabled_tools.borrow_and_update().clone();
        let lock = self.lock.borrow_and_update().clone();
        let catalog = Arc::new(Catalog::assemble(revision, self.edition, &listed_sources, &off, &lock));
        self.catalog.send_replace(catalog.clone());
        for (source, event) in self.lock_reports.new_events(&catalog) {
            let schedule = self.schedules.iter().find(|it| it.active_source.source().name.expose() == source);
            if let Some(schedule) = schedule {
                schedule.active_source.publish(event);
            }
        }
        self.lock_reports.log_items(&catalog);
        for schedule in &self.schedules {
            self.lock_reports.log_instructions(&schedule.active_source, &lock);
        }
    }

    /// Returns the earliest time at which a listing becomes due.
    fn next_due(&self) -> Option<Instant> {
        self.schedules.iter().filter_map(ListingSchedule::next_due).min()
    }
}

/// Reads some lists of a source. A failure counts in the breaker only if a caller requested the listing or waited for
/// it; background listings do not affect callers.
async fn read(
    active_source: &Arc<ActiveSource>,
    offer: &mut Offer,
    lists: &[List],
    requested: bool,
) -> Result<(), Arc<Fault>> {
    let permit = match requested {
        true => Some(active_source.admit().await?),
        false => active_source.circuit_breaker().admit_if_closed(),
    };
    let mut reached = Reached::default();
    let read = async {
        let session = match requested {
            true => active_source.session(&mut reached).await?,
            false => active_source.background_session(&mut reached).await?,
        };
        let unread = offer.refresh(&session, lists, &active_source.source().overrides).await;
        let unread = unread.map_err(|failure| active_source.fault(&failure))?;
        offer.note_unread(lists, unread.iter().map(|(list, it)| (*list, active_source.fault(it))).collect());
        Ok(())
    };
    let read = read.await;
    // A caller may have started to wait during the listing.
    let waiting = active_source.lists_to_refresh().take_waiting_caller()
        || read.is_err() && active_source.lists_to_refresh().take_requested();
    let counts = requested || waiting;
    active_source.settle_listing(permit.filter(|_| counts), read.as_ref().err(), reached);
    read
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
