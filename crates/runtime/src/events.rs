//! What happens, told to whoever listens. Nobody waits for a listener: a slow one misses the oldest.

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

/// How many events wait for a slow listener.
const KEPT: usize = 1_024;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub at: SystemTime,
    /// To which source; empty where it concerns none.
    pub source: Arc<str>,
    /// What.
    pub what: Happening,
}

/// What can happen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// The session is in another state.
    Session(SessionState),
    /// The connection is in another state.
    Connection(ConnectionState),
    /// A package or image is being downloaded for the source; `None` when that is over.
    Downloading(Option<String>),
    /// Calls have shown something new about the source.
    Health(Health),
    /// The breaker is in another state.
    Breaker(Breaker),
    /// What the source offers has been read anew.
    Listed {
        /// How many tools it has now.
        tools: usize,
    },
    /// A resource has changed.
    ResourceUpdated(String),
    /// The server logs.
    Log {
        /// As the server calls it: debug to emergency.
        level: String,
        /// Which part of the server.
        logger: Option<String>,
        /// What it says, of any shape.
        data: Raw,
        /// Whether it said it in the course of a call, whose caller has heard it if it wanted to.
        of_call: bool,
    },
    /// The server wrote a line to stderr.
    Stderr(String),
    /// A call gets on.
    Progress {
        /// Which call.
        request_id: Arc<str>,
        /// How far.
        progress: Progress,
    },
    /// The server broke the protocol, or ended badly: how.
    Exception(String),
    /// A call is over.
    Called(Arc<CallRecord>),
    /// This listener was too slow for so many events.
    Missed(u64),
}

/// Hears what happens. Called from a task of its own, one event after the other.
pub trait Observer: Send + Sync {
    /// Something has happened.
    fn heard(&self, event: &Event);
}

/// The listener's end of the stream of events.
#[derive(Debug)]
pub struct Events {
    told: broadcast::Receiver<Event>,
    closing: watch::Receiver<Closing>,
}

/// The calls whose callers left before there was an answer. None is missed, so whoever takes this has to go on reading it.
#[derive(Debug)]
pub struct AbandonedCalls {
    records: mpsc::UnboundedReceiver<Arc<CallRecord>>,
    closing: watch::Receiver<Closing>,
}

/// Everybody who listens. Most only want to hear of changes: they are not woken for every call.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    all: broadcast::Sender<Event>,
    changes: broadcast::Sender<Event>,
    /// Whoever writes down the calls whose callers left.
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
        // The last listener may leave in between.
        if changes {
            let _ = self.changes.send(event.clone());
        }
        if all {
            let _ = self.all.send(event);
        }
    }

    /// Tells of a call that is over.
    pub(crate) fn tell_call(&self, record: &Arc<CallRecord>) {
        if record.is_abandoned()
            && let Some(taker) = self.abandoned.get()
        {
            let _ = taker.send(record.clone());
        }
        let source = record.source.clone().unwrap_or_default();
        self.tell(&source, Happening::Called(record.clone()));
    }

    /// The calls whose callers leave from now on. Only the first who asks gets them.
    pub(crate) fn take_abandoned(&self, closing: watch::Receiver<Closing>) -> AbandonedCalls {
        let (taker, records) = mpsc::unbounded_channel();
        let _ = self.abandoned.set(taker);
        AbandonedCalls { records, closing }
    }

    /// Whether somebody wants to hear of something that is a change.
    pub(crate) fn has_listeners(&self) -> bool {
        self.hears_all() || self.changes.receiver_count() > 0
    }

    /// Whether somebody wants to hear of everything.
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
    /// The next event; `None` when the runtime is gone.
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
    /// The next call; `None` when the runtime is gone and all of them have been read.
    pub async fn next(&mut self) -> Option<Arc<CallRecord>> {
        tokio::select! {
            biased;
            record = self.records.recv() => record,
            _ = self.closing.wait_for(|it| *it == Closing::Gone) => self.records.try_recv().ok(),
        }
    }
}

impl Happening {
    /// Whether it is more than the daily business: neither progress nor a call that its caller has heard the end of.
    fn is_change(&self) -> bool {
        match self {
            Happening::Progress { .. } => false,
            Happening::Called(record) => record.is_abandoned(),
            _ => true,
        }
    }

    /// Its name in streams and logs.
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
