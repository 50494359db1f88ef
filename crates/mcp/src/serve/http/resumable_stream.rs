//! Resumable SSE streams of a session.
//!
//! A client that reconnects names the last event it received in `Last-Event-ID`. The server replays the later events
//! that are still buffered and continues the stream. In this era a lost connection does not cancel a request: its
//! handler keeps running detached for a while, so that the client can resume. Plain JSON responses are not resumable
//! and do not use this module.

use super::{
    replay_buffer::{BufferedEvent, EventId, MAX_EVENTS, MAX_SESSION_BYTES, ReplayBudget, ReplayBuffer},
    response::{self, MessageStream, StreamItem},
    sessions::HttpSession,
};
use crate::{Outbound, serve::announcements::Announcements, session::LATEST_LEGACY};
use bytes::{Bytes, BytesMut};
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
const DETACHED_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for the current holder of a stream to hand it over.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of detached request streams per session.
const MAX_DETACHED: usize = 16;

/// Channel that hands a stream over to the client that resumes it.
type HandoverSender = oneshot::Sender<Box<ResumableStream>>;

/// All streams of one session.
#[derive(Debug, Default)]
pub(super) struct ResumableStreams {
    last_stream: AtomicU64,
    state: Mutex<StreamsState>,
}

/// State of a session's streams, behind one lock.
#[derive(Debug, Default)]
struct StreamsState {
    buffer: ReplayBuffer,
    /// For each open request stream, a channel that asks its holder to hand it over.
    claims: HashMap<u64, oneshot::Sender<HandoverSender>>,
    /// Tasks of detached request streams.
    detached: JoinSet<()>,
    /// Numbers of the open GET streams.
    open: BTreeSet<u64>,
    /// The newest GET stream that disconnected. Its receiver buffers notifications, so it needs no task.
    notification_stream: Option<(EventId, Announcements)>,
}

/// SSE stream of one request.
pub(super) struct ResumableStream {
    session: Arc<HttpSession>,
    /// Id of the last event created.
    at: EventId,
    /// Events that are ready to send.
    ready: VecDeque<BufferedEvent>,
    /// Messages still to come; `None` after the response.
    rest: Option<MessageStream>,
}

/// A request stream attached to a client. If dropped before its end, the stream continues detached.
pub(super) struct AttachedStream {
    request_stream: Option<Box<ResumableStream>>,
    claimed: oneshot::Receiver<HandoverSender>,
}

/// A stream that a client resumes.
pub(super) enum Resumed {
    /// The stream of a request that is still running.
    Running(AttachedStream),
    /// The remaining events of a request that has ended.
    Finished(Vec<Bytes>),
    /// A GET stream: its last event, the missed events, and the notification receiver if it was kept.
    NotificationStream(Option<EventId>, Vec<BufferedEvent>, Option<Announcements>),
}

impl ResumableStreams {
    pub(super) fn with_budget(budget: ReplayBudget) -> ResumableStreams {
        let state = StreamsState { buffer: ReplayBuffer::with_budget(budget), ..StreamsState::default() };
        ResumableStreams { state: Mutex::new(state), ..ResumableStreams::default() }
    }

    /// Sets the number after which streams are numbered.
    pub(super) fn start_numbers_at(&self, number: u64) {
        self.last_stream.store(number, Ordering::Relaxed);
    }

    /// Allocates a stream number and returns the id before its first event.
    pub(super) fn new_stream(&self) -> EventId {
        EventId { stream: self.last_stream.fetch_add(1, Ordering::Relaxed) + 1, number: 0 }
    }

    /// Formats a message as the next event of a stream and adds it to the replay buffer.
    pub(super) fn record_event(&self, at: &mut EventId, message: &Outbound) -> Bytes {
        let event = next_event(at, message);
        self.state().buffer.push(&event);
        event.text
    }

