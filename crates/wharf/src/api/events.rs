//! Server-sent events at `/api/v1/events`.
//!
//! One task receives all events of the runtime and formats each once. Every listener has a short queue. A listener that
//! does not read in time is disconnected, so that it cannot delay others; one that asked for a pace gets batches, and
//! loses calls instead. Events contain no secrets, and their texts are truncated.

mod event_json;
mod known_world;
mod paced_queue;
mod stream;

use super::{ApiState, problem::Problem, query::Query};
use crate::{gateway::ClientChange, http_server::ConnectionHandle};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use known_world::KnownWorld;
use paced_queue::{PacedQueue, PublishedEvent};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use stream::Stream;
use tokio::{
    sync::{
        Notify,
        mpsc::{self, error::TrySendError},
    },
    time::{MissedTickBehavior, interval},
};
use wharf_mcp::serve::http::Body;
use wharf_runtime::{Event, EventKind, Events, Status, time_format::rfc3339};

/// Maximum number of listeners.
const MAX_LISTENERS: usize = 256;

/// Maximum number of events that are queued for a slow listener.
const MAX_QUEUED_EVENTS: usize = 256;

/// Allowed values of `pace`, in milliseconds.
const PACE_RANGE: std::ops::RangeInclusive<u64> = 50..=5_000;

/// How often the readiness of the gateway is compared with the one that listeners know.
const READINESS_INTERVAL: Duration = Duration::from_millis(500);

/// Distributes events to all listeners.
#[derive(Default)]
pub(super) struct Hub {
    listeners: Mutex<Vec<Listener>>,
    /// Number of the last event.
    number: AtomicU64,
    /// The event subscription that is opened with the first listener, until the task takes it.
    pending_subscription: Mutex<Option<Events>>,
    subscribed: Notify,
}

struct Listener {
    filter: EventFilter,
    queue: mpsc::Sender<Bytes>,
    /// The queue of a listener that wants batches.
    paced: Option<Arc<PacedQueue>>,
    /// Its connection, which is closed if the client does not read.
    connection: Option<ConnectionHandle>,
}

/// Filter of a listener.
#[derive(Debug)]
struct EventFilter {
    source: Option<String>,
    /// Kinds of events; empty for all.
    kinds: Vec<String>,
}

