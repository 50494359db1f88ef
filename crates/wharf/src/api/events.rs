//! Server-sent events at `/api/v1/events`.
//!
//! One task receives all events of the runtime and formats each once. Every listener has a short queue; a listener
//! that does not read in time is disconnected, so that it cannot delay others. Events contain no secrets, and their
//! texts are truncated.

mod event_json;
mod stream;

use super::{problem::Problem, query::Query};
use crate::http_server::ConnectionHandle;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use stream::Stream;
use tokio::sync::{
    Notify,
    mpsc::{self, error::TrySendError},
    watch,
};
use wharf_mcp::serve::http::Body;
use wharf_runtime::{Events, Handle};

/// Maximum number of listeners.
const MAX_LISTENERS: usize = 256;

/// Maximum number of events that are queued for a slow listener.
const MAX_QUEUED_EVENTS: usize = 256;

/// Distributes events to all listeners.
#[derive(Default)]
pub(super) struct Hub {
    listeners: Mutex<Vec<Listener>>,
    /// The event subscription that is opened with the first listener, until the task takes it.
    pending_subscription: Mutex<Option<Events>>,
    subscribed: Notify,
}

struct Listener {
    filter: EventFilter,
    queue: mpsc::Sender<Bytes>,
    /// Its connection, which is closed if the client does not read.
    connection: Option<ConnectionHandle>,
}

/// Filter of a listener.
#[derive(Debug)]
struct EventFilter {
    source: Option<String>,
    kind: Option<String>,
}

impl Hub {
    /// Adds a listener and returns its stream, which starts with the next event.
    pub(super) fn subscribe<B>(
        &self,
        handle: &Handle,
        request: &Request<B>,
        draining: bool,
    ) -> Result<Response<Body>, Problem> {
        let query = Query::read(request.uri().query(), &["source", "kind"])?;
        let connection = request.extensions().get().cloned();
        let text = |key: &str| query.text(key).map(str::to_owned);
        let filter = EventFilter { source: text("source"), kind: text("kind") };
        if draining {
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "wharf is shutting down"));
        }
        let (queue, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        let mut listeners = self.listeners();
        listeners.retain(|it| !it.queue.is_closed());
        if listeners.len() >= MAX_LISTENERS {
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many event listeners")
                .hint(format!("at most {MAX_LISTENERS} clients may listen at a time"))
                .retry_after(Duration::from_secs(5)));
        }
        if listeners.is_empty() {
            *self.pending_subscription.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.events());
            self.subscribed.notify_one();
        }
        listeners.push(Listener { filter, queue, connection });
        drop(listeners);
        let mut response = Response::new(Stream::new(events).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    /// Distributes events until draining begins, then ends all streams.
    pub(super) async fn distribute(&self, handle: Handle, mut draining: watch::Receiver<bool>) {
        let mut number = 0_u64;
        tokio::select! {
            _ = draining.wait_for(|it| *it) => {}
            () = async {
                loop {
                    self.subscribed.notified().await;
                    let pending_subscription = self.pending_subscription.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if let Some(events) = pending_subscription {
                        self.distribute_while_subscribed(&mut number, &handle, events).await;
                    }
                }
            } => {}
        }
        self.listeners().clear();
        std::future::pending().await
    }

    /// Distributes events until the last listener has left. Without listeners there is no subscription, so events
    /// cost nothing.
    async fn distribute_while_subscribed(&self, number: &mut u64, handle: &Handle, mut events: Events) {
        let mut catalogs = handle.catalogs();
        catalogs.mark_unchanged();
        loop {
            let has_listeners = tokio::select! {
                biased;
                Some(event) = events.next() => {
                    self.publish(number, &event.source, event.what.as_str(), || event_json::event(&event))
                }
                Ok(()) = catalogs.changed() => {
                    let catalog = catalogs.borrow_and_update().clone();
                    self.publish(number, "", "catalog", || event_json::catalog(&catalog))
                }
                else => return,
            };
            if !has_listeners {
                return;
            }
        }
    }

    /// Sends an event to the listeners whose filter matches. Returns whether there are any listeners left.
    fn publish(
        &self,
        number: &mut u64,
        source: &str,
        kind: &str,
        write: impl FnOnce() -> serde_json::Value,
    ) -> bool {
        let mut listeners = self.listeners();
        if listeners.is_empty() {
            return false;
        }
        *number += 1;
        let text = Bytes::from(format!("id: {number}\nevent: {kind}\ndata: {}\n\n", write()));
        listeners.retain(|it| !it.filter.matches(source, kind) || it.try_queue(&text));
        !listeners.is_empty()
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Queues an event and returns whether the listener stays. A listener with a full queue is disconnected.
    fn try_queue(&self, text: &Bytes) -> bool {
        let taken = self.queue.try_send(text.clone());
        if matches!(taken, Err(TrySendError::Full(_))) {
            self.connection.iter().for_each(ConnectionHandle::close_now);
        }
        taken.is_ok()
    }
}

impl EventFilter {
    fn matches(&self, source: &str, kind: &str) -> bool {
        let fits = |wanted: &Option<String>, it: &str| wanted.as_deref().is_none_or(|wanted| wanted == it);
        fits(&self.source, source) && fits(&self.kind, kind)
    }
}
