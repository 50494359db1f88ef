//! A change in the database, and its form in a notification to other replicas.

use std::hash::{BuildHasher, RandomState};

/// PostgreSQL notification channel.
pub(crate) const CHANNEL: &str = "wharf";

/// A change in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The registered sources.
    Sources,
    /// A tool was enabled or disabled.
    Tools,
    /// An operator accepted a definition, or withdrew it.
    AcceptedDefinitions,
    /// A circuit breaker changed state.
    Breakers,
    /// The session with this key.
    Session(String),
    /// Anything may have changed, because notifications may have been missed.
    Everything,
    /// The connection is lost. No change arrives until [`Change::Everything`].
    Lost,
}

impl Change {
    /// Encodes the change for `NOTIFY`: kind, replica, and the key of a session.
    pub(crate) fn payload(&self, replica: &str) -> String {
        match self {
            Change::Sources => format!("sources {replica}"),
            Change::Tools => format!("tools {replica}"),
            Change::AcceptedDefinitions => format!("accepted {replica}"),
            Change::Breakers => format!("breakers {replica}"),
            Change::Session(key) => format!("session {replica} {key}"),
            Change::Everything | Change::Lost => format!("everything {replica}"),
        }
    }

    /// Decodes a notification. Returns `None` for our own. An unknown kind, from a newer version, means everything.
    pub(crate) fn read(payload: &str, replica: &str) -> Option<Change> {
        let mut words = payload.split(' ');
        let (what, sender, which) = (words.next(), words.next(), words.next());
        if sender == Some(replica) {
            return None;
        }
        Some(match (what, which) {
            (Some("sources"), _) => Change::Sources,
            (Some("tools"), _) => Change::Tools,
            (Some("accepted"), _) => Change::AcceptedDefinitions,
            (Some("breakers"), _) => Change::Breakers,
            (Some("session"), Some(key)) => Change::Session(key.to_owned()),
            _ => Change::Everything,
        })
    }
}

/// Sends a notification; the payload is bound.
pub(crate) const NOTIFY: &str = "SELECT pg_notify('wharf', $1)";

/// Generates a random replica id.
pub(crate) fn new_replica_id() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notification_is_decoded_by_others_only() {
        for change in [
            Change::Sources,
            Change::Tools,
            Change::AcceptedDefinitions,
            Change::Breakers,
            Change::Session("k".into()),
        ] {
            let payload = change.payload("me");
            assert_eq!(Change::read(&payload, "you"), Some(change), "{payload}");
            assert_eq!(Change::read(&payload, "me"), None, "{payload}");
        }
        assert_eq!(Change::read("novelties x y z", "me"), Some(Change::Everything));
        assert_eq!(Change::read("", "me"), Some(Change::Everything));
    }
}
