//! Remembers how sessions are shown tools, because a session keeps the mode of its first list.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

/// Maximum number of sessions that are remembered. The oldest are forgotten first, and decided again.
const MAX_SESSIONS: usize = 10_000;

/// Whether each session searches for tools.
#[derive(Debug, Default)]
pub(super) struct SessionModes {
    state: Mutex<RememberedModes>,
}

#[derive(Debug, Default)]
struct RememberedModes {
    modes: HashMap<u64, bool>,
    /// The sessions, oldest first.
    order: VecDeque<u64>,
}

impl SessionModes {
    /// Returns the mode of a session. The first request decides.
    pub(super) fn keep(&self, session: u64, decide: impl FnOnce() -> bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mode) = state.modes.get(&session) {
            return *mode;
        }
        if state.order.len() >= MAX_SESSIONS
            && let Some(oldest) = state.order.pop_front()
        {
            state.modes.remove(&oldest);
        }
        let mode = decide();
        state.modes.insert(session, mode);
        state.order.push_back(session);
        mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_decision_of_a_session_stays_and_the_oldest_are_forgotten() {
        let modes = SessionModes::default();
        assert!(modes.keep(0, || true) && modes.keep(0, || false));
        assert!(!modes.keep(1, || false));
        let sessions = MAX_SESSIONS as u64 + 1;
        (2..sessions).for_each(|it| _ = modes.keep(it, || true));
        assert!(!modes.keep(0, || false), "it was the oldest");
        assert_eq!(modes.state.lock().expect("nobody panicked").modes.len(), MAX_SESSIONS);
    }
}