impl Hub {
    /// Adds a listener and returns its stream, which begins with `hello` and continues with the next event.
    pub(super) fn subscribe<B>(
        &self,
        shared: &ApiState,
        request: &Request<B>,
    ) -> Result<Response<Body>, Problem> {
        let query = Query::read(request.uri().query(), &["source", "kind", "pace"])?;
        let filter = EventFilter::read(&query);
        let pace = query.number("pace", PACE_RANGE)?.map(Duration::from_millis);
        if *shared.draining.borrow() {
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "wharf is shutting down"));
        }
        let (queue, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        let paced = pace.map(|_| Arc::<PacedQueue>::default());
        let mut listeners = self.listeners();
        listeners.retain(|it| !it.queue.is_closed());
        if listeners.len() >= MAX_LISTENERS {
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many event listeners")
                .hint(format!("at most {MAX_LISTENERS} clients may listen at a time"))
                .retry_after(Duration::from_secs(5)));
        }
        if listeners.is_empty() {
            let subscription = shared.handle.events();
            *self.pending_subscription.lock().unwrap_or_else(PoisonError::into_inner) = Some(subscription);
            self.subscribed.notify_one();
        }
        let number = self.number.load(Ordering::Relaxed);
        // The queue is new, so it has room.
        let _ = queue.try_send(hello(shared, number));
        let connection = request.extensions().get().cloned();
        listeners.push(Listener { filter, queue, paced: paced.clone(), connection });
        drop(listeners);
        let mut response = Response::new(Stream::new(events, paced.zip(pace)).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    /// Distributes events until draining begins, then ends all streams.
    pub(super) async fn distribute(&self, shared: &ApiState) {
        let mut draining = shared.draining.clone();
        tokio::select! {
            _ = draining.wait_for(|it| *it) => {}
            () = async {
                loop {
                    self.subscribed.notified().await;
                    let pending_subscription = self.pending_subscription.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if let Some(events) = pending_subscription {
                        self.distribute_while_subscribed(shared, events).await;
                    }
                }
            } => {}
        }
        self.publish("", "ready", || event_json::of("", "ready", &shared.readiness()));
        self.listeners().clear();
        std::future::pending().await
    }

    /// Distributes events until the last listener has left. Without listeners there is no subscription, so events
    /// cost nothing.
    async fn distribute_while_subscribed(&self, shared: &ApiState, mut events: Events) {
        let ApiState { handle, registry, .. } = shared;
        let mut catalogs = handle.catalogs();
        catalogs.mark_unchanged();
        let mut world = KnownWorld::new(&handle.catalog(), handle, registry);
        let mut readiness = shared.readiness();
        // Listeners read the present clients themselves.
        drop(shared.service.handler().clients().take_changes());
        let mut ticks = interval(READINESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let has_listeners = tokio::select! {
                biased;
                Some(event) = events.next() => self.publish_event(shared, &event),
                Ok(()) = catalogs.changed() => {
                    let catalog = catalogs.borrow_and_update().clone();
                    for (source, kind, data) in world.update(KnownWorld::new(&catalog, handle, registry)) {
                        self.publish(&source, kind, || event_json::of(&source, kind, &data));
                    }
                    self.publish("", "catalog", || event_json::catalog(&catalog))
                }
                _ = ticks.tick() => {
                    for ClientChange { name, change } in shared.service.handler().clients().take_changes() {
                        let data = json!({ "name": name, "change": change });
                        self.publish("", "client", || event_json::of("", "client", &data));
                    }
                    let now = shared.readiness();
                    match now == readiness {
                        true => !self.listeners().is_empty(),
                        false => {
                            readiness = now;
                            self.publish("", "ready", || event_json::of("", "ready", &readiness))
                        }
                    }
                }
                else => return,
            };
            if !has_listeners {
                return;
            }
        }
    }

    fn publish_event(&self, shared: &ApiState, event: &Event) -> bool {
        let is_failure = matches!(&event.what, EventKind::Called(it) if it.status() != Status::Success);
        let write = || event_json::event(event, &shared.handle);
        self.publish_with(&event.source, event.what.as_str(), is_failure, write)
    }

    /// Sends an event to the listeners whose filter matches. Returns whether there are any listeners left.
    pub(super) fn publish(&self, source: &str, kind: &'static str, write: impl FnOnce() -> Value) -> bool {
        self.publish_with(source, kind, false, write)
    }

    fn publish_with(
        &self,
        source: &str,
        kind: &'static str,
        is_failure: bool,
        write: impl FnOnce() -> Value,
    ) -> bool {
        let mut listeners = self.listeners();
        listeners.retain(|it| !it.queue.is_closed());
        if listeners.is_empty() {
            return false;
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        if !listeners.iter().any(|it| it.filter.matches(source, kind)) {
            return true;
        }
        let json = Bytes::from(write().to_string());
        let event = PublishedEvent { number, kind, is_failure, json };
        let mut text = None;
        listeners.retain(|it| !it.filter.matches(source, kind) || it.take(&event, &mut text));
        !listeners.is_empty()
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Queues an event and returns whether the listener stays. A listener with a full queue is disconnected, unless it
    /// has a pace. `text` is the event on the wire, written for the first listener that needs it.
    fn take(&self, event: &PublishedEvent, text: &mut Option<Bytes>) -> bool {
        if let Some(paced) = &self.paced {
            paced.push(event.clone());
            return true;
        }
        let text = text.get_or_insert_with(|| message(Some(event.number), event.kind, &event.json));
        let taken = self.queue.try_send(text.clone());
        if matches!(taken, Err(TrySendError::Full(_))) {
            self.connection.iter().for_each(ConnectionHandle::close_now);
        }
        taken.is_ok()
    }
}

impl EventFilter {
    fn read(query: &Query) -> EventFilter {
        let kinds = query.text("kind").into_iter().flat_map(|it| it.split(','));
        let kinds = kinds.filter(|it| !it.is_empty()).map(str::to_owned).collect();
        EventFilter { source: query.text("source").map(str::to_owned), kinds }
    }

    fn matches(&self, source: &str, kind: &str) -> bool {
        self.source.as_deref().is_none_or(|it| it == source)
            && (self.kinds.is_empty() || self.kinds.iter().any(|it| it == kind))
    }
}

/// The first message of every stream. Another `started_at` than before means that the gateway was restarted.
fn hello(shared: &ApiState, number: u64) -> Bytes {
    let data = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": rfc3339(shared.started_at),
        "number": number,
    });
    let json = Bytes::from(event_json::of("", "hello", &data).to_string());
    message(None, "hello", &json)
}

/// Writes a server-sent event.
fn message(number: Option<u64>, kind: &str, json: &Bytes) -> Bytes {
    let json = std::str::from_utf8(json).unwrap_or("null");
    let id = number.map(|it| format!("id: {it}\n")).unwrap_or_default();
    format!("{id}event: {kind}\ndata: {json}\n\n").into()
}
