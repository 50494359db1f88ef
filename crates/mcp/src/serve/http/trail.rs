//! Resumable SSE streams of a session.
//!
//! A client that reconnects names the last event it received in `Last-Event-ID`. The server replays the later events
//! that are still buffered and continues the stream. In this era a lost connection does not cancel a request: its
//! handler keeps running detached for a while, so that the client can resume. Plain JSON responses are not resumable
//! and do not use this module.

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

/// Time limit of a request whose stream is detached.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for the current holder of a stream to hand it over.
const HANDOVER: Duration = Duration::from_secs(1);

/// Maximum number of detached request streams per session.
const ADRIFT: usize = 16;

/// Channel that hands a stream over to the client that resumes it.
type Taker = oneshot::Sender<Box<Trail>>;

/// All streams of one session.
#[derive(Debug, Default)]
pub(super) struct Trails {
    streams: AtomicU64,
    known: Mutex<Known>,
}

/// State of a session's streams, behind one lock.
#[derive(Debug, Default)]
struct Known {
    kept: Kept,
    /// For each open request stream, a channel that asks its holder to hand it over.
    claims: HashMap<u64, oneshot::Sender<Taker>>,
    /// Tasks of detached request streams.
    adrift: JoinSet<()>,
    /// Numbers of the open GET streams.
    open: BTreeSet<u64>,
    /// The newest GET stream that disconnected. Its receiver buffers notifications, so it needs no task.
    standing: Option<(EventId, Announcements)>,
}

/// SSE stream of one request.
pub(super) struct Trail {
    session: Arc<Session>,
    /// Id of the last event created.
    at: EventId,
    /// Events that are ready to send.
    ready: VecDeque<Event>,
    /// Messages still to come; `None` after the response.
    rest: Option<Streaming>,
}

/// A request stream attached to a client. If dropped before its end, the stream continues detached.
pub(super) struct Carried {
    trail: Option<Box<Trail>>,
    wanted: oneshot::Receiver<Taker>,
}

/// A stream that a client resumes.
pub(super) enum Resumed {
    /// The stream of a request that is still running.
    Trail(Carried),
    /// The remaining events of a request that has ended.
    Rest(Vec<Bytes>),
    /// A GET stream: its last event, the missed events, and the notification receiver if it was kept.
    Standing(Option<EventId>, Vec<Event>, Option<Announcements>),
}

impl Trails {
    pub(super) fn within(room: Room) -> Trails {
        let known = Known { kept: Kept::within(room), ..Known::default() };
        Trails { known: Mutex::new(known), ..Trails::default() }
    }

    /// Sets the number after which streams are numbered.
    pub(super) fn number_from(&self, number: u64) {
        self.streams.store(number, Ordering::Relaxed);
    }

    /// Allocates a stream number and returns the id before its first event.
    pub(super) fn new_stream(&self) -> EventId {
        EventId { stream: self.streams.fetch_add(1, Ordering::Relaxed) + 1, number: 0 }
    }

    /// Formats a message as the next event of a stream and adds it to the replay buffer.
    pub(super) fn say(&self, at: &mut EventId, message: &Outbound) -> Bytes {
        let event = next_event(at, message);
        self.known().kept.keep(&event);
        event.text
    }

    /// Resumes the stream of a client whose last received event is `last`.
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

    /// Registers an open GET stream.
    pub(super) fn stand(&self, at: EventId) {
        self.known().open.insert(at.stream);
    }

    /// Checks whether this GET stream is the newest. Only the newest sends notifications, so that none is sent twice.
    pub(super) fn is_newest(&self, at: EventId) -> bool {
        self.known().open.last().is_none_or(|it| *it <= at.stream)
    }

    /// Unregisters a GET stream. Keeps `announcements`, if any, so that the client can resume it.
    pub(super) fn leave_standing(&self, at: EventId, announcements: Option<Announcements>) {
        let mut known = self.known();
        known.open.remove(&at.stream);
        let Some(announcements) = announcements else { return };
        if known.standing.as_ref().is_none_or(|(other, _)| other.stream <= at.stream) {
            known.standing = Some((at, announcements));
        }
    }

    /// Ends all streams and clears the replay buffer, because the session is over.
    pub(super) fn end(&self) {
        let known = std::mem::take(&mut *self.known());
        drop(known);
    }

    /// Takes the stream of a running request from its holder.
    ///
    /// The holder may still be attached to a connection whose loss it has not noticed yet.
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

    /// Returns the next event in wire format, or `None` at the end of the stream. Cancel-safe.
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

    /// Advances the request while no client is attached. Cancel-safe.
    ///
    /// Events wait in `ready` within the limits of the replay buffer. The newest is always kept, because it may be
    /// the response.
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

    /// Runs detached until a client resumes the stream or [`PATIENCE`] has passed.
    async fn drift(mut self: Box<Trail>, mut wanted: oneshot::Receiver<Taker>) {
        let mut enough = pin!(time::sleep(PATIENCE));
        loop {
            tokio::select! {
                biased;
                taker = &mut wanted => {
                    // The client no longer waits for the handover. Let another one claim the stream.
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

    /// Returns the next event in wire format, or `None` at the end of the stream or after a handover.
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

/// Hands a stream over, or returns it if the receiver no longer waits. Without a taker the session is over, and the
/// stream is dropped.
fn hand_over(trail: Box<Trail>, taker: Option<Taker>) -> Result<(), Box<Trail>> {
    match taker {
        Some(taker) => taker.send(trail),
        None => Ok(()),
    }
}

/// Formats a message as the next event of a stream.
fn next_event(at: &mut EventId, message: &Outbound) -> Event {
    at.number += 1;
    let is_last = matches!(message, Outbound::Answer { .. });
    Event { id: *at, text: response::named_event(*at, message), is_last }
}
