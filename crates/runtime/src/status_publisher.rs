//! Tracks the status of one source and publishes every change.

use crate::{
    Fault, Redactor,
    circuit_breaker::{BreakerState, Verdict},
    events::{EventBus, EventKind},
    source_status::{ConnectionState, Health, SessionEvent, SessionState, SourceStatus},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use wharf_mcp::{Disconnect, Exit, Raw, session::Terms, stdio::ProcessObserver};

/// Status of one source.
#[derive(Debug)]
pub(crate) struct StatusPublisher {
    name: Arc<str>,
    bus: EventBus,
    redactor: Arc<Redactor>,
    current: Mutex<CurrentStatus>,
    /// Whether changes of the status are published.
    publishes_changes: bool,
}

/// Shows a download in the status until it is dropped.
pub(crate) struct DownloadGuard(Arc<StatusPublisher>);

impl Drop for DownloadGuard {
    fn drop(&mut self) {
        self.0.set_download(None);
    }
}

#[derive(Clone, Debug)]
struct CurrentStatus {
    status: SourceStatus,
    breaker: BreakerState,
}

impl StatusPublisher {
    pub(crate) fn new(name: Arc<str>, bus: EventBus, redactor: Arc<Redactor>) -> StatusPublisher {
        let current =
            CurrentStatus { status: SourceStatus::default(), breaker: BreakerState::Closed { failures: 0 } };
        StatusPublisher { name, bus, redactor, current: Mutex::new(current), publishes_changes: true }
    }

    /// Creates the publisher of an additional session of the same source. It publishes logs and errors, but no
    /// changes of the status, because the status of a source is that of its main session.
    pub(crate) fn of_additional_session(&self) -> StatusPublisher {
        let (name, bus, redactor) = (self.name.clone(), self.bus.clone(), self.redactor.clone());
        StatusPublisher { publishes_changes: false, ..StatusPublisher::new(name, bus, redactor) }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn bus(&self) -> &EventBus {
        &self.bus
    }

    pub(crate) fn status(&self) -> (SourceStatus, ConnectionState) {
        let current = self.current();
        (current.status.clone(), current.connection())
    }

    /// Records that a session is being opened.
    pub(crate) fn connecting(&self) {
        self.change(|status| status.session = status.session.after(SessionEvent::Requested));
    }

    /// Records that a package or image is being downloaded for the source.
    pub(crate) fn downloading(self: &Arc<StatusPublisher>, what: &str) -> DownloadGuard {
        self.set_download(Some(what.to_owned()));
        DownloadGuard(self.clone())
    }

    fn set_download(&self, what: Option<String>) {
        self.current().status.downloading.clone_from(&what);
        self.publish(EventKind::Downloading(what));
    }

    /// Records that a session is open. Returns the number of sessions so far.
    pub(crate) fn session_opened(&self, terms: &Terms, took: Duration) -> u64 {
        self.change(|status| {
            status.session = status.session.after(SessionEvent::Opened);
            status.opened_at = Some(SystemTime::now());
            status.took = Some(took);
            status.era = Some(terms.era);
            status.version = Some(terms.version.to_string());
            status.capabilities = Some(terms.capabilities.detached());
            status.server = terms.server.as_ref().map(Raw::detached);
            status.instructions = terms.instructions.as_deref().map(Arc::from);
            status.last_seen = Some(SystemTime::now());
            (status.fault, status.failed_at) = (None, None);
            status.exit = None;
            status.sessions += 1;
        });
        self.current().status.sessions
    }

    pub(crate) fn open_failed(&self, fault: &Arc<Fault>) {
        self.change(|status| {
            status.session = status.session.after(SessionEvent::OpenFailed);
            status.pid = None;
            status.exit = fault.exit;
            status.fault = Some(fault.clone());
            status.failed_at = status.failed_at.or_else(|| Some(SystemTime::now()));
        });
    }

    /// Records the end of the session. The exit status follows a moment later.
    pub(crate) fn session_ended(&self) {
        self.change(|status| {
            status.session = status.session.after(SessionEvent::Ended);
            status.pid = None;
        });
    }

    /// Records how a session ended, after its cleanup. Does not change the state if another session has been started
    /// in the meantime.
    pub(crate) fn session_finished(&self, disconnect: &Disconnect) {
        let is_clean = !disconnect.protocol && matches!(disconnect.exit, None | Some(Exit::Code(0)));
        if self.current().status.session == SessionState::Disconnected {
            self.change(|status| {
                status.exit = disconnect.exit;
                if !is_clean {
                    status.session = status.session.after(SessionEvent::FoundBroken);
                }
            });
        }
        if !is_clean {
            self.publish(EventKind::Exception(self.redactor.redact(&disconnect.to_string())));
        }
    }

    /// Updates the health with the verdict of a call.
    pub(crate) fn record_verdict(&self, verdict: Verdict) {
        match verdict {
            Verdict::Unknown => {}
            Verdict::Healthy => {
                let mut current = self.current();
                current.status.last_seen = Some(SystemTime::now());
                if current.status.health == Health::Healthy {
                    return;
                }
                drop(current);
                self.change(|status| (status.failures, status.health) = (0, Health::Healthy));
            }
            Verdict::Failed => self.change(|status| {
                status.failures = status.failures.saturating_add(1);
                status.health = Health::of(status.failures);
            }),
        }
    }

    /// Records that the server responded, whether or not its tools work.
    pub(crate) fn record_response(&self) {
        self.change(|status| {
            status.last_seen = Some(SystemTime::now());
            if status.health == Health::Unknown {
                status.health = Health::Healthy;
            }
        });
    }

    /// Records a state change of the circuit breaker.
    pub(crate) fn breaker_changed(&self, breaker: BreakerState) {
        let mut current = self.current();
        let before = current.connection();
        current.breaker = breaker;
        let after = current.connection();
        drop(current);
        self.publish(EventKind::Breaker(breaker));
        if before != after {
            self.publish(EventKind::Connection(after));
        }
    }

    pub(crate) fn publish(&self, what: EventKind) {
        self.bus.publish(&self.name, what);
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    fn change(&self, apply: impl FnOnce(&mut SourceStatus)) {
        let mut current = self.current();
        let before = (current.status.session, current.connection(), current.status.health);
        apply(&mut current.status);
        let after = (current.status.session, current.connection(), current.status.health);
        drop(current);
        self.publish_changes(before, after);
    }

    fn publish_changes(
        &self,
        before: (SessionState, ConnectionState, Health),
        after: (SessionState, ConnectionState, Health),
    ) {
        if !self.publishes_changes {
            return;
        }
        if before.0 != after.0 {
            self.publish(EventKind::Session(after.0));
        }
        if before.1 != after.1 {
            self.publish(EventKind::Connection(after.1));
        }
        if before.2 != after.2 {
            self.publish(EventKind::Health(after.2));
        }
    }

    fn current(&self) -> MutexGuard<'_, CurrentStatus> {
        // Every update is a few plain assignments, so a panic cannot leave the data inconsistent.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CurrentStatus {
    fn connection(&self) -> ConnectionState {
        ConnectionState::of(self.status.session, self.breaker)
    }
}

impl ProcessObserver for StatusPublisher {
    fn started(&self, pid: Option<u32>) {
        self.current().status.pid = pid;
    }

    fn stderr_line(&self, line: &str) {
        tracing::debug!(target: "wharf::stderr", source = &*self.name, "{}", self.redact(line));
        if self.bus.has_listeners() {
            self.publish(EventKind::Stderr(self.redact(line)));
        }
    }
}
