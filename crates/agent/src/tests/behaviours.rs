//! Named behaviours of model servers, each in every dialect that can show it, as data.
//!
//! Real servers show all of them. `docs/model-behaviours.md` is the same table for readers; `UPDATE=1` rewrites it.

mod calls;
mod ends;
mod shapes;

use super::{read_chunks, script::wire, summary};
use crate::{dialect::Dialect, model::AnswerLimits};
use scripted_model::{Step, render};
use std::{collections::BTreeSet, fmt::Write as _, fs};

/// The page with the same table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model-behaviours.md");

const INTRODUCTION: &str = "<!-- Written by `UPDATE=1 cargo test -p wharf-agent behaviours`. -->
# Behaviours of model servers

Servers that speak the API of a provider differ from its documentation, and from each other. This is what they do, and what the
agent does then. Each row is a test in every dialect that is named, whole, byte by byte and in chunks of 7 bytes.

| group | behaviour of the server | the agent | dialects |
| --- | --- | --- | --- |
";

/// All server-sent events.
const EVENTS: [Dialect; 4] = [Dialect::Responses, Dialect::Chat, Dialect::Anthropic, Dialect::Gemini];
/// Dialects that send arguments as text.
const TEXT_ARGUMENTS: [Dialect; 3] = [Dialect::Responses, Dialect::Chat, Dialect::Anthropic];

/// One behaviour.
struct Behaviour {
    group: &'static str,
    /// The behaviour of the server.
    name: &'static str,
    /// The reaction of the agent.
    reaction: &'static str,
    sent: Vec<SentStream>,
}

/// A response in one dialect, and the summary of what is read.
struct SentStream {
    dialect: Dialect,
    bytes: Vec<u8>,
    expected: String,
}

impl Behaviour {
    fn new(group: &'static str, name: &'static str, reaction: &'static str) -> Behaviour {
        Behaviour { group, name, reaction, sent: Vec::new() }
    }

    /// Adds a response.
    fn sends(mut self, dialect: Dialect, bytes: impl Into<Vec<u8>>, expected: &str) -> Behaviour {
        self.sent.push(SentStream { dialect, bytes: bytes.into(), expected: expected.to_owned() });
        self
    }

    /// Adds the response that a change makes of a well-behaved one, in each of these dialects.
    fn changes(
        self,
        dialects: &[Dialect],
        steps: &[Step],
        change: impl Fn(Dialect, String) -> String,
        expected: &str,
    ) -> Behaviour {
        dialects.iter().fold(self, |it, dialect| {
            let bytes = change(*dialect, render(wire(*dialect), steps));
            it.sends(*dialect, bytes, expected)
        })
    }

    /// Adds well-formed responses in each of these dialects.
    fn says(self, dialects: &[Dialect], steps: &[Step], expected: &str) -> Behaviour {
        self.changes(dialects, steps, |_, bytes| bytes, expected)
    }

    fn check(&self) {
        for SentStream { dialect, bytes, expected } in &self.sent {
            for size in [1, 7, bytes.len().max(1)] {
                // Byte by byte is slow for those that are about size.
                if size < bytes.len() / 100_000 {
                    continue;
                }
                let result = read_chunks(*dialect, &AnswerLimits::default(), bytes, &[size]);
                // The reason for which calls ended differs between dialects.
                let read = summary(&result).replace(" ToolCalls", " Stop");
                assert_eq!(read, *expected, "{} in {dialect:?}, in chunks of {size}", self.name);
            }
        }
    }

    fn dialects(&self) -> String {
        let used = |it: &Dialect| self.sent.iter().any(|sent| sent.dialect == *it);
        let names: Vec<String> =
            Dialect::ALL.iter().filter(|it| used(it)).map(|it| format!("{it:?}").to_lowercase()).collect();
        if names.len() == Dialect::ALL.len() { "all".to_owned() } else { names.join(", ") }
    }
}

fn all() -> Vec<Behaviour> {
    [shapes::all(), calls::all(), ends::all()].into_iter().flatten().collect()
}

#[test]
fn every_named_behaviour_is_read_as_the_table_says() {
    all().iter().for_each(Behaviour::check);
}

#[test]
fn there_are_at_least_35_behaviours_with_names_of_their_own() {
    let all = all();
    let names: BTreeSet<&str> = all.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), all.len(), "a name is used twice");
    assert!(names.len() >= 35, "{}", names.len());
    assert!(all.iter().all(|it| !it.sent.is_empty()), "a behaviour without a response");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
fn the_page_has_every_behaviour() {
    let mut page = INTRODUCTION.to_owned();
    for it in all() {
        let _ = writeln!(page, "| {} | {} | {} | {} |", it.group, it.name, it.reaction, it.dialects());
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(PAGE, page).expect("the page is written");
        return;
    }
    let written = fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(written, page, "run `UPDATE=1 cargo test -p wharf-agent behaviours`");
}
