//! How a source stands, in three layers: its session, its connection, its health.
//!
//! A session lives once. The connection goes on from session to session and knows the breaker. Health is what the last
//! few calls have shown. Each layer is a small state machine; what is not in its table does not happen.

use crate::{Fault, breaker::Breaker};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use wharf_mcp::{Exit, Raw, session::Era};

/// A session, from its making to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionState {
    /// Not asked for yet.
    #[default]
    Created,
    /// Being opened.
    Connecting,
    /// In use. Refreshes stay here.
    Connected,
    /// Ended.
    Disconnected,
    /// Could not be opened, or ended badly.
    Error,
}

/// The connection to a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// Nobody has wanted it yet.
    #[default]
    Startup,
    /// Being made.
    Connecting,
    /// In use.
    Connected,
    /// Resting after too many failures.
    Degraded,
    /// Not there; the next call makes it anew, unless we are shutting down.
    Disconnected,
}

/// What the last few calls have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Nothing yet.
    #[default]
    Unknown,
    /// The last one worked.
    Healthy,
    /// One or two in a row have failed.
    Degraded,
    /// Three or more in a row have failed.
    Unhealthy,
}

/// What happens to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Somebody wants a session.
    Wanted,
    /// The session stands.
    Opened,
    /// It could not be opened.
    NotOpened,
    /// It ended.
    Ended,
    /// It turns out to have ended badly.
    Broke,
}

impl SessionState {
    /// The state after a turn; a session that is over is followed by another, which begins as wanted.
    #[must_use]
    pub fn after(self, turn: Turn) -> SessionState {
        use SessionState::{Connected, Connecting, Created, Disconnected, Error};
        match (self, turn) {
            (Created | Disconnected | Error, Turn::Wanted) => Connecting,
            (Connecting, Turn::Opened) => Connected,
            (Connecting, Turn::NotOpened) => Error,
            (Connected, Turn::Ended) => Disconnected,
            // That it ended badly is known only when it has ended.
            (Disconnected, Turn::Broke) => Error,
            (state, _) => state,
        }
    }

    /// Its name.
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
    /// What the session and the breaker make of the connection.
    pub fn of(session: SessionState, breaker: Breaker) -> ConnectionState {
        match (session, breaker) {
            (_, Breaker::Open { .. } | Breaker::HalfOpen) => ConnectionState::Degraded,
            (SessionState::Created, _) => ConnectionState::Startup,
            (SessionState::Connecting, _) => ConnectionState::Connecting,
            (SessionState::Connected, _) => ConnectionState::Connected,
            (SessionState::Disconnected | SessionState::Error, _) => ConnectionState::Disconnected,
        }
    }

    /// Its name.
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
    /// What so many failures in a row make of it.
    pub fn of(failures: u32) -> Health {
        match failures {
            0 => Health::Healthy,
            1 | 2 => Health::Degraded,
            _ => Health::Unhealthy,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Unhealthy => "unhealthy",
        }
    }
}

/// How a source stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Its present or last session.
    pub session: SessionState,
    /// What its last calls have shown.
    pub health: Health,
    /// How many of them in a row have failed.
    pub failures: u32,
    /// The server's process, while there is one.
    pub pid: Option<u32>,
    /// How the last process ended.
    pub exit: Option<Exit>,
    /// When it last proved to be there.
    pub last_seen: Option<SystemTime>,
    /// How long the present session took to stand.
    pub took: Option<Duration>,
    /// The era it speaks.
    pub era: Option<Era>,
    /// The protocol version it speaks.
    pub version: Option<String>,
    /// Who it says it is.
    pub server: Option<Raw>,
    /// How it wants to be used.
    pub instructions: Option<String>,
    /// Why it was last out of reach.
    pub fault: Option<Arc<Fault>>,
    /// The package or image that is being downloaded for it, if one is.
    pub downloading: Option<String>,
    /// How many sessions there have been.
    pub sessions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state and turn, and where it leads if anywhere.
    #[test]
    fn a_session_lives_once() {
        use SessionState::{Connected, Connecting, Created, Disconnected, Error};
        let moves: Vec<(SessionState, Turn, SessionState)> =
            [Created, Connecting, Connected, Disconnected, Error]
                .into_iter()
                .flat_map(|from| {
                    [Turn::Wanted, Turn::Opened, Turn::NotOpened, Turn::Ended, Turn::Broke]
                        .map(|turn| (from, turn, from.after(turn)))
                })
                .filter(|(from, _, to)| from != to)
                .collect();
        assert_eq!(
            moves,
            [
                (Created, Turn::Wanted, Connecting),
                (Connecting, Turn::Opened, Connected),
                (Connecting, Turn::NotOpened, Error),
                (Connected, Turn::Ended, Disconnected),
                (Disconnected, Turn::Wanted, Connecting),
                (Disconnected, Turn::Broke, Error),
                (Error, Turn::Wanted, Connecting),
            ]
        );
    }

    #[test]
    fn health_is_a_matter_of_failures() {
        let names: Vec<&str> = (0..5).map(|it| Health::of(it).as_str()).collect();
        assert_eq!(names, ["healthy", "degraded", "degraded", "unhealthy", "unhealthy"]);
    }
}
