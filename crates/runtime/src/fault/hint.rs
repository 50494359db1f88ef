//! What to do about it: the first row of a table of known causes that fits a failure.
//!
//! The table is data (`table`); what this file knows is only how a row is compared with what happened. A row that
//! nobody can make happen does not belong there: the tests of the program produce the cause of each.

mod table;

use crate::config::{Endpoint, Launcher, Program, Source};
use wharf_mcp::{Class, Exit, Failure, Phase};

/// How many of a server's last lines are looked at: more than are repeated, because package managers say first what
/// happened, and then much else.
const LINES: usize = 60;

/// A known cause, and what to do about it.
#[derive(Debug)]
pub struct KnownCause {
    /// What it is called where the table is spoken of.
    pub name: &'static str,
    /// What to do. `{name}` stands for the source.
    pub hint: &'static str,
    on: On,
    clues: &'static [Clue],
}

/// Which sources a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    All,
    /// A child process, whatever started it.
    Process,
    Npx,
    /// Anything behind an address.
    Remote,
    Http,
    Sse,
    WebSocket,
}

/// One way in which a cause shows. All words are in small letters.
#[derive(Clone, Copy, Debug)]
enum Clue {
    /// Words on the server's stderr.
    Said(&'static str),
    /// Words in the cause.
    Cause(&'static str),
    /// The status of an HTTP answer.
    Status(u16),
    /// The same, at a path that ends like this.
    StatusAt(u16, &'static str),
    /// The server ended by itself, by one of these signals; by any, if there are none.
    Signal(&'static [i32]),
    /// The server wrote to stdout what is no message, and never became ready.
    Noise,
    /// The server broke the protocol.
    Breach,
    /// The server answered with an error of its own.
    Refused,
    /// It took too long, while one of these was done.
    Late(&'static [Phase]),
    /// It went away, while one of these was done.
    Gone(&'static [Phase]),
    /// The same, and it had said something.
    GoneTalking(&'static [Phase]),
}

/// Every known cause, the most telling first.
pub fn known_causes() -> &'static [KnownCause] {
    table::TABLE
}

/// What to do about a failure of this source.
pub(super) fn hint(source: &Source, failure: &Failure) -> Option<String> {
    let happened = Happened::of(source, failure);
    let known = table::TABLE.iter().find(|it| happened.fits(it));
    known.map(|it| it.hint.replace("{name}", source.name.shown()))
}

/// A failure, as the rows of the table see it.
struct Happened<'a> {
    source: &'a Source,
    failure: &'a Failure,
    said: String,
    cause: String,
}

impl<'a> Happened<'a> {
    fn of(source: &'a Source, failure: &'a Failure) -> Happened<'a> {
        let stderr = failure.goodbye.as_ref().map(|it| it.stderr.as_str()).unwrap_or_default();
        let lines: Vec<&str> = stderr.lines().collect();
        let said = lines[lines.len().saturating_sub(LINES)..].join("\n").to_lowercase();
        Happened { source, failure, said, cause: failure.what.to_lowercase() }
    }

    fn fits(&self, known: &KnownCause) -> bool {
        known.on.covers(&self.source.endpoint) && known.clues.iter().any(|it| self.shows(*it))
    }

    fn shows(&self, clue: Clue) -> bool {
        let (class, phase) = (self.failure.class, self.failure.phase);
        match clue {
            Clue::Said(words) => self.said.contains(words),
            Clue::Cause(words) => self.cause.contains(words),
            Clue::Status(status) => self.failure.status == Some(status),
            Clue::StatusAt(status, end) => {
                self.failure.status == Some(status) && self.path().is_some_and(|it| it.ends_with(end))
            }
            // What ends after we gave up on it was ended by us.
            Clue::Signal(signals) => class == Class::Closed && self.ended_by(signals),
            Clue::Noise => {
                let before_ready = matches!(phase, Phase::Open | Phase::Handshake);
                before_ready && self.failure.goodbye.as_ref().is_some_and(|it| it.noise > 0)
            }
            Clue::Breach => class == Class::Protocol,
            Clue::Refused => class == Class::Rpc,
            Clue::Late(phases) => class == Class::Timeout && phases.contains(&phase),
            Clue::Gone(phases) => class == Class::Closed && phases.contains(&phase),
            Clue::GoneTalking(phases) => {
                class == Class::Closed && phases.contains(&phase) && !self.said.trim().is_empty()
            }
        }
    }

    fn ended_by(&self, signals: &[i32]) -> bool {
        match self.failure.goodbye.as_ref().and_then(|it| it.exit) {
            Some(Exit::Signal(signal)) => signals.is_empty() || signals.contains(&signal),
            Some(Exit::Code(_)) | None => false,
        }
    }

    fn path(&self) -> Option<&str> {
        match &self.source.endpoint {
            Endpoint::Http { remote, .. } | Endpoint::Sse(remote) => {
                Some(remote.url.path().trim_end_matches('/'))
            }
            Endpoint::WebSocket(url, _) => Some(url.path().trim_end_matches('/')),
            Endpoint::Builtin(_) | Endpoint::Stdio(_) => None,
        }
    }
}

impl On {
    fn covers(self, endpoint: &Endpoint) -> bool {
        match (self, endpoint) {
            (On::All, _)
            | (On::Process, Endpoint::Stdio(_))
            | (On::Remote | On::Http, Endpoint::Http { .. })
            | (On::Remote | On::Sse, Endpoint::Sse(_))
            | (On::Remote | On::WebSocket, Endpoint::WebSocket(..)) => true,
            (On::Npx, Endpoint::Stdio(launch)) => launch.program == Program::Launcher(Launcher::Npx),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_words_in_small_letters() {
        let mut names: Vec<&str> = known_causes().iter().map(|it| it.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for KnownCause { name, clues, hint, .. } in known_causes() {
            assert!(!clues.is_empty() && !hint.is_empty(), "{name}");
            for clue in *clues {
                if let Clue::Said(words) | Clue::Cause(words) = clue {
                    assert_eq!(words.to_lowercase(), *words, "{name}");
                }
            }
        }
    }
}
