//! Streams of a session that break, and are gone on with when their client comes back.
//!
//! A client says by `Last-Event-ID` what it has seen last. What it has missed is said again, as far as it is still known,
//! and then the stream goes on where it is. The work of a request whose stream breaks goes on for a while without anybody
//! who listens; in this era a broken connection is no cancellation. An answer that is plain JSON has nothing to do with
//! any of this.

use super::{
    kept::{BYTES, Event, EventId, Kept, MOST, Room},
    response::{self, Said, Streaming},
    sessions::Session,
};
use crate::{Outbound, serve::announcements::Announcements};
use bytes::Bytes;
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, sync::oneshot, task::JoinSet, time};

/// How long a request goes on after its stream broke.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long whoever holds a stream may take to let it go.
const HANDOVER: Duration = Duration::from_secs(1);

/// How many broken streams of one session go on.
const ADRIFT: usize = 16;

/// Hands a stream over to whoever comes back for it.
type Taker = oneshot::Sender<Box<Trail>>;

/// The streams of one session.
#[derive(Debug, Default)]
pub(super) struct Trails {
    streams: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    kept: Kept,
    /// How to get hold of each stream that a request's answer comes on.
    claims: HashMap<u64, oneshot::Sender<Taker>>,
    /// Those that broke.
    adrift: JoinSet<()>,
    /// The standing streams that are open.
    open: BTreeSet<u64>,
    /// The standing stream that broke last: it needs nobody to go on.
    standing: Option<(EventId, Announcements)>,
}

/// The stream that the answer to one request comes on.
pub(super) struct Trail {
    session: Arc<Session>,
    /// The last event.
    at: EventId,
    /// Events that have been made and not said.
    ready: VecDeque<Event>,
    /// What is to come.
    rest: Option<Streaming>,
}

/// A trail while a client listens; dropped before its end, it goes on alone.
pub(super) struct Carried {
    trail: Option<Box<Trail>>,
    wanted: oneshot::Receiver<Taker>,
}

/// What a client comes back to.
pub(super) enum Resumed {
    /// A request's stream that is still under way.
    Trail(Carried),
    /// What is left of one that is not.
    Rest(Vec<Bytes>),
    /// A standing stream: where it broke off, what has been missed, and what comes now if that was kept.
    Standing(Option<EventId>, Vec<Event>, Option<Announcements>),
}

impl Trails {
    pub(super) fn within(room: Room) -> Trails {
        let known = Known { kept: Kept::within(room), ..Known::default() };
        Trails { known: Mutex::new(known), ..Trails::default() }
    }

    /// From here on streams are numbered.
    pub(super) fn number_from(&self, number: u64) {
        self.streams.store(number, Ordering::Relaxed);
    }

    /// Where a new stream begins.
    pub(super) fn new_stream(&self) -> EventId {
        EventId { stream: self.streams.fetch_add(1, Ordering::Relaxed) + 1, number: 0 }
    }

    /// A message as the next event of a stream, which is kept.
    pub(super) fn say(&self, at: &mut EventId, message: &Outbound) -> Bytes {
        let event = next_event(at, message);
        self.known().kept.keep(&event);
        event.text
    }

    /// What a client comes back to that has last seen this event.
    pub(super) async fn resume(&self, last: EventId) -> Resumed {
        if let Some(mut trail) = self.claim(last.stream).await {
            let missed = self.known().kept.after(last);
            let begun = missed.last().map_or(last, |it| it.id);
            trail.ready.retain(|it| it.id > begun);
            missed.into_iter().rev().for_each(|it| trail.ready.push_front(it));
            return Resumed::Trail(Carried::new(trail));
        }
        let mut known = self.known();
        let missed = known.kept.after(last);
        if missed.iter().any(|it| it.is_last) {
            return Resumed::Rest(missed.into_iter().map(|it| it.text).collect());
        }
        match known.standing.take_if(|(at, _)| at.stream == last.stream) {
            Some((at, announcements)) => Resumed::Standing(Some(at), missed, Some(announcements)),
            None => Resumed::Standing(None, missed, None),
        }
    }

    /// A standing stream is open.
    pub(super) fn stand(&self, at: EventId) {
        self.known().open.insert(at.stream);
    }

    /// Whether this standing stream says what there is to be said: of several only the newest does, so that nothing is said
    /// twice.
    pub(super) fn is_newest(&self, at: EventId) -> bool {
        self.known().open.last().is_none_or(|it| *it <= at.stream)
    }

    /// A standing stream has ended, or broken if there is more to come.
    pub(super) fn leave_standing(&self, at: EventId, announcements: Option<Announcements>) {
        let mut known = self.known();
        known.open.remove(&at.stream);
        let Some(announcements) = announcements else { return };
        if known.standing.as_ref().is_none_or(|(other, _)| other.stream <= at.stream) {
            known.standing = Some((at, announcements));
        }
    }

    /// Nobody comes back any more.
    pub(super) fn end(&self) {
        let known = std::mem::take(&mut *self.known());
        drop(known);
    }

