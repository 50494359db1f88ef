//! Finds advice for a failure: the first row in the table of known causes that matches.
//!
//! The table is data (`table`). This file only matches a row against a failure. Every row must be reproducible: the
//! tests of the program produce the cause of each.

mod arguments;
mod table;
mod variables;

use crate::{npx_cache, redact::Redactor};
use variables::MissingVariables;
use wharf_config::{Endpoint, Launcher, Program, Source};
use wharf_mcp::{Class, Exit, Failure, Phase};

/// Number of stderr lines to search. This is more than are shown, because some programs print the reason first and
/// then much else.
const MAX_SEARCHED_LINES: usize = 200;

/// Maximum number of characters of a server's line that a hint quotes.
const MAX_QUOTED_CHARS: usize = 160;

/// A known cause with advice for fixing it.
#[derive(Debug)]
pub struct KnownCause {
    /// Name of the row.
    pub name: &'static str,
    /// The advice. Placeholders: `{name}` is the source, `{line}` the stderr line that shows the cause, `{word}` the
    /// word after the clue, `{variables}` the variables that the server asks for, `{remedy}` the exact change to the
    /// entry, `{args}` its `args` in YAML, and `{folder}` the folder that npx runs the package from.
    pub hint: &'static str,
    on: On,
    clues: &'static [Clue],
}

/// Sources that a row applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    All,
    /// A child process, whatever started it.
    Process,
    Npx,
    Uvx,
    /// Any server with a URL.
    Remote,
    Http,
    Sse,
    WebSocket,
}