    /// Resumes the stream of a client whose last received event is `last`.
    pub(super) async fn resume(&self, last: EventId) -> Resumed {
        if let Some(mut request_stream) = self.claim(last.stream).await {
            let missed = self.state().buffer.after(last);
            let last_replayed = missed.last().map_or(last, |it| it.id);
            request_stream.ready.retain(|it| it.id > last_replayed);
            missed.into_iter().rev().for_each(|it| request_stream.ready.push_front(it));
            return Resumed::Running(AttachedStream::new(request_stream));
        }
        let mut state = self.state();
        let missed = state.buffer.after(last);
        if missed.iter().any(|it| it.is_last) {
            return Resumed::Finished(missed.into_iter().map(|it| it.text).collect());
        }
        match state.notification_stream.take_if(|(at, _)| at.stream == last.stream) {
            Some((at, announcements)) => Resumed::NotificationStream(Some(at), missed, Some(announcements)),
            None => Resumed::NotificationStream(None, missed, None),
        }
    }

    /// Registers an open GET stream.
    pub(super) fn register_notification_stream(&self, at: EventId) {
        self.state().open.insert(at.stream);
    }

    /// Checks whether this GET stream is the newest. Only the newest sends notifications, so that none is sent twice.
    pub(super) fn is_newest(&self, at: EventId) -> bool {
        self.state().open.last().is_none_or(|it| *it <= at.stream)
    }

    /// Unregisters a GET stream. Keeps `announcements`, if any, so that the client can resume it.
    pub(super) fn detach_notification_stream(&self, at: EventId, announcements: Option<Announcements>) {
        let mut state = self.state();
        state.open.remove(&at.stream);
        let Some(announcements) = announcements else { return };
        if state.notification_stream.as_ref().is_none_or(|(other, _)| other.stream <= at.stream) {
            state.notification_stream = Some((at, announcements));
        }
    }

    /// Ends all streams and clears the replay buffer, because the session is over.
    pub(super) fn end(&self) {
        let state = std::mem::take(&mut *self.state());
        drop(state);
    }

    /// Takes the stream of a running request from its holder.
    ///
    /// The holder may still be attached to a connection whose loss it has not noticed yet.
    async fn claim(&self, stream: u64) -> Option<Box<ResumableStream>> {
        let claim = self.state().claims.remove(&stream)?;
        let (handover, received) = oneshot::channel();
        claim.send(handover).ok()?;
        time::timeout(HANDOVER_TIMEOUT, received).await.ok()?.ok()
    }

    fn register_claim(&self, stream: u64) -> oneshot::Receiver<HandoverSender> {
        let (claim, claimed) = oneshot::channel();
        self.state().claims.insert(stream, claim);
        claimed
    }

    fn state(&self) -> MutexGuard<'_, StreamsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSession {
    /// Formats the whole stream of a request that has only a response, and buffers the response.
    pub(super) fn whole_stream(&self, answer: &Outbound) -> Bytes {
        let mut at = self.streams.new_stream();
        let mut events = BytesMut::from(&self.opening_event(at).unwrap_or_default()[..]);
        events.extend_from_slice(&self.streams.record_event(&mut at, answer));
        events.freeze()
    }

    /// Returns the event that begins a stream before its first message. Clients of earlier versions do not expect it.
    fn opening_event(&self, at: EventId) -> Option<Bytes> {
        let is_expected = self.peer.terms.get().is_some_and(|it| it.version == LATEST_LEGACY);
        is_expected.then(|| response::opening_event(at))
    }
}

impl ResumableStream {
    pub(super) fn new(session: Arc<HttpSession>, rest: MessageStream) -> ResumableStream {
        let at = session.streams.new_stream();
        let opening = session.opening_event(at).filter(|_| rest.is_silent());
        let ready = opening.map(|text| BufferedEvent { id: at, text, is_last: false });
        ResumableStream { session, at, ready: ready.into_iter().collect(), rest: Some(rest) }
    }