    /// The stream, if its request is still under way: from whoever holds it, who may be somebody who does not know yet that
    /// nobody listens.
    async fn claim(&self, stream: u64) -> Option<Box<Trail>> {
        let claim = self.known().claims.remove(&stream)?;
        let (taker, taken) = oneshot::channel();
        claim.send(taker).ok()?;
        time::timeout(HANDOVER, taken).await.ok()?.ok()
    }

    fn claimable(&self, stream: u64) -> oneshot::Receiver<Taker> {
        let (claim, wanted) = oneshot::channel();
        self.known().claims.insert(stream, claim);
        wanted
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trail {
    pub(super) fn new(session: Arc<Session>, rest: Streaming) -> Trail {
        let at = session.trails.new_stream();
        Trail { session, at, ready: VecDeque::new(), rest: Some(rest) }
    }

    /// The next event, as it is written; `None` when all is said. Cancel-safe.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(event) = self.ready.pop_front() {
            self.session.trails.known().kept.keep(&event);
            return Some(event.text);
        }
        match self.rest.as_mut()?.next().await {
            Some(Said::Message(message)) => Some(self.session.trails.say(&mut self.at, &message)),
            Some(Said::Alive) => Some(response::keep_alive()),
            None => {
                self.rest = None;
                None
            }
        }
    }

    /// Goes on with nobody listening. What is said is kept within the same bounds, but for the newest, which may be the
    /// answer. Cancel-safe.
    async fn go_on(&mut self) {
        let Some(rest) = &mut self.rest else { return std::future::pending().await };
        match rest.next().await {
            Some(Said::Message(message)) => self.ready.push_back(next_event(&mut self.at, &message)),
            Some(Said::Alive) => {}
            None => self.rest = None,
        }
        while self.ready.len() > 1 && (self.ready.len() > MOST || self.ready_bytes() > BYTES) {
            self.ready.pop_front();
        }
    }

    fn ready_bytes(&self) -> usize {
        self.ready.iter().map(|it| it.text.len()).sum()
    }

    fn has_more(&self) -> bool {
        !self.ready.is_empty() || self.rest.as_ref().is_some_and(|it| !it.is_over())
    }

    /// Goes on alone, until somebody comes for it or it has been long enough.
    async fn drift(mut self: Box<Trail>, mut wanted: oneshot::Receiver<Taker>) {
        let mut enough = pin!(time::sleep(PATIENCE));
        loop {
            tokio::select! {
                biased;
                taker = &mut wanted => {
                    // One that did not wait comes again, or does not.
                    let Err(back) = hand_over(self, taker.ok()) else { return };
                    self = back;
                    wanted = self.session.trails.claimable(self.at.stream);
                }
                () = &mut enough => {
                    self.session.trails.known().claims.remove(&self.at.stream);
                    return;
                }
                () = self.go_on() => {}
            }
        }
    }
}

impl Carried {
    pub(super) fn new(trail: Box<Trail>) -> Carried {
        let wanted = trail.session.trails.claimable(trail.at.stream);
        Carried { trail: Some(trail), wanted }
    }

    /// The next event, as it is written; `None` when all is said, or somebody else goes on with it.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let trail = self.trail.as_mut()?;
            tokio::select! {
                biased;
                taker = &mut self.wanted => {
                    let trail = self.trail.take()?;
                    let stream = trail.at.stream;
                    let Err(back) = hand_over(trail, taker.ok()) else { return None };
                    self.wanted = back.session.trails.claimable(stream);
                    self.trail = Some(back);
                }
                event = trail.next() => {
                    if event.is_none() {
                        self.let_go();
                    }
                    return event;
                }
            }
        }
    }

    fn let_go(&mut self) {
        if let Some(trail) = self.trail.take() {
            trail.session.trails.known().claims.remove(&trail.at.stream);
        }
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if !self.trail.as_ref().is_some_and(|it| it.has_more()) {
            return self.let_go();
        }
        let (Ok(runtime), Some(trail)) = (Handle::try_current(), self.trail.take()) else { return };
        let (session, (_, never)) = (trail.session.clone(), oneshot::channel());
        let wanted = std::mem::replace(&mut self.wanted, never);
        let mut known = session.trails.known();
        while known.adrift.try_join_next().is_some() {}
        if known.adrift.len() < ADRIFT {
            known.adrift.spawn_on(trail.drift(wanted), &runtime);
        } else {
            known.claims.remove(&trail.at.stream);
        }
    }
}

impl fmt::Debug for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trail({})", self.at)
    }
}

/// Gives a trail to whoever wants it, or back. Nobody at all can want it any more when its session is over: then it is
/// dropped.
fn hand_over(trail: Box<Trail>, taker: Option<Taker>) -> Result<(), Box<Trail>> {
    match taker {
        Some(taker) => taker.send(trail),
        None => Ok(()),
    }
}

/// A message as the next event of a stream.
fn next_event(at: &mut EventId, message: &Outbound) -> Event {
    at.number += 1;
    let is_last = matches!(message, Outbound::Answer { .. });
    Event { id: *at, text: response::named_event(*at, message), is_last }
}
