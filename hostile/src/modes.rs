//! Everything the server can do wrong, as a table: a name, an occasion, a sentence, and the deeds.

mod death;
mod discovery;
mod flow;
mod framing;
mod http;
mod results;
mod sse;
mod start;
mod work;
mod ws;

use crate::{asked::Asked, deed::Deed, temper::Temper};

/// One way to misbehave.
#[derive(Debug)]
pub struct Mode {
    /// What it is called.
    pub name: &'static str,
    /// On which occasion it usually happens.
    pub stage: Stage,
    /// What it does, in a few words.
    pub about: &'static str,
    pub(crate) deeds: fn(&Asked, &Temper) -> Vec<Deed>,
}

/// An occasion to misbehave on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// When the process starts, or a connection is made.
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
    /// The end of its input.
    Close,
}

impl Stage {
    /// The stage by its name on a command line.
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
    deeds: fn(&Asked, &Temper) -> Vec<Deed>,
) -> Mode {
    Mode { name, stage, about, deeds }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Mode> {
    let tables: [&'static [Mode]; 9] = [
        start::MODES,
        framing::MODES,
        flow::MODES,
        death::MODES,
        discovery::MODES,
        results::MODES,
        http::MODES,
        sse::MODES,
        ws::MODES,
    ];
    tables.into_iter().flatten()
}

/// One by its name; also of those that do nothing wrong.
pub(crate) fn find(name: &str) -> Option<&'static Mode> {
    all().chain(work::MODES).find(|mode| mode.name == name)
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
