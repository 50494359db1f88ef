//! What to do about it: the first row of a table of known causes that fits a failure.
//!
//! The table is data (`table`); what this file knows is only how a row is compared with what happened. A row that
//! nobody can make happen does not belong there: the tests of the program produce the cause of each.

mod arguments;
mod table;
mod variables;

use crate::{
    config::{Endpoint, Launcher, Program, Source},
    redact::Redactor,
    upstream,
};
use variables::AskedFor;
use wharf_mcp::{Class, Exit, Failure, Phase};

/// How many of a server's last lines are looked at: more than are repeated, because some programs say first what
/// happened, and then much else.
const LINES: usize = 200;

/// The most characters of a server's line that a hint quotes.
const MAX_QUOTE: usize = 160;

/// A known cause, and what to do about it.
#[derive(Debug)]
pub struct KnownCause {
    /// What it is called where the table is spoken of.
    pub name: &'static str,
    /// What to do. `{name}` stands for the source, `{line}` for the line of stderr that shows the cause, `{word}` for the
    /// word behind the clue, `{variables}` for the variables that the server asks for, `{remedy}` for the exact change
    /// to the entry, `{args}` for its `args` as YAML has them, and `{folder}` for the folder that npx runs it from.
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
    Uvx,
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
    /// The same, from one that listens elsewhere and never answered on its pipes.
    SaidWhileLate(&'static str),
    /// The server ended before it was ready and named a variable that it lacks. Wharf has it, and does not pass it on.
    LacksOurVariable,
    /// The same, and wharf does not have it either.
    LacksVariable,
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
pub(super) fn hint(source: &Source, failure: &Failure, redactor: &Redactor) -> Option<String> {
    let happened = Happened::of(source, failure);
    let (known, clue) = table::TABLE.iter().find_map(|it| Some((it, happened.clue(it)?)))?;
    Some(happened.fill(known.hint, clue, redactor))
}

/// The folder of npm's cache that a server is run from.
fn npx_folder(source: &Source) -> String {
    let folder = match &source.endpoint {
        Endpoint::Stdio(launch) => upstream::npx_folder(launch),
        _ => None,
    };
    folder.map_or_else(|| "the package in npm's _npx folder".to_owned(), |it| it.display().to_string())
}

/// A failure, as the rows of the table see it.
struct Happened<'a> {
    source: &'a Source,
    failure: &'a Failure,
    lines: Vec<&'a str>,
    /// The lines, in small letters.
    said: String,
    cause: String,
    asked_for: Option<AskedFor<'a>>,
}

impl<'a> Happened<'a> {
    fn of(source: &'a Source, failure: &'a Failure) -> Happened<'a> {
        let stderr = failure.goodbye.as_ref().map(|it| it.stderr.as_str()).unwrap_or_default();
        let lines: Vec<&str> = stderr.lines().collect();
        let lines = lines[lines.len().saturating_sub(LINES)..].to_vec();
        let said = lines.join("\n").to_lowercase();
        let ended = failure.class == Class::Closed && is_starting(failure.phase);
        let asked_for = match &source.endpoint {
            Endpoint::Stdio(launch) if ended => AskedFor::find(&lines, launch),
            _ => None,
        };
        Happened { source, failure, lines, said, cause: failure.what.to_lowercase(), asked_for }
    }

    /// The clue by which a row fits.
    fn clue(&self, known: &KnownCause) -> Option<Clue> {
        let covers = known.on.covers(&self.source.endpoint);
        known.clues.iter().copied().find(|it| covers && self.shows(*it))
    }

    /// The hint with what stands for something filled in.
    fn fill(&self, hint: &str, clue: Clue, redactor: &Redactor) -> String {
        let mut hint = hint.replace("{name}", self.source.name.shown());
        if hint.contains("{folder}") {
            hint = hint.replace("{folder}", &npx_folder(self.source));
        }
        if let Clue::Said(words) | Clue::SaidWhileLate(words) = clue {
            let (line, rest) = self.line_with(words).unwrap_or_default();
            let word = rest.split_whitespace().next().unwrap_or_default();
            let line: String = redactor.redact(line.trim()).chars().take(MAX_QUOTE).collect();
            hint = hint.replace("{line}", &line.replace('`', "'"));
            hint =
                hint.replace("{word}", &redactor.redact(word.trim_matches(['.', ',', ';', '\'', '"', '`'])));
        }
        let Endpoint::Stdio(launch) = &self.source.endpoint else { return hint };
        if let Some(asked) = &self.asked_for {
            hint = hint.replace("{variables}", &asked.variables());
            hint = hint.replace("{remedy}", &asked.remedy(self.source, launch));
        }
        hint.replace("{args}", &arguments::as_yaml(launch))
    }

    /// The first line with these words, and what follows them there.
    fn line_with(&self, words: &str) -> Option<(&'a str, &'a str)> {
        self.lines.iter().find_map(|line| {
            let at = line.to_lowercase().find(words)?;
            // Where small letters have another length there is nothing to tell.
            Some((*line, line.get(at + words.len()..).unwrap_or_default()))
        })
    }

    fn shows(&self, clue: Clue) -> bool {
        let (class, phase) = (self.failure.class, self.failure.phase);
        match clue {
            Clue::Said(words) => self.said.contains(words),
            Clue::SaidWhileLate(words) => {
                class == Class::Timeout && is_starting(phase) && self.said.contains(words)
            }
            Clue::LacksOurVariable => self.asked_for.as_ref().is_some_and(AskedFor::is_ours),
            Clue::LacksVariable => self.asked_for.is_some(),
            Clue::Cause(words) => self.cause.contains(words),
            Clue::Status(status) => self.failure.status == Some(status),
            Clue::StatusAt(status, end) => {
                self.failure.status == Some(status) && self.path().is_some_and(|it| it.ends_with(end))
            }
            // What ends after we gave up on it was ended by us.
            Clue::Signal(signals) => class == Class::Closed && self.ended_by(signals),
            Clue::Noise => is_starting(phase) && self.failure.goodbye.as_ref().is_some_and(|it| it.noise > 0),
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

fn is_starting(phase: Phase) -> bool {
    matches!(phase, Phase::Open | Phase::Handshake)
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
            (On::Uvx, Endpoint::Stdio(launch)) => launch.program == Program::Launcher(Launcher::Uvx),
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
                if let Clue::Said(words) | Clue::SaidWhileLate(words) | Clue::Cause(words) = clue {
                    assert_eq!(words.to_lowercase(), *words, "{name}");
                }
            }
        }
    }
}