    /// Returns the next event in wire format, or `None` at the end of the stream. Cancel-safe.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(event) = self.ready.pop_front() {
            self.session.streams.state().buffer.push(&event);
            return Some(event.text);
        }
        match self.rest.as_mut()?.next().await {
            Some(StreamItem::Message(message)) => {
                Some(self.session.streams.record_event(&mut self.at, &message))
            }
            Some(StreamItem::KeepAlive) => Some(response::keep_alive()),
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
    async fn advance(&mut self) {
        let Some(rest) = &mut self.rest else { return std::future::pending().await };
        match rest.next().await {
            Some(StreamItem::Message(message)) => self.ready.push_back(next_event(&mut self.at, &message)),
            Some(StreamItem::KeepAlive) => {}
            None => self.rest = None,
        }
        while self.ready.len() > 1
            && (self.ready.len() > MAX_EVENTS || self.ready_bytes() > MAX_SESSION_BYTES)
        {
            self.ready.pop_front();
        }
    }

    fn ready_bytes(&self) -> usize {
        self.ready.iter().map(|it| it.text.len()).sum()
    }

    fn has_more(&self) -> bool {
        !self.ready.is_empty() || self.rest.as_ref().is_some_and(|it| !it.is_over())
    }

    /// Runs detached until a client resumes the stream or [`DETACHED_TIMEOUT`] has passed.
    async fn run_detached(mut self: Box<ResumableStream>, mut claimed: oneshot::Receiver<HandoverSender>) {
        let mut timeout = pin!(time::sleep(DETACHED_TIMEOUT));
        loop {
            tokio::select! {
                biased;
                handover = &mut claimed => {
                    // The client no longer waits for the handover. Let another one claim the stream.
                    let Err(back) = hand_over(self, handover.ok()) else { return };
                    self = back;
                    claimed = self.session.streams.register_claim(self.at.stream);
                }
                () = &mut timeout => {
                    self.session.streams.state().claims.remove(&self.at.stream);
                    return;
                }
                () = self.advance() => {}
            }
        }
    }
}

impl AttachedStream {
    pub(super) fn new(request_stream: Box<ResumableStream>) -> AttachedStream {
        let claimed = request_stream.session.streams.register_claim(request_stream.at.stream);
        AttachedStream { request_stream: Some(request_stream), claimed }
    }

    /// Returns the next event in wire format, or `None` at the end of the stream or after a handover.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let request_stream = self.request_stream.as_mut()?;
            tokio::select! {
                biased;
                handover = &mut self.claimed => {
                    let request_stream = self.request_stream.take()?;
                    let stream = request_stream.at.stream;
                    let Err(back) = hand_over(request_stream, handover.ok()) else { return None };
                    self.claimed = back.session.streams.register_claim(stream);
                    self.request_stream = Some(back);
                }
                event = request_stream.next() => {
                    if event.is_none() {
                        self.release();
                    }
                    return event;
                }
            }
        }
    }

    fn release(&mut self) {
        if let Some(request_stream) = self.request_stream.take() {
            request_stream.session.streams.state().claims.remove(&request_stream.at.stream);
        }
    }
}

impl Drop for AttachedStream {
    fn drop(&mut self) {
        if !self.request_stream.as_ref().is_some_and(|it| it.has_more()) {
            return self.release();
        }
        let (Ok(runtime), Some(request_stream)) = (Handle::try_current(), self.request_stream.take()) else {
            return;
        };
        let (session, (_, never)) = (request_stream.session.clone(), oneshot::channel());
        let claimed = std::mem::replace(&mut self.claimed, never);
        let mut state = session.streams.state();
        while state.detached.try_join_next().is_some() {}
        if state.detached.len() < MAX_DETACHED {
            state.detached.spawn_on(request_stream.run_detached(claimed), &runtime);
        } else {
            state.claims.remove(&request_stream.at.stream);
        }
    }
}

impl fmt::Debug for ResumableStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResumableStream({})", self.at)
    }
}

/// Hands a stream over, or returns it if the receiver no longer waits. Without a taker the session is over, and the
/// stream is dropped.
fn hand_over(
    request_stream: Box<ResumableStream>,
    handover: Option<HandoverSender>,
) -> Result<(), Box<ResumableStream>> {
    match handover {
        Some(handover) => handover.send(request_stream),
        None => Ok(()),
    }
}

/// Formats a message as the next event of a stream.
fn next_event(at: &mut EventId, message: &Outbound) -> BufferedEvent {
    at.number += 1;
    let is_last = matches!(message, Outbound::Answer { .. });
    BufferedEvent { id: *at, text: response::event_with_id(*at, message), is_last }
}
