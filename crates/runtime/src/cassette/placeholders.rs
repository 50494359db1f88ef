//! Replaces secrets in a recording before it is written, each by a placeholder with a name: `«secret:TOKEN»`.

use crate::redact::{MIN_SECRET_BYTES, plan_secrets, secret_encodings};
use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, PoisonError},
};
use wharf_config::Plan;

/// Characters that separate words.
const SEPARATORS: &str = "\"'`=,;&?|(){}[]<>\\";

/// Name of the placeholders of strings that look like keys.
const SECRET_LIKE: &str = "secret-like";

/// Replaces the secrets of a plan, the matches of patterns, and strings that look like keys.
#[derive(Debug, Default)]
pub struct Placeholders {
    finder: Option<AhoCorasick>,
    /// The placeholder of each pattern of the finder.
    names: Vec<String>,
    /// Patterns of the user, by name.
    patterns: Vec<(String, Regex)>,
    /// Checks whether a word looks like a key.
    is_key: Option<fn(&str) -> bool>,
    /// Values replaced by numbered placeholders, by name.
    numbered: Mutex<HashMap<String, Vec<String>>>,
}

impl Placeholders {
    /// Creates placeholders for every secret of the plan, in every encoding.
    pub fn of(plan: &Plan) -> Placeholders {
        let mut patterns: Vec<String> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for secret in &plan_secrets(plan) {
            // What follows the first word of a header may be a secret, and so may its last word.
            let value = secret.value().trim();
            let rest = value.split_once(' ').map_or("", |(_, rest)| rest.trim());
            let last_word = value.rsplit(' ').next().unwrap_or_default();
            let words = [rest, last_word].into_iter().filter(|it| it.len() >= MIN_SECRET_BYTES);
            for (name, part) in secret.parts().into_iter().chain(words.map(|it| (secret.name(), it))) {
                for encoding in secret_encodings(part) {
                    if !patterns.contains(&encoding) {
                        patterns.push(encoding);
                        names.push(format!("«secret:{name}»"));
                    }
                }
            }
        }
        // Building fails only beyond two billion bytes of patterns.
        let finder = AhoCorasick::new(&patterns).ok().filter(|_| !patterns.is_empty());
        Placeholders { finder, names, ..Placeholders::default() }
    }

    /// Also replaces the matches of these patterns, by `«NAME:1»` and so on.
    #[must_use]
    pub fn with_patterns(mut self, patterns: impl IntoIterator<Item = (String, Regex)>) -> Placeholders {
        self.patterns = patterns.into_iter().collect();
        self
    }

    /// Also replaces words that look like keys, by `«secret-like:1»` and so on.
    #[must_use]
    pub fn with_key_check(mut self, is_key: fn(&str) -> bool) -> Placeholders {
        self.is_key = Some(is_key);
        self
    }

    /// Returns the number of different strings that were replaced because they look like keys.
    pub fn secret_like(&self) -> usize {
        let numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        numbered.get(SECRET_LIKE).map_or(0, Vec::len)
    }

    /// Replaces all secrets in the strings, keys and numbers of a value.
    pub fn mask(&self, value: &mut Value) {
        self.mask_with(value, &|text| self.mask_text(text));
    }

    /// Replaces all secrets in messages for a model. There a secret of the plan is `***`, because the agent redacts results
    /// before a model sees them; so the messages of a replay, whose results have placeholders, are equal.
    pub(super) fn mask_messages(&self, messages: &mut Value) {
        self.mask_with(messages, &|text| unname_secrets(&self.mask_text(text)));
    }

    /// Replaces the secrets of the plan only. Definitions of tools contain examples and hashes, and are no answers.
    pub(super) fn mask_secrets_in(&self, value: &mut Value) {
        self.mask_with(value, &|text| self.mask_secrets(text));
    }

