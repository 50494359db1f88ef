//! Publishes events to listeners. Publishing never waits: a slow listener loses the oldest events.

use crate::{
    breaker::Breaker,
    call::CallRecord,
    executor::Closing,
    standing::{ConnectionState, Health, SessionState},
};
use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    mpsc, watch,
};
use wharf_mcp::{Raw, session::Progress};

/// Number of events buffered for a slow listener.
const KEPT: usize = 1_024;

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Time of the event.
    pub at: SystemTime,
    /// The source, or empty if the event concerns none.
    pub source: Arc<str>,
    /// Kind and data of the event.
    pub what: Happening,
}

/// Kind and data of an event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// The state of the session changed.
    Session(SessionState),
    /// The state of the connection changed.
    Connection(ConnectionState),
    /// A package or image is being downloaded for the source; `None` when the download has ended.
    Downloading(Option<String>),
    /// The health of the source changed.
    Health(Health),
    /// The state of the circuit breaker changed.
    Breaker(Breaker),
    /// The lists of the source were read.
    Listed {
        /// Number of tools it has now.
        tools: usize,
    },
    /// A resource changed.
    ResourceUpdated(String),
    /// The server sent a log message.
    Log {
        /// The server's log level, debug to emergency.
        level: String,
        /// The logger's name.
        logger: Option<String>,
        /// The message, any JSON value.
        data: Raw,
        /// Whether the message belongs to a call. If so, the caller has received it if it subscribed.
        of_call: bool,
    },
    /// The server wrote a line to stderr.
    Stderr(String),
    /// A call reported progress.
    Progress {
        /// The request id of the call.
        request_id: Arc<str>,
        /// The progress.
        progress: Progress,
    },
    /// The server violated the protocol or exited abnormally; the text describes how.
    Exception(String),
    /// A call completed.
    Called(Arc<CallRecord>),
    /// This listener was too slow and lost this many events.
    Missed(u64),
}

/// Receives events one at a time, in a task of its own.
pub trait Observer: Send + Sync {
    /// Handles an event.
    fn heard(&self, event: &Event);
}

/// Receiver of events.
#[derive(Debug)]
pub struct Events {
    told: broadcast::Receiver<Event>,
    closing: watch::Receiver<Closing>,
}

/// Receiver of abandoned calls. Loses none, so the owner has to keep reading; the queue is unbounded.
#[derive(Debug)]
pub struct AbandonedCalls {
    records: mpsc::UnboundedReceiver<Arc<CallRecord>>,
    closing: watch::Receiver<Closing>,
}

/// Publishes events to all listeners. Most listeners need changes only and are not woken for every call.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    all: broadcast::Sender<Event>,
    changes: broadcast::Sender<Event>,
    /// The receiver of abandoned calls, if any.
    abandoned: Arc<OnceLock<mpsc::UnboundedSender<Arc<CallRecord>>>>,
}

impl Default for Bus {
    fn default() -> Bus {
        let (all, changes) = (broadcast::Sender::new(KEPT), broadcast::Sender::new(KEPT));
        Bus { all, changes, abandoned: Arc::default() }
    }
}

impl Bus {
    pub(crate) fn tell(&self, source: &Arc<str>, what: Happening) {
        let (all, changes) = (self.hears_all(), what.is_change() && self.changes.receiver_count() > 0);
        if !all && !changes {
            return;
        }
        let event = Event { at: SystemTime::now(), source: source.clone(), what };
        // Fails if the last listener has just left.
        if changes {
            let _ = self.changes.send(event.clone());
        }
        if all {
            let _ = self.all.send(event);
        }
    }

    /// Publishes a completed call.
    pub(crate) fn tell_call(&self, record: &Arc<CallRecord>) {
        if record.is_abandoned()
            && let Some(taker) = self.abandoned.get()
        {
            let _ = taker.send(record.clone());
        }
        let source = record.source.clone().unwrap_or_default();
        self.tell(&source, Happening::Called(record.clone()));
    }

    /// Subscribes to abandoned calls. Only the first subscriber receives them.
    pub(crate) fn take_abandoned(&self, closing: watch::Receiver<Closing>) -> AbandonedCalls {
        let (taker, records) = mpsc::unbounded_channel();
        let _ = self.abandoned.set(taker);
        AbandonedCalls { records, closing }
    }

    /// Returns whether any listener receives changes.
    pub(crate) fn has_listeners(&self) -> bool {
        self.hears_all() || self.changes.receiver_count() > 0
    }

    /// Returns whether any listener receives all events.
    pub(crate) fn hears_all(&self) -> bool {
        self.all.receiver_count() > 0
    }

    pub(crate) fn listen(&self, closing: watch::Receiver<Closing>) -> Events {
        Events { told: self.all.subscribe(), closing }
    }

    pub(crate) fn listen_to_changes(&self, closing: watch::Receiver<Closing>) -> Events {
        Events { told: self.changes.subscribe(), closing }
    }
}

impl Events {
    /// Returns the next event, or `None` after the runtime has shut down.
    pub async fn next(&mut self) -> Option<Event> {
        let told = tokio::select! {
            biased;
            told = self.told.recv() => told,
            _ = self.closing.wait_for(|it| *it == Closing::Gone) => return None,
        };
        match told {
            Ok(event) => Some(event),
            Err(RecvError::Closed) => None,
            Err(RecvError::Lagged(missed)) => {
                Some(Event { at: SystemTime::now(), source: "".into(), what: Happening::Missed(missed) })
            }
        }
    }
}

impl AbandonedCalls {
    /// Returns the next call, or `None` after the runtime has shut down and all calls have been read.
    pub async fn next(&mut self) -> Option<Arc<CallRecord>> {
        tokio::select! {
            biased;
            record = self.records.recv() => record,
            _ = self.closing.wait_for(|it| *it == Closing::Gone) => self.records.try_recv().ok(),
        }
    }
}

impl Happening {
    /// Returns whether the event is neither progress nor a call that returned to its caller.
    fn is_change(&self) -> bool {
        match self {
            Happening::Progress { .. } => false,
            Happening::Called(record) => record.is_abandoned(),
            _ => true,
        }
    }

    /// Returns the name of the kind in streams and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Happening::Session(_) => "session",
            Happening::Connection(_) => "connection",
            Happening::Downloading(_) => "downloading",
            Happening::Health(_) => "health",
            Happening::Breaker(_) => "breaker",
            Happening::Listed { .. } => "listed",
            Happening::ResourceUpdated(_) => "resource_updated",
            Happening::Log { .. } => "log",
            Happening::Stderr(_) => "stderr",
            Happening::Progress { .. } => "progress",
            Happening::Exception(_) => "exception",
            Happening::Called(_) => "call",
            Happening::Missed(_) => "missed",
        }
    }
}
