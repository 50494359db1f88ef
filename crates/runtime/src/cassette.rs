//! Recordings of tool calls and model turns: JSON Lines, one object with one key per line.
//!
//! A call is recorded as it is sent to the server, not as frames, so a recording survives a change of transport, era or
//! ids. It has no times and no request ids, so the same calls give the same bytes. Secrets are replaced before anything
//! is written.

mod conversation_names;
mod files;
mod line;
mod matching;
mod nearest;
mod placeholders;
mod recorder;
mod step;
#[cfg(test)]
mod tests;

pub use conversation_names::ConversationNaming;
pub use files::CassetteFiles;
pub use line::{CassetteError, CassetteLine, RecordedCall, RecordedOutcome, RecordedServer};
pub use matching::{CassettePlayer, Exhausted, remove_pointer};
pub use nearest::{Miss, differences};
pub use placeholders::Placeholders;
pub use recorder::{RecordedPosition, Recorder, RecorderOptions};
use serde_json::Value;
use std::collections::BTreeMap;
pub use step::{RecordedStep, StepKind};

/// Version of the format.
pub(crate) const VERSION: u64 = 1;

/// Maximum size of a recording, in bytes.
pub const MAX_CASSETTE_BYTES: u64 = 256 * 1024 * 1024;

/// Conversation of a command with one conversation.
pub const MAIN_CONVERSATION: &str = "main";

/// Member of a model turn with the messages that are new since the last turn.
const MESSAGES_KEY: &str = "messages";

/// A whole recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cassette {
    /// JSON pointers into arguments that matching ignores, by glob over `source:tool`.
    pub ignore: BTreeMap<String, Vec<String>>,
    /// The servers, by name.
    pub servers: BTreeMap<String, RecordedServer>,
    /// The calls, in the order of their start.
    pub calls: Vec<RecordedCall>,
    /// Everything else that happened in the conversations, in the order of its start.
    pub steps: Vec<RecordedStep>,
}

impl Cassette {
    /// Reads a recording. An unfinished one (`FILE.part`) is fine, too: its last line may be incomplete.
    pub fn parse(text: &str) -> Result<Cassette, CassetteError> {
        let mut cassette = Cassette::default();
        let is_whole = text.ends_with('\n');
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, it)| !it.trim().is_empty()) {
            match CassetteLine::parse(line, at + 1) {
                Ok(line) => cassette.add(line, at + 1)?,
                Err(_) if !is_whole && at + 1 == lines.len() => {}
                Err(error) => return Err(error),
            }
        }
        cassette.sort();
        Ok(cassette)
    }

    fn add(&mut self, line: CassetteLine, number: usize) -> Result<(), CassetteError> {
        match line {
            CassetteLine::Header { version, .. } if version != VERSION => {
                return Err(CassetteError {
                    line: number,
                    why: format!("version {version} is not supported"),
                });
            }
            CassetteLine::Header { ignore, .. } => self.ignore = ignore,
            CassetteLine::Server(server) => _ = self.servers.insert(server.name.clone(), server),
            CassetteLine::Call(call) => self.calls.push(RecordedCall { line: number, ..call }),
            CassetteLine::Step(step) => self.steps.push(RecordedStep { line: number, ..step }),
            CassetteLine::Other => {}
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.calls.sort_by(|one, two| one.key().cmp(&two.key()));
        self.steps.sort_by(|one, two| one.key().cmp(&two.key()));
    }

    /// Returns the text of the recording: header, servers by name, then calls and steps by conversation and number.
    pub fn to_text(&self) -> String {
        let header = CassetteLine::Header { version: VERSION, ignore: self.ignore.clone() };
        let servers = self.servers.values().cloned().map(CassetteLine::Server);
        let lines = [header].into_iter().chain(servers).chain(self.events());
        lines.map(|it| it.to_text()).collect()
    }

    /// Returns the calls and steps by conversation and number.
    pub fn events(&self) -> Vec<CassetteLine> {
        let calls = self.calls.iter().map(|it| (it.key(), CassetteLine::Call(it.clone())));
        let steps = self.steps.iter().map(|it| (it.key(), CassetteLine::Step(it.clone())));
        let mut events: Vec<_> = calls.chain(steps).collect();
        events.sort_by_key(|(key, _)| *key);
        events.into_iter().map(|(_, line)| line).collect()
    }

    /// Returns the steps of one kind.
    pub fn steps_of(&self, kind: StepKind) -> impl Iterator<Item = &RecordedStep> {
        self.steps.iter().filter(move |it| it.kind == kind)
    }
}

/// Returns canonical JSON (RFC 8785). Numbers beyond double precision have no canonical form; a value that contains one
/// is written as it came.
pub(crate) fn canonical(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string())
}
