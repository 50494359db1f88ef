//! Redacts secrets in text from outside: the output of servers and their error messages.

mod plan_secrets;

use aho_corasick::{AhoCorasick, Anchored, automaton::Automaton, nfa::noncontiguous::NFA};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
pub(crate) use plan_secrets::{PlanSecret, plan_secrets};
use serde_json::Value;
use wharf_config::{LockedIdentity, LockedServer, Plan};
use wharf_mcp::Raw;

use std::{
    collections::HashSet,
    ops::Range,
    sync::{OnceLock, PoisonError, RwLock},
};

/// Minimum length of a redacted value. Shorter ones would match inside ordinary words.
pub(crate) const MIN_SECRET_BYTES: usize = 6;

/// Maximum number of secrets kept from earlier plans, because they may still be valid.
const MAX_FORMER_SECRETS: usize = 1_024;

/// Redacts the secrets of the current plan and of earlier ones. Shared by all users, so that each learns new secrets.
#[derive(Default)]
pub struct Redactor(RwLock<KnownSecrets>);

#[derive(Default)]
struct KnownSecrets {
    /// Secrets of the current plan.
    current_secrets: HashSet<String>,
    /// Secrets of earlier plans, oldest first.
    former_secrets: Vec<String>,
    /// Finds all secrets in one pass. Built on first use.
    finder: OnceLock<Option<AhoCorasick>>,
    /// Finds beginnings of secrets at the end of a text. Built on first use.
    beginnings: OnceLock<Option<NFA>>,
}

impl Redactor {
    /// Creates a redactor for every value in the plan that is from a variable, an env file or a header.
    pub fn of(plan: &Plan) -> Redactor {
        let redactor = Redactor::default();
        redactor.learn(plan);
        redactor
    }

    /// Replaces the current secrets by those of this plan. Keeps the previous ones, which may still be in use.
    pub fn learn(&self, plan: &Plan) {
        let secrets = plan_secrets(plan);
        let parts = secrets.iter().flat_map(PlanSecret::parts);
        let encodings = parts.flat_map(|(_, part)| secret_encodings(part)).collect();
        self.0.write().unwrap_or_else(PoisonError::into_inner).replace(encodings);
    }

    /// Redacts a text.
    pub fn redact(&self, text: &str) -> String {
        self.redact_bytes_if_found(text.as_bytes()).unwrap_or_else(|| text.to_owned())
    }

    /// Redacts UTF-8 text given as bytes. Returns `None` if it contains no secrets.
    pub(crate) fn redact_bytes_if_found(&self, text: &[u8]) -> Option<String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let finder = known.finder().filter(|it| it.is_match(text))?;
        Some(replace_ranges(text, secret_ranges(finder, text), text.len()))
    }

    /// Redacts JSON. Only the contents of strings are replaced, so the result is valid JSON; if it is not, the whole
    /// value is hidden.
    pub(crate) fn redact_json(&self, raw: &Raw) -> Raw {
        match self.redact_bytes_if_found(raw.as_bytes()) {
            None => raw.clone(),
            Some(text) => Raw::parse(text).unwrap_or_else(|_| Raw::from(Value::from("***"))),
        }
    }

    /// Returns the first `length` bytes of a text, without the secrets that start in them. Reads no further than
    /// necessary.
    pub fn beginning(&self, text: &[u8], length: usize) -> String {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let length = length.min(text.len());
        let Some(finder) = known.finder() else {
            return String::from_utf8_lossy(&text[..length]).into_owned();
        };
        let read = length.saturating_add(finder.max_pattern_len()).min(text.len());
        replace_ranges(text, secret_ranges(finder, &text[..read]), length)
    }

    /// Returns the length of the part of a text that no continuation can turn into a part of a secret.
    fn decided_length(&self, text: &str) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(automaton) = known.beginnings() else { return text.len() };
        let Ok(start) = automaton.start_state(Anchored::No) else { return text.len() };
        let (mut state, mut decided) = (start, 0);
        for (at, byte) in text.bytes().enumerate() {
            state = automaton.next_state(Anchored::No, state, byte);
            if state == start {
                decided = at + 1;
            }
        }
        text.floor_char_boundary(decided)
    }
}

/// Redacts a text that arrives in pieces. It holds a piece back while that may be the beginning of a secret.
#[derive(Debug)]
pub struct StreamRedactor<'a> {
    redactor: &'a Redactor,
    held: String,
}