    fn mask_with(&self, value: &mut Value, mask_text: &dyn Fn(&str) -> String) {
        match value {
            Value::String(text) => *text = mask_text(text),
            Value::Number(number) => {
                let text = number.to_string();
                let masked = self.mask_secrets(&text);
                if masked != text {
                    *value = Value::String(masked);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|it| self.mask_with(it, mask_text)),
            Value::Object(members) => {
                let masked = mem::take(members).into_iter().map(|(key, mut value)| {
                    self.mask_with(&mut value, mask_text);
                    (mask_text(&key), value)
                });
                *members = masked.collect::<Map<String, Value>>();
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces all secrets in a text.
    pub fn mask_text(&self, text: &str) -> String {
        let mut masked = self.mask_secrets(text);
        for (name, pattern) in &self.patterns {
            let replaced = pattern.replace_all(&masked, |found: &regex::Captures<'_>| {
                let value = &found[0];
                if value.is_empty() { String::new() } else { self.number(name, value) }
            });
            masked = replaced.into_owned();
        }
        self.mask_keys(masked)
    }

    /// Replaces all secrets in bytes. `None` if there are none. Bytes that are not text are searched for the secrets of the
    /// plan only.
    pub(super) fn mask_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        match str::from_utf8(bytes) {
            Ok(text) => Some(self.mask_text(text)).filter(|it| it != text).map(String::into_bytes),
            Err(_) => self.mask_secret_bytes(bytes),
        }
    }

    /// Replaces the secrets of the plan.
    fn mask_secrets(&self, text: &str) -> String {
        let masked = self.mask_secret_bytes(text.as_bytes());
        masked.map_or_else(|| text.to_owned(), |it| String::from_utf8_lossy(&it).into_owned())
    }

    /// Replaces the secrets of the plan. Overlapping ones become one placeholder, so that no part of a secret remains. `None`
    /// if there are none.
    fn mask_secret_bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        let finder = self.finder.as_ref().filter(|it| it.is_match(text))?;
        let found =
            finder.find_overlapping_iter(text).map(|it| (it.start(), it.end(), it.pattern().as_usize()));
        let mut found: Vec<(usize, usize, usize)> = found.collect();
        found.sort_by_key(|(start, end, _)| (*start, usize::MAX - *end));
        let (mut masked, mut end) = (Vec::with_capacity(text.len()), 0);
        for (start, found_end, pattern) in found {
            if start >= end {
                masked.extend_from_slice(&text[end..start]);
                masked
                    .extend_from_slice(self.names.get(pattern).map_or("«secret»", String::as_str).as_bytes());
            }
            end = end.max(found_end);
        }
        masked.extend_from_slice(&text[end..]);
        Some(masked)
    }

    /// Replaces words that look like keys.
    fn mask_keys(&self, text: String) -> String {
        let Some(is_key) = self.is_key else { return text };
        let is_separator = |c: char| c.is_whitespace() || SEPARATORS.contains(c);
        if !text.split(is_separator).any(is_key) {
            return text;
        }
        let pieces = text.split_inclusive(is_separator).map(|piece| {
            let word = piece.trim_end_matches(is_separator);
            match is_key(word) {
                true => self.number(SECRET_LIKE, word) + &piece[word.len()..],
                false => piece.to_owned(),
            }
        });
        pieces.collect()
    }

    /// Returns the placeholder of a value. Equal values have the same.
    fn number(&self, name: &str, value: &str) -> String {
        let mut numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        let values = numbered.entry(name.to_owned()).or_default();
        let at = values.iter().position(|it| it == value).unwrap_or_else(|| {
            values.push(value.to_owned());
            values.len() - 1
        });
        format!("«{name}:{}»", at + 1)
    }
}

/// Replaces `«secret:NAME»` by `***`.
fn unname_secrets(text: &str) -> String {
    let mut parts = text.split("«secret:");
    let mut unnamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('»') {
            Some((_, rest)) => {
                unnamed.push_str("***");
                unnamed.push_str(rest);
            }
            None => {
                unnamed.push_str("«secret:");
                unnamed.push_str(part);
            }
        }
    }
    unnamed
}
