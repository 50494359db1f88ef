//! The only writer of the catalog: reads what sources offer, at the start and whenever it has changed.
//!
//! Reading happens beside the sessions' own work, for all sources at once and for each at most twice a second however
//! often it says that something has changed. What cannot be read stays as it was.

use crate::{
    Fault, FaultKind,
    berth::Berth,
    breaker::Breaker,
    catalog::{Catalog, Discovery, Offer, Page, Sheet, SwitchedOff},
    events::Happening,
    incident::Reached,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{self, Instant},
};
use wharf_mcp::session::List;

/// How long a source's lists are left alone after they were read.
const PAUSE: Duration = Duration::from_millis(500);

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
    edition: u64,
    desks: Vec<Desk>,
    reading: JoinSet<Reading>,
}

/// One source, as the curator sees it.
struct Desk {
    sheet: Sheet,
    reading: bool,
    read_at: Option<Instant>,
}

/// What came of reading.
struct Reading {
    berth: Arc<Berth>,
    offer: Result<Offer, Arc<Fault>>,
}

impl Curator {
    pub(crate) fn new(
        catalog: watch::Sender<Arc<Catalog>>,
        fleet: watch::Receiver<Fleet>,
        stirred: Arc<Notify>,
        switched: watch::Receiver<Arc<SwitchedOff>>,
        lists: Vec<List>,
    ) -> Curator {
        let (desks, reading) = (Vec::new(), JoinSet::new());
        Curator { catalog, fleet, stirred, switched, lists, edition: 0, desks, reading }
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
                None => Desk::new(berth),
            })
            .collect();
        self.publish();
    }

    /// Begins to read whatever is stale and has been left alone long enough.
    fn begin(&mut self) {
        let mut woken = false;
        for desk in self.desks.iter_mut().filter(|it| it.is_due(Instant::now())) {
            let (berth, mut offer) = (desk.sheet.page.berth.clone(), desk.sheet.offer.clone());
            let asked = berth.stale().take_asked();
            let stale = berth.stale().take();
            let lists: Vec<List> = self.lists.iter().copied().filter(|it| stale.contains(it)).collect();
            desk.reading = true;
            woken |= desk.wake();
            self.reading.spawn(async move {
                let read = read(&berth, &mut offer, &lists, asked).await;
                Reading { berth, offer: read.map(|()| offer) }
            });
        }
        if woken {
            self.publish();
        }
    }

    fn settle(&mut self, Reading { berth, offer }: Reading) {
        let Some(desk) = self.desks.iter_mut().find(|it| it.is_of(&berth)) else { return };
        desk.reading = false;
        desk.read_at = Some(Instant::now());
        desk.sheet.page.reads += 1;
        let mut listed = None;
        match offer {
            Ok(offer) => {
                listed = Some(offer.tools.len());
                (desk.sheet.offer, desk.sheet.page.discovery) = (offer, Discovery::Done);
            }
            Err(fault) => {
                if fault.kind == FaultKind::Resting {
                    // It was not even asked, and will be when it has rested.
                    berth.stale().mark_all();
                }
                desk.sheet.page.discovery = Discovery::Failed(fault);
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
        self.desks.iter().filter(|it| it.is_wanted()).filter_map(|it| Some(it.read_at? + PAUSE)).min()
    }
}

impl Desk {
    fn new(berth: Arc<Berth>) -> Desk {
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
        let page = Page { berth, discovery, reads: 0, fresh: Default::default() };
        Desk { sheet: Sheet { page, offer: Offer::default() }, reading: false, read_at: None }
    }

    fn is_of(&self, berth: &Arc<Berth>) -> bool {
        Arc::ptr_eq(&self.sheet.page.berth, berth)
    }

    /// Whether there is something to read. A source that sleeps is not woken by its own news, nor one that rests.
    fn is_wanted(&self) -> bool {
        let Page { berth, discovery, .. } = &self.sheet.page;
        let asleep = matches!(discovery, Discovery::Asleep);
        let rests = !matches!(berth.gate().state().breaker, Breaker::Closed { .. });
        !self.reading && berth.stale().any() && (berth.stale().is_asked() || !asleep && !rests)
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

    fn is_due(&self, now: Instant) -> bool {
        let rested = self.read_at.is_none_or(|it| it + PAUSE <= now);
        self.is_wanted() && (rested || self.sheet.page.berth.stale().is_asked())
    }
}

/// Reads some lists of a source. A failure counts in the breaker if a caller asked for them or waited for them: what we
/// read on our own account shows callers nothing.
async fn read(
    berth: &Arc<Berth>,
    offer: &mut Offer,
    lists: &[List],
    asked: bool,
) -> Result<(), Arc<Fault>> {
    let permit = match asked {
        true => Some(berth.admit().await?),
        false => berth.gate().admit_if_closed(),
    };
    let mut reached = Reached::default();
    let read = async {
        let session = berth.session(&mut reached).await?;
        offer.renew(&session, lists).await.map_err(|failure| berth.fault(&failure))
    };
    let read = read.await;
    let counts = berth.stale().take_waiting_caller() || asked;
    berth.settle_listing(permit.filter(|_| counts), read.as_ref().err(), reached);
    read
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