impl<'a> StreamRedactor<'a> {
    /// Creates a redactor for one text.
    pub fn new(redactor: &'a Redactor) -> StreamRedactor<'a> {
        StreamRedactor { redactor, held: String::new() }
    }

    /// Adds a piece and returns what may be shown.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let rest = self.held.split_off(self.redactor.decided_length(&self.held));
        self.redactor.redact(&std::mem::replace(&mut self.held, rest))
    }

    /// Returns the rest at the end of the text.
    pub fn finish(&mut self) -> String {
        self.redactor.redact(&std::mem::take(&mut self.held))
    }
}

impl KnownSecrets {
    fn replace(&mut self, current_secrets: HashSet<String>) {
        let gone =
            std::mem::take(&mut self.current_secrets).into_iter().filter(|it| !current_secrets.contains(it));
        self.former_secrets.extend(gone);
        self.former_secrets.retain(|it| !current_secrets.contains(it));
        let oldest = self.former_secrets.len().saturating_sub(MAX_FORMER_SECRETS);
        self.former_secrets.drain(..oldest);
        self.current_secrets = current_secrets;
        self.finder = OnceLock::new();
        self.beginnings = OnceLock::new();
    }

    fn beginnings(&self) -> Option<&NFA> {
        let automaton = self.beginnings.get_or_init(|| {
            let all: Vec<&String> = self.all().collect();
            if all.is_empty() { None } else { NFA::new(all).ok() }
        });
        automaton.as_ref()
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.current_secrets.iter().chain(&self.former_secrets)
    }

    fn finder(&self) -> Option<&AhoCorasick> {
        let finder = self.finder.get_or_init(|| {
            let all: Vec<&String> = self.all().collect();
            // Building fails only beyond two billion bytes of patterns.
            if all.is_empty() { None } else { AhoCorasick::new(all).ok() }
        });
        finder.as_ref()
    }
}

/// Returns the first `length` bytes of a text with the given ranges replaced by `***`.
fn replace_ranges(text: &[u8], places: Vec<Range<usize>>, length: usize) -> String {
    let mut redacted = Vec::with_capacity(length);
    let mut end = 0;
    for place in places.into_iter().filter(|it| it.start < length) {
        redacted.extend_from_slice(&text[end..place.start]);
        redacted.extend_from_slice(b"***");
        end = place.end;
    }
    redacted.extend_from_slice(&text[end.min(length)..length]);
    String::from_utf8_lossy(&redacted).into_owned()
}

/// Finds the ranges of all secrets. Merges overlapping ranges, so that no part of a secret remains.
fn secret_ranges(finder: &AhoCorasick, text: &[u8]) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = finder.find_overlapping_iter(text).map(|it| it.range()).collect();
    places.sort_by_key(|it| it.start);
    places.into_iter().fold(Vec::new(), |mut merged: Vec<Range<usize>>, place| {
        match merged.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
        merged
    })
}

/// Returns a secret in all its encodings: plain, JSON, JSON inside JSON, URL, base64 and hexadecimal.
pub(crate) fn secret_encodings(secret: &str) -> Vec<String> {
    let escaped = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = escaped(secret);
    let twice = escaped(&once);
    let address: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let spaces = address.replace('+', "%20");
    let base64 = BASE64_STANDARD_NO_PAD.encode(secret);
    let base64_url = BASE64_URL_SAFE_NO_PAD.encode(secret);
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![secret.to_owned(), once, twice, address, spaces, base64, base64_url, hex]
}

/// Returns the shown form, or the place, of a secret of the plan that a locked server contains, in any encoding. Searches the texts of the
/// definitions, because the file writes some characters in another way.
pub fn secret_in_lock(plan: &Plan, server: &LockedServer) -> Option<String> {
    let LockedServer { package, identity, tools, prompts, templates } = server;
    let LockedIdentity { name, version, era, protocol, instructions } = identity;
    let mut texts = vec![name.clone(), version.clone(), era.clone(), protocol.clone()];
    texts.extend(instructions.clone());
    texts.extend(package.iter().map(|it| it.spec.clone()));
    for (name, item) in tools.iter().chain(prompts).chain(templates) {
        texts.push(name.clone());
        collect_texts(&item.definition, &mut texts);
    }
    let is_locked = |secret: &PlanSecret<'_>| {
        let mut encodings = secret.parts().into_iter().flat_map(|(_, part)| secret_encodings(part));
        encodings.any(|encoding| texts.iter().any(|text| text.contains(&encoding)))
    };
    plan_secrets(plan).iter().find(|it| is_locked(it)).map(|it| it.description().to_owned())
}

