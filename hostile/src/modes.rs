//! The table of all misbehaviours. Each mode has a name, a stage, a description and a list of actions.

mod discovery;
mod exits;
mod flow;
mod framing;
mod harmless;
mod http;
mod results;
mod sse;
mod start;
mod ws;

use crate::{action::Action, received::ReceivedMessage, schedule::FaultSchedule};

/// One kind of misbehaviour.
#[derive(Debug)]
pub struct Mode {
    /// Name on the command line.
    pub name: &'static str,
    /// Stage at which it happens by default.
    pub stage: Stage,
    /// Description in a few words.
    pub about: &'static str,
    pub(crate) actions: fn(&ReceivedMessage, &FaultSchedule) -> Vec<Action>,
}

/// Event at which the server can misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The process starts, or a connection is accepted.
    Spawn,
    /// `server/discover`
    Discover,
    /// `initialize`
    Init,
    /// `notifications/initialized`
    Notify,
    /// `tools/list`
    List,
    /// `tools/call`
    Call,
    /// `notifications/cancelled`
    Cancel,
    /// End of input.
    Close,
}

impl Stage {
    /// Returns the stage with this name on the command line.
    pub(crate) fn named(name: &str) -> Option<Stage> {
        Some(match name {
            "spawn" => Stage::Spawn,
            "discover" => Stage::Discover,
            "init" => Stage::Init,
            "notify" => Stage::Notify,
            "list" => Stage::List,
            "call" => Stage::Call,
            "cancel" => Stage::Cancel,
            "close" => Stage::Close,
            _ => return None,
        })
    }
}

const fn mode(
    name: &'static str,
    stage: Stage,
    about: &'static str,
    actions: fn(&ReceivedMessage, &FaultSchedule) -> Vec<Action>,
) -> Mode {
    Mode { name, stage, about, actions }
}

/// Returns all hostile modes.
pub(crate) fn all() -> impl Iterator<Item = &'static Mode> {
    let tables: [&'static [Mode]; 9] = [
        start::MODES,
        framing::MODES,
        flow::MODES,
        exits::MODES,
        discovery::MODES,
        results::MODES,
        http::MODES,
        sse::MODES,
        ws::MODES,
    ];
    tables.into_iter().flatten()
}

/// Finds a mode by name, including the harmless modes of [`harmless`].
pub(crate) fn find(name: &str) -> Option<&'static Mode> {
    all().chain(harmless::MODES).find(|mode| mode.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_modes_have_the_same_name() {
        let names: BTreeSet<&str> = all().map(|mode| mode.name).collect();
        assert_eq!(names.len(), all().count());
    }
}
