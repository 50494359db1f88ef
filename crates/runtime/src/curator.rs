//! The only writer of the catalog: reads what sources offer, at the start and whenever it has changed.
//!
//! Reading happens beside the sessions' own work, for all sources at once and for each at most twice a second however
//! often it says that something has changed. What cannot be read stays as it was; a host that runs on has it read again
//! later, in the background.

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

/// The sources that there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    /// How often they have changed.
    pub(crate) edition: u64,
    pub(crate) berths: Vec<Arc<Berth>>,
}

/// The curator's task, and what it knows.
pub(crate) struct Curator {
    pub(crate) catalog: watch::Sender<Arc<Catalog>>,
    /// The sources, whenever they change.
    pub(crate) fleet: watch::Receiver<Fleet>,
    /// Woken when some list is stale.
    pub(crate) stirred: Arc<Notify>,
    /// What operators have switched off, whenever that changes.
    pub(crate) switched: watch::Receiver<Arc<SwitchedOff>>,
    /// The lists that are read at all.
    pub(crate) lists: Vec<List>,
    /// Whether failed readings are repeated without being asked for.
    retries: bool,
    edition: u64,
    desks: Vec<Desk>,
    reading: JoinSet<Reading>,
}

/// What came of reading.
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

    /// Works until nobody can change the sources any more.
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

    /// Other sources than before; what is known of those that stay is kept.
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

    /// Begins to read whatever is stale and has been left alone long enough, or is to be tried again.
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
                    // It was not even asked, and will be when the breaker is closed.
                    berth.stale().mark_all();
                }
            }
        }
        self.publish();
        // Whoever hears of it finds it in the catalog.
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

    /// When some source may be read that may not yet.
    fn next_due(&self) -> Option<Instant> {
        self.desks.iter().filter_map(Desk::next_due).min()
    }
}

/// Reads some lists of a source. A failure counts in the breaker if a caller asked for them or waited for them: what we
/// read on our own account shows callers nothing.
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
    // A caller may have come while it was read.
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