/// Collects all strings of a value: names of members, texts, and numbers as they are written.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|it| collect_texts(it, texts)),
        Value::Object(members) => {
            for (name, value) in members {
                texts.push(name.clone());
                collect_texts(value, texts);
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Redactor({} secrets)", known.current_secrets.len() + known.former_secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_config::{Env, load};

    #[test]
    fn secrets_of_a_sign_in_are_redacted() {
        let text = "tools:\n  - name: a\n    description: b\n    type: mcp\n    server: x\n    transport: http\n    \
                    url: https://h/\n    auth:\n      grant: enterprise\n      client_id: c\n      client_secret: first-secret\n      \
                    id_token: second-secret\n      idp: {token_endpoint: 'https://i/', client_secret: third-secret}\n";
        let plan = load(text, &Env::bare()).0.expect("a plan");
        let redactor = Redactor::of(&plan);
        assert_eq!(redactor.redact("first-secret second-secret third-secret c"), "*** *** *** c");
        assert!(!format!("{plan:?}").contains("-secret"), "{plan:?}");
    }

    #[test]
    fn secrets_are_redacted_in_every_encoding() {
        let text = "tools:\n  - {name: a, description: b, type: mcp, server: x, command: npx, env: {K: '${T}', PLAIN: visible}}\n  \
                    - {name: c, description: d, type: mcp, server: x, transport: http, url: https://h/, headers: {A: 'Bearer literal'}}\n";
        let mut env = Env::bare();
        env.variables.insert("T".into(), "hunter2hunter2".into());
        let (plan, diagnostics) = load(text, &env);
        let redactor = Redactor::of(&plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false))));
        assert_eq!(redactor.redact("key hunter2hunter2, visible"), "key ***, visible");
        assert_eq!(redactor.redact("sent Bearer literal!"), "sent ***!");
        assert_eq!(redactor.redact("?a=Bearer%20literal&b=Bearer+literal"), "?a=***&b=***");
        assert_eq!(redactor.redact("aHVudGVyMmh1bnRlcjI="), "***=");
        assert_eq!(
            redactor.redact("hunter2hunter2hunter2"),
            "***",
            "overlapping secrets are replaced as one"
        );
        let text = "a hunter2hunter2 b hunter2hunter2";
        let beginnings =
            [(0, ""), (2, "a "), (3, "a ***"), (17, "a *** "), (20, "a *** b ***"), (99, "a *** b ***")];
        for (length, beginning) in beginnings {
            assert_eq!(redactor.beginning(text.as_bytes(), length), beginning, "{length}");
        }
        assert_eq!(Redactor::default().beginning("aß".as_bytes(), 2), "a\u{fffd}");
    }

    #[test]
    fn a_secret_in_pieces_is_redacted_and_other_text_is_not_delayed() {
        let text = "tools: [{name: a, description: b, type: mcp, server: x, command: npx, env: {K: '${T}'}}]";
        let mut env = Env::bare();
        env.variables.insert("T".into(), "sechs-grüße".into());
        let redactor = Redactor::of(&load(text, &env).0.expect("a plan"));
        let whole = "Sie sagt sechs-grüße, sechs-grüe und sechs-";
        for size in 1..=whole.len() {
            let (mut stream, mut shown, mut begin) = (StreamRedactor::new(&redactor), String::new(), 0);
            while begin < whole.len() {
                let end = whole.ceil_char_boundary(begin + size);
                shown += &stream.push(&whole[begin..end]);
                begin = end;
            }
            shown += &stream.finish();
            assert_eq!(shown, "Sie sagt ***, sechs-grüe und sechs-", "in pieces of {size}");
        }
        let mut stream = StreamRedactor::new(&redactor);
        assert_eq!(stream.push("Hallo, s"), "Hallo, ");
        assert_eq!(stream.push("o"), "so");
        assert_eq!(stream.push(" sechs-"), " ");
    }

    #[test]
    fn former_secrets_are_still_redacted() {
        let plan = |key: &str| {
            let mut env = Env::bare();
            env.variables.insert("T".into(), key.into());
            let entry =
                "tools: [{name: a, description: b, type: mcp, server: x, command: npx, env: {K: '${T}'}}]";
            load(entry, &env).0.expect("a plan")
        };
        let redactor = Redactor::of(&plan("first-secret"));
        redactor.learn(&plan("second-secret"));
        assert_eq!(redactor.redact("first-secret second-secret"), "*** ***");
        for number in 0..1_100 {
            redactor.learn(&plan(&format!("{number}-another-secret")));
        }
        assert_eq!(
            redactor.redact("first-secret 1099-another-secret 1098-another-secret"),
            "first-secret *** ***"
        );
        assert!(format!("{redactor:?}").len() < 30);
    }
}