/// One symptom of a cause. All text is lowercase.
#[derive(Clone, Copy, Debug)]
enum Clue {
    /// The server's stderr contains this text.
    Stderr(&'static str),
    /// The server's stderr contains this text and startup timed out, because the server listens elsewhere instead of
    /// using its pipes.
    StderrAndTimeout(&'static str),
    /// The server exited during startup and named a variable that it needs. wharf's own environment has it but does
    /// not pass it on.
    UninheritedVariable,
    /// The server exited during startup and named a variable that it needs. wharf's own environment may not have it
    /// either.
    MissingVariable,
    /// The cause contains this text.
    Cause(&'static str),
    /// The HTTP response had this status.
    Status(u16),
    /// The HTTP response had this status, and the path of the URL has this suffix.
    StatusAtPath(u16, &'static str),
    /// The server's process was ended by one of these signals, or by any signal if the list is empty.
    Signal(&'static [i32]),
    /// The server wrote something other than messages to stdout during startup.
    Noise,
    /// The server violated the protocol.
    ProtocolViolation,
    /// The server returned a JSON-RPC error.
    ErrorResponse,
    /// A timeout occurred in one of these phases.
    TimedOut(&'static [Phase]),
    /// The server disconnected in one of these phases.
    Disconnected(&'static [Phase]),
    /// The server disconnected in one of these phases, after writing to stderr.
    DisconnectedAfterStderr(&'static [Phase]),
}

/// Returns all known causes, the most specific first.
pub fn known_causes() -> &'static [KnownCause] {
    table::TABLE
}

/// Returns advice for a failure of this source.
pub(super) fn hint(source: &Source, failure: &Failure, redactor: &Redactor) -> Option<String> {
    let symptoms = Symptoms::of(source, failure);
    let (known, clue) = table::TABLE.iter().find_map(|it| Some((it, symptoms.clue(it)?)))?;
    Some(symptoms.fill(known.hint, clue, redactor))
}

/// Returns the folder in npm's cache that the server runs from.
fn npx_folder(source: &Source) -> String {
    let folder = match &source.endpoint {
        Endpoint::Stdio(launch) => npx_cache::folder(launch),
        _ => None,
    };
    folder.map_or_else(|| "the package in npm's _npx folder".to_owned(), |it| it.display().to_string())
}

/// A failure, prepared for matching.
struct Symptoms<'a> {
    source: &'a Source,
    failure: &'a Failure,
    lines: Vec<&'a str>,
    /// The lines in lowercase.
    stderr_lower: String,
    cause: String,
    missing_variables: Option<MissingVariables<'a>>,
}

impl<'a> Symptoms<'a> {
    fn of(source: &'a Source, failure: &'a Failure) -> Symptoms<'a> {
        let stderr = failure.disconnect.as_ref().map(|it| it.stderr.as_str()).unwrap_or_default();
        let lines: Vec<&str> = stderr.lines().collect();
        let lines = lines[lines.len().saturating_sub(MAX_SEARCHED_LINES)..].to_vec();
        let stderr_lower = lines.join("\n").to_lowercase();
        let ended = failure.class == Class::Closed && is_starting(failure.phase);
        let missing_variables = match &source.endpoint {
            Endpoint::Stdio(launch) if ended => MissingVariables::find(&lines, launch),
            _ => None,
        };
        Symptoms {
            source,
            failure,
            lines,
            stderr_lower,
            cause: failure.what.to_lowercase(),
            missing_variables,
        }
    }

    /// Returns the first clue of the row that matches.
    fn clue(&self, known: &KnownCause) -> Option<Clue> {
        let covers = known.on.covers(&self.source.endpoint);
        known.clues.iter().copied().find(|it| covers && self.matches_clue(*it))
    }

    /// Fills in the placeholders of a hint.
    fn fill(&self, hint: &str, clue: Clue, redactor: &Redactor) -> String {
        let mut hint = hint.replace("{name}", self.source.name.shown());
        if hint.contains("{folder}") {
            hint = hint.replace("{folder}", &npx_folder(self.source));
        }
        if let Clue::Stderr(words) | Clue::StderrAndTimeout(words) = clue {
            let (line, rest) = self.line_with(words).unwrap_or_default();
            let word = rest.split_whitespace().next().unwrap_or_default();
            let line: String = redactor.redact(line.trim()).chars().take(MAX_QUOTED_CHARS).collect();
            hint = hint.replace("{line}", &line.replace('`', "'"));
            hint =
                hint.replace("{word}", &redactor.redact(word.trim_matches(['.', ',', ';', '\'', '"', '`'])));
        }
        let Endpoint::Stdio(launch) = &self.source.endpoint else { return hint };
        if let Some(missing) = &self.missing_variables {
            hint = hint.replace("{variables}", &missing.variables());
            hint = hint.replace("{remedy}", &missing.remedy(self.source, launch));
        }
        hint.replace("{args}", &arguments::as_yaml(launch))
    }

    /// Returns the first line that contains this text, with the rest of the line.
    fn line_with(&self, words: &str) -> Option<(&'a str, &'a str)> {
        self.lines.iter().find_map(|line| {
            let at = line.to_lowercase().find(words)?;
            // Lowercasing can change the length of a line, so the index may be invalid.
            Some((*line, line.get(at + words.len()..).unwrap_or_default()))
        })
    }

    fn matches_clue(&self, clue: Clue) -> bool {
        let (class, phase) = (self.failure.class, self.failure.phase);
        match clue {
            Clue::Stderr(words) => self.stderr_lower.contains(words),
            Clue::StderrAndTimeout(words) => {
                class == Class::Timeout && is_starting(phase) && self.stderr_lower.contains(words)
            }
            Clue::UninheritedVariable => {
                self.missing_variables.as_ref().is_some_and(MissingVariables::can_inherit)
            }
            Clue::MissingVariable => self.missing_variables.is_some(),
            Clue::Cause(words) => self.cause.contains(words),
            Clue::Status(status) => self.failure.status == Some(status),
            Clue::StatusAtPath(status, end) => {
                self.failure.status == Some(status) && self.path().is_some_and(|it| it.ends_with(end))
            }
            // After a timeout wharf ends the process itself, so its signal explains nothing.
            Clue::Signal(signals) => class == Class::Closed && self.ended_by(signals),
            Clue::Noise => {
                is_starting(phase) && self.failure.disconnect.as_ref().is_some_and(|it| it.noise > 0)
            }
            Clue::ProtocolViolation => class == Class::Protocol,
            Clue::ErrorResponse => class == Class::Rpc,
            Clue::TimedOut(phases) => class == Class::Timeout && phases.contains(&phase),
            Clue::Disconnected(phases) => class == Class::Closed && phases.contains(&phase),
            Clue::DisconnectedAfterStderr(phases) => {
                class == Class::Closed && phases.contains(&phase) && !self.stderr_lower.trim().is_empty()
            }
        }
    }

    fn ended_by(&self, signals: &[i32]) -> bool {
        match self.failure.disconnect.as_ref().and_then(|it| it.exit) {
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
    fn rows_have_unique_names_and_lowercase_clues() {
        let mut names: Vec<&str> = known_causes().iter().map(|it| it.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for KnownCause { name, clues, hint, .. } in known_causes() {
            assert!(!clues.is_empty() && !hint.is_empty(), "{name}");
            for clue in *clues {
                if let Clue::Stderr(words) | Clue::StderrAndTimeout(words) | Clue::Cause(words) = clue {
                    assert_eq!(words.to_lowercase(), *words, "{name}");
                }
            }
        }
    }
}
