//! Tracks the status of one source and publishes every change.

use crate::{
    Fault, Redactor,
    breaker::{Breaker, Verdict},
    events::{Bus, Happening},
    standing::{ConnectionState, Health, SessionState, Standing, Turn},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use wharf_mcp::{Exit, Goodbye, Raw, session::Terms, stdio::Witness};

/// Status of one source.
#[derive(Debug)]
pub(crate) struct Board {
    name: Arc<str>,
    bus: Bus,
    redactor: Arc<Redactor>,
    notes: Mutex<Notes>,
}

/// Shows a download in the status until it is dropped.
pub(crate) struct Downloading(Arc<Board>);

impl Drop for Downloading {
    fn drop(&mut self) {
        self.0.show_download(None);
    }
}

#[derive(Clone, Debug)]
struct Notes {
    standing: Standing,
    breaker: Breaker,
}

impl Board {
    pub(crate) fn new(name: Arc<str>, bus: Bus, redactor: Arc<Redactor>) -> Board {
        let notes = Notes { standing: Standing::default(), breaker: Breaker::Closed { failures: 0 } };
        Board { name, bus, redactor, notes: Mutex::new(notes) }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn bus(&self) -> &Bus {
        &self.bus
    }

    pub(crate) fn standing(&self) -> (Standing, ConnectionState) {
        let notes = self.notes();
        (notes.standing.clone(), notes.connection())
    }

    /// Records that a session is being opened.
    pub(crate) fn wanted(&self) {
        self.change(|standing| standing.session = standing.session.after(Turn::Wanted));
    }

    /// Records that a package or image is being downloaded for the source.
    pub(crate) fn downloading(self: &Arc<Board>, what: &str) -> Downloading {
        self.show_download(Some(what.to_owned()));
        Downloading(self.clone())
    }

    fn show_download(&self, what: Option<String>) {
        self.notes().standing.downloading.clone_from(&what);
        self.tell(Happening::Downloading(what));
    }

    /// Records that a session is open. Returns the number of sessions so far.
    pub(crate) fn opened(&self, terms: &Terms, took: Duration) -> u64 {
        self.change(|standing| {
            standing.session = standing.session.after(Turn::Opened);
            standing.took = Some(took);
            standing.era = Some(terms.era);
            standing.version = Some(terms.version.to_string());
            standing.server = terms.server.as_ref().map(Raw::detached);
            standing.instructions.clone_from(&terms.instructions);
            standing.last_seen = Some(SystemTime::now());
            standing.fault = None;
            standing.exit = None;
            standing.sessions += 1;
        });
        self.notes().standing.sessions
    }

    pub(crate) fn not_opened(&self, fault: &Arc<Fault>) {
        self.change(|standing| {
            standing.session = standing.session.after(Turn::NotOpened);
            standing.pid = None;
            standing.exit = fault.exit;
            standing.fault = Some(fault.clone());
        });
    }

    /// Records the end of the session. The exit status follows a moment later.
    pub(crate) fn ended(&self) {
        self.change(|standing| {
            standing.session = standing.session.after(Turn::Ended);
            standing.pid = None;
        });
    }

    /// Records how a session ended, after its cleanup. Does not change the state if another session has been started
    /// in the meantime.
    pub(crate) fn gone(&self, goodbye: &Goodbye) {
        let peaceful = !goodbye.protocol && matches!(goodbye.exit, None | Some(Exit::Code(0)));
        if self.notes().standing.session == SessionState::Disconnected {
            self.change(|standing| {
                standing.exit = goodbye.exit;
                if !peaceful {
                    standing.session = standing.session.after(Turn::Broke);
                }
            });
        }
        if !peaceful {
            self.tell(Happening::Exception(self.redactor.redact(&goodbye.to_string())));
        }
    }

    /// Updates the health with the verdict of a call.
    pub(crate) fn called(&self, verdict: Verdict) {
        match verdict {
            Verdict::Unknown => {}
            Verdict::Healthy => {
                let mut notes = self.notes();
                notes.standing.last_seen = Some(SystemTime::now());
                if notes.standing.health == Health::Healthy {
                    return;
                }
                drop(notes);
                self.change(|standing| (standing.failures, standing.health) = (0, Health::Healthy));
            }
            Verdict::Failed => self.change(|standing| {
                standing.failures = standing.failures.saturating_add(1);
                standing.health = Health::of(standing.failures);
            }),
        }
    }

    /// Records that the server responded, whether or not its tools work.
    pub(crate) fn seen(&self) {
        self.change(|standing| {
            standing.last_seen = Some(SystemTime::now());
            if standing.health == Health::Unknown {
                standing.health = Health::Healthy;
            }
        });
    }

    /// Records a state change of the circuit breaker.
    pub(crate) fn broke(&self, breaker: Breaker) {
        let mut notes = self.notes();
        let before = notes.connection();
        notes.breaker = breaker;
        let after = notes.connection();
        drop(notes);
        self.tell(Happening::Breaker(breaker));
        if before != after {
            self.tell(Happening::Connection(after));
        }
    }

    pub(crate) fn tell(&self, what: Happening) {
        self.bus.tell(&self.name, what);
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    fn change(&self, make: impl FnOnce(&mut Standing)) {
        let mut notes = self.notes();
        let before = (notes.standing.session, notes.connection(), notes.standing.health);
        make(&mut notes.standing);
        let after = (notes.standing.session, notes.connection(), notes.standing.health);
        drop(notes);
        self.tell_changes(before, after);
    }

    fn tell_changes(
        &self,
        before: (SessionState, ConnectionState, Health),
        after: (SessionState, ConnectionState, Health),
    ) {
        if before.0 != after.0 {
            self.tell(Happening::Session(after.0));
        }
        if before.1 != after.1 {
            self.tell(Happening::Connection(after.1));
        }
        if before.2 != after.2 {
            self.tell(Happening::Health(after.2));
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Every update is a few plain assignments, so a panic cannot leave the data inconsistent.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes {
    fn connection(&self) -> ConnectionState {
        ConnectionState::of(self.standing.session, self.breaker)
    }
}

impl Witness for Board {
    fn started(&self, pid: Option<u32>) {
        self.notes().standing.pid = pid;
    }

    fn wrote(&self, line: &str) {
        tracing::debug!(target: "wharf::stderr", source = &*self.name, "{}", self.redact(line));
        if self.bus.has_listeners() {
            self.tell(Happening::Stderr(self.redact(line)));
        }
    }
}
