//! Defines the status of a source in three layers: session, connection and health.
//!
//! A session is used once. The connection spans consecutive sessions and includes the breaker. Health summarises the
//! most recent calls. Each layer is a small state machine; other transitions are ignored.

use crate::{Fault, circuit_breaker::BreakerState};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use wharf_mcp::{
    Exit, Raw,
    session::{Era, offers},
};

/// State of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionState {
    /// Not requested yet.
    #[default]
    Created,
    /// Being opened.
    Connecting,
    /// Open. Refreshing lists does not change the state.
    Connected,
    /// Ended.
    Disconnected,
    /// Could not be opened, or ended abnormally.
    Error,
}

/// State of the connection to a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// No session has been requested yet.
    #[default]
    Startup,
    /// A session is being opened.
    Connecting,
    /// A session is open.
    Connected,
    /// The circuit breaker is open or half-open.
    Degraded,
    /// No session. The next call opens one unless the runtime is shutting down.
    Disconnected,
}

/// Health of a source, based on its most recent calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// No calls yet.
    #[default]
    Unknown,
    /// The last call succeeded.
    Healthy,
    /// The last one or two calls failed.
    Degraded,
    /// The last three or more calls failed.
    Unhealthy,
}

/// Event in the life of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A session is requested.
    Requested,
    /// The session is open.
    Opened,
    /// The session could not be opened.
    OpenFailed,
    /// The session ended.
    Ended,
    /// The session is found to have ended abnormally.
    FoundBroken,
}

impl SessionState {
    /// Returns the state after an event. A request after the end of a session starts the next session.
    #[must_use]
    pub fn after(self, event: SessionEvent) -> SessionState {
        use SessionState::{Connected, Connecting, Created, Disconnected, Error};
        match (self, event) {
            (Created | Disconnected | Error, SessionEvent::Requested) => Connecting,
            (Connecting, SessionEvent::Opened) => Connected,
            (Connecting, SessionEvent::OpenFailed) => Error,
            (Connected, SessionEvent::Ended) => Disconnected,
            // Whether a session ended abnormally is known only after its end.
            (Disconnected, SessionEvent::FoundBroken) => Error,
            (state, _) => state,
        }
    }

    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionState::Created => "created",
            SessionState::Connecting => "connecting",
            SessionState::Connected => "connected",
            SessionState::Disconnected => "disconnected",
            SessionState::Error => "error",
        }
    }
}

impl ConnectionState {
    /// Derives the connection state from the session and the breaker.
    pub fn of(session: SessionState, breaker: BreakerState) -> ConnectionState {
        match (session, breaker) {
            (_, BreakerState::Open { .. } | BreakerState::HalfOpen) => ConnectionState::Degraded,
            (SessionState::Created, _) => ConnectionState::Startup,
            (SessionState::Connecting, _) => ConnectionState::Connecting,
            (SessionState::Connected, _) => ConnectionState::Connected,
            (SessionState::Disconnected | SessionState::Error, _) => ConnectionState::Disconnected,
        }
    }

    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            ConnectionState::Startup => "startup",
            ConnectionState::Connecting => "connecting",
            ConnectionState::Connected => "connected",
            ConnectionState::Degraded => "degraded",
            ConnectionState::Disconnected => "disconnected",
        }
    }
}

impl Health {
    /// Derives the health from the number of consecutive failures.
    pub fn of(failures: u32) -> Health {
        match failures {
            0 => Health::Healthy,
            1 | 2 => Health::Degraded,
            _ => Health::Unhealthy,
        }
    }

    /// Returns the name of the health.
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Unhealthy => "unhealthy",
        }
    }
}

/// Status of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceStatus {
    /// State of the current or last session.
    pub session: SessionState,
    /// Health.
    pub health: Health,
    /// Number of consecutive failed calls.
    pub failures: u32,
    /// Process id of the server, while it runs.
    pub pid: Option<u32>,
    /// Exit status of the last process.
    pub exit: Option<Exit>,
    /// Time of the last response.
    pub last_seen: Option<SystemTime>,
    /// Time at which the current or last session was opened.
    pub opened_at: Option<SystemTime>,
    /// Time that opening the current session took.
    pub took: Option<Duration>,
    /// Protocol era of the server.
    pub era: Option<Era>,
    /// Protocol version of the server.
    pub version: Option<String>,
    /// The server's capabilities in its last session.
    pub capabilities: Option<Raw>,
    /// The server's description of itself.
    pub server: Option<Raw>,
    /// The server's instructions for its use.
    pub instructions: Option<Arc<str>>,
    /// Fault of the last failed connect attempt.
    pub fault: Option<Arc<Fault>>,
    /// Time since which every connect attempt has failed.
    pub failed_at: Option<SystemTime>,
    /// The package or image being downloaded for the source, if any.
    pub downloading: Option<String>,
    /// Number of sessions so far.
    pub sessions: u64,
}

impl SourceStatus {
    /// Returns whether the server declared a capability, such as `resources`, or a feature of it, such as `subscribe`.
    pub fn offers(&self, capability: &str, feature: Option<&str>) -> bool {
        self.capabilities.as_ref().is_some_and(|it| offers(it, capability, feature))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers every pair of state and event, and lists those that change the state.
    #[test]
    fn session_state_follows_the_transition_table() {
        use SessionState::{Connected, Connecting, Created, Disconnected, Error};
        let moves: Vec<(SessionState, SessionEvent, SessionState)> =
            [Created, Connecting, Connected, Disconnected, Error]
                .into_iter()
                .flat_map(|from| {
                    [
                        SessionEvent::Requested,
                        SessionEvent::Opened,
                        SessionEvent::OpenFailed,
                        SessionEvent::Ended,
                        SessionEvent::FoundBroken,
                    ]
                    .map(|event| (from, event, from.after(event)))
                })
                .filter(|(from, _, to)| from != to)
                .collect();
        assert_eq!(
            moves,
            [
                (Created, SessionEvent::Requested, Connecting),
                (Connecting, SessionEvent::Opened, Connected),
                (Connecting, SessionEvent::OpenFailed, Error),
                (Connected, SessionEvent::Ended, Disconnected),
                (Disconnected, SessionEvent::Requested, Connecting),
                (Disconnected, SessionEvent::FoundBroken, Error),
                (Error, SessionEvent::Requested, Connecting),
            ]
        );
    }

    #[test]
    fn health_follows_the_number_of_failures() {
        let names: Vec<&str> = (0..5).map(|it| Health::of(it).as_str()).collect();
        assert_eq!(names, ["healthy", "degraded", "degraded", "unhealthy", "unhealthy"]);
    }
}
