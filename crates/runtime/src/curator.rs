//! Writes the catalog, as its only writer: lists what the sources offer, at startup and after every change.
//!
//! Lists all sources in parallel, in its own tasks, and each source at most twice a second regardless of how often it
//! reports changes. A failed listing leaves the previous entries in place. With background retries enabled, the
//! listing is retried later.

mod desk;
mod retry;

use crate::{
    Fault, FaultKind,
    berth::Berth,
    catalog::{Catalog, Offer, Sheet, SwitchedOff},
    events::Happening,
    incident::Reached,
};
use desk::{Begun, Desk};
use std::sync::Arc;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{self, Instant},
};
use wharf_mcp::session::List;

/// The current sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    /// Number of changes to the set of sources.
    pub(crate) edition: u64,
    pub(crate) berths: Vec<Arc<Berth>>,
}

/// The task that writes the catalog, and its state.
pub(crate) struct Curator {
    pub(crate) catalog: watch::Sender<Arc<Catalog>>,
    /// The current sources and their changes.
    pub(crate) fleet: watch::Receiver<Fleet>,
    /// Notified when a list needs a refresh.
    pub(crate) stirred: Arc<Notify>,
    /// Tools that operators have disabled, and changes to them.
    pub(crate) switched: watch::Receiver<Arc<SwitchedOff>>,
    /// The kinds of lists to read.
    pub(crate) lists: Vec<List>,
    /// Whether failed listings are retried in the background.
    retries: bool,
    edition: u64,
    desks: Vec<Desk>,
    reading: JoinSet<Reading>,
}

/// Result of listing one source.
struct Reading {
    berth: Arc<Berth>,
    lists: Vec<List>,
    offer: Result<Offer, Arc<Fault>>,
}

impl Curator {
    pub(crate) fn new(
        catalog: watch::Sender<Arc<Catalog>>,
        fleet: watch::Receiver<Fleet>,
        stirred: Arc<Notify>,
        switched: watch::Receiver<Arc<SwitchedOff>>,
        lists: Vec<List>,
        retries: bool,
    ) -> Curator {
        let (desks, reading) = (Vec::new(), JoinSet::new());
        Curator { catalog, fleet, stirred, switched, lists, retries, edition: 0, desks, reading }
    }

    /// Runs until the runtime drops the sender of the sources.
    pub(crate) async fn run(mut self) {
        let stirred = self.stirred.clone();
        loop {
            let due = self.next_due();
            tokio::select! {
                changed = self.fleet.changed() => match changed {
                    Ok(()) => self.take(),
                    Err(_) => break,
                },
                Some(Ok(reading)) = self.reading.join_next() => self.settle(reading),
                Ok(()) = self.switched.changed() => self.publish(),
                () = stirred.notified() => {}
                () = until(due) => {}
            }
            self.begin();
        }
        self.reading.shutdown().await;
    }

    /// Takes over a new set of sources. Keeps the entries of sources that stay.
    fn take(&mut self) {
        let Fleet { edition, berths } = self.fleet.borrow_and_update().clone();
        self.edition = edition;
        let mut known = std::mem::take(&mut self.desks);
        self.desks = berths
            .into_iter()
            .map(|berth| match known.iter().position(|it| it.is_of(&berth)) {
                Some(at) => known.swap_remove(at),
                None => Desk::new(berth, self.retries),
            })
            .collect();
        self.publish();
    }

    /// Starts every listing that is due: a list needs a refresh and the minimum interval has passed, or a retry is
    /// due.
    fn begin(&mut self) {
        let (now, mut changed) = (Instant::now(), false);
        for desk in &mut self.desks {
            let Some(Begun { wanted, asked, woken }) = desk.begin(now) else { continue };
            let (berth, mut offer) = (desk.sheet.page.berth.clone(), desk.sheet.offer.clone());
            let lists: Vec<List> = self.lists.iter().copied().filter(|it| wanted.contains(it)).collect();
            changed |= woken;
            self.reading.spawn(async move {
                let read = read(&berth, &mut offer, &lists, asked).await;
                Reading { berth, lists, offer: read.map(|()| offer) }
            });
        }
        if changed {
            self.publish();
        }
    }

    fn settle(&mut self, Reading { berth, lists, offer }: Reading) {
        let Some(desk) = self.desks.iter_mut().find(|it| it.is_of(&berth)) else { return };
        let mut listed = None;
        match offer {
            Ok(offer) => {
                listed = Some(offer.tools.len());
                desk.succeeded(offer);
            }
            Err(fault) => {
                let is_open = fault.kind == FaultKind::Resting;
                desk.failed(fault, lists);
                if is_open {
                    // The breaker was open, so nothing was read. Read the lists once the breaker is closed.
                    berth.stale().mark_all();
                }
            }
        }
        self.publish();
        // Published after the catalog, so that listeners find the tools in it.
        if let Some(tools) = listed {
            berth.tell(Happening::Listed { tools });
        }
    }

    fn publish(&mut self) {
        let sheets: Vec<Sheet> = self.desks.iter().map(|it| it.sheet.clone()).collect();
        let revision = self.catalog.borrow().revision + 1;
        let off = self.switched.borrow_and_update().clone();
        self.catalog.send_replace(Arc::new(Catalog::assemble(revision, self.edition, &sheets, &off)));
    }

    /// Returns the earliest time at which a listing becomes due.
    fn next_due(&self) -> Option<Instant> {
        self.desks.iter().filter_map(Desk::next_due).min()
    }
}

/// Reads some lists of a source. A failure counts in the breaker only if a caller requested the listing or waited for
/// it; background listings do not affect callers.
async fn read(berth: &Arc<Berth>, offer: &mut Offer, lists: &[List], asked: bool) -> Result<(), Arc<Fault>> {
    let permit = match asked {
        true => Some(berth.admit().await?),
        false => berth.gate().admit_if_closed(),
    };
    let mut reached = Reached::default();
    let read = async {
        let session = match asked {
            true => berth.session(&mut reached).await?,
            false => berth.session_of_ours(&mut reached).await?,
        };
        let unread = offer.renew(&session, lists).await.map_err(|failure| berth.fault(&failure))?;
        offer.note_unread(lists, unread.iter().map(|(list, it)| (*list, berth.fault(it))).collect());
        Ok(())
    };
    let read = read.await;
    // A caller may have started to wait during the listing.
    let waiting = berth.stale().take_waiting_caller() || read.is_err() && berth.stale().take_asked();
    let counts = asked || waiting;
    berth.settle_listing(permit.filter(|_| counts), read.as_ref().err(), reached);
    read
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
