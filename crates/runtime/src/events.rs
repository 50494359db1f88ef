//! Publishes events to listeners. Publishing never waits: a slow listener loses the oldest events.

use crate::{
    call::CallRecord,
    circuit_breaker::BreakerState,
    shutdown_stage::ShutdownStage,
    source_status::{ConnectionState, Health, SessionState},
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
const EVENT_BUFFER_LENGTH: usize = 1_024;

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Time of the event.
    pub at: SystemTime,
    /// The source, or empty if the event concerns none.
    pub source: Arc<str>,
    /// Kind and data of the event.
    pub what: EventKind,
}

/// Kind and data of an event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The state of the session changed.
    Session(SessionState),
    /// The state of the connection changed.
    Connection(ConnectionState),
    /// A package or image is being downloaded for the source; `None` when the download has ended.
    Downloading(Option<String>),
    /// The health of the source changed.
    Health(Health),
    /// The state of the circuit breaker changed.
    Breaker(BreakerState),
    /// The lists of the source were read.
    Listed {
        /// Number of tools it has now.
        tools: usize,
    },
    /// A tool differs from the lock.
    Lock {
        /// The id of the tool, `source:tool`.
        tool_id: String,
        /// `blocked`, or `changed` if it can be called.
        state: &'static str,
        /// Hash of its current definition.
        hash: String,
    },
    /// The dependencies of the package differ from the lock.
    DependenciesChanged,
    /// A fault was injected into a call.
    FaultInjected {
        /// Number of the rule, from 1.
        rule: usize,
    },
    /// A large result was stored, and its reader got a handle.
    ResultStored {
        /// Id of the result.
        id: String,
        /// Its size.
        bytes: u64,
    },
    /// A resource changed.
    ResourceUpdated(String),
    /// The user has finished with a URL that the server asked to open: the parameters of the notification.
    ElicitationComplete(Raw),
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
    /// A call began: its tool is known, and its arguments are checked next.
    Begun {
        /// The request id of the call.
        request_id: Arc<str>,
        /// The tool, as `source:tool`.
        tool_id: String,
        /// The interface that received the call.
        via: &'static str,
        /// The authenticated principal, if any.
        principal: Option<Arc<str>>,
    },
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
    fn on_event(&self, event: &Event);
}

/// Receiver of events.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Event>,
    closing: watch::Receiver<ShutdownStage>,
}

/// Receiver of abandoned calls. Loses none, so the owner has to keep reading; the queue is unbounded.
#[derive(Debug)]
pub struct AbandonedCalls {
    records: mpsc::UnboundedReceiver<Arc<CallRecord>>,
    closing: watch::Receiver<ShutdownStage>,
}

/// Publishes events to all listeners. Most listeners need changes only and are not woken for every call.
#[derive(Clone, Debug)]
pub(crate) struct EventBus {
    all: broadcast::Sender<Event>,
    changes: broadcast::Sender<Event>,
    /// The receiver of abandoned calls, if any.
    abandoned: Arc<OnceLock<mpsc::UnboundedSender<Arc<CallRecord>>>>,
}

impl Default for EventBus {
    fn default() -> EventBus {
        let (all, changes) =
            (broadcast::Sender::new(EVENT_BUFFER_LENGTH), broadcast::Sender::new(EVENT_BUFFER_LENGTH));
        EventBus { all, changes, abandoned: Arc::default() }
    }
}

impl EventBus {
    pub(crate) fn publish(&self, source: &Arc<str>, what: EventKind) {
        let (all, changes) =
            (self.has_full_listeners(), what.is_change() && self.changes.receiver_count() > 0);
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

    /// Publishes a completed call. `has_caller` says whether its caller receives the record.
    pub(crate) fn publish_call(&self, record: &Arc<CallRecord>, has_caller: bool) {
        if !has_caller && let Some(subscriber) = self.abandoned.get() {
            let _ = subscriber.send(record.clone());
        }
        let source = record.source.clone().unwrap_or_default();
        self.publish(&source, EventKind::Called(record.clone()));
    }

    /// Subscribes to abandoned calls. Only the first subscriber receives them.
    pub(crate) fn subscribe_to_abandoned(&self, closing: watch::Receiver<ShutdownStage>) -> AbandonedCalls {
        let (subscriber, records) = mpsc::unbounded_channel();
        let _ = self.abandoned.set(subscriber);
        AbandonedCalls { records, closing }
    }

    /// Returns whether any listener receives changes.
    pub(crate) fn has_listeners(&self) -> bool {
        self.has_full_listeners() || self.changes.receiver_count() > 0
    }

    /// Returns whether any listener receives all events.
    pub(crate) fn has_full_listeners(&self) -> bool {
        self.all.receiver_count() > 0
    }

    pub(crate) fn subscribe(&self, closing: watch::Receiver<ShutdownStage>) -> Events {
        Events { receiver: self.all.subscribe(), closing }
    }

    pub(crate) fn subscribe_to_changes(&self, closing: watch::Receiver<ShutdownStage>) -> Events {
        Events { receiver: self.changes.subscribe(), closing }
    }
}

impl Events {
    /// Returns the next event, or `None` after the runtime has shut down.
    pub async fn next(&mut self) -> Option<Event> {
        let received = tokio::select! {
            biased;
            received = self.receiver.recv() => received,
            _ = self.closing.wait_for(|it| *it == ShutdownStage::Gone) => return None,
        };
        match received {
            Ok(event) => Some(event),
            Err(RecvError::Closed) => None,
            Err(RecvError::Lagged(missed)) => {
                Some(Event { at: SystemTime::now(), source: "".into(), what: EventKind::Missed(missed) })
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
            _ = self.closing.wait_for(|it| *it == ShutdownStage::Gone) => self.records.try_recv().ok(),
        }
    }
}

impl EventKind {
    /// Returns whether the event is neither progress nor a call that returned to its caller.
    fn is_change(&self) -> bool {
        match self {
            EventKind::Progress { .. } | EventKind::Begun { .. } | EventKind::ResultStored { .. } => false,
            EventKind::Called(record) => record.is_abandoned(),
            _ => true,
        }
    }

    /// Returns the name of the kind in streams and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            EventKind::Session(_) => "session",
            EventKind::Connection(_) => "connection",
            EventKind::Downloading(_) => "downloading",
            EventKind::Health(_) => "health",
            EventKind::Breaker(_) => "breaker",
            EventKind::Listed { .. } => "listed",
            EventKind::ResourceUpdated(_) => "resource_updated",
            EventKind::ElicitationComplete(_) => "elicitation_complete",
            EventKind::Log { .. } => "log",
            EventKind::Stderr(_) => "stderr",
            EventKind::Begun { .. } => "begun",
            EventKind::Progress { .. } => "progress",
            EventKind::Exception(_) => "exception",
            EventKind::Called(_) => "call",
            EventKind::Lock { .. } | EventKind::DependenciesChanged => "lock",
            EventKind::FaultInjected { .. } => "fault_injected",
            EventKind::ResultStored { .. } => "result",
            EventKind::Missed(_) => "missed",
        }
    }
}
