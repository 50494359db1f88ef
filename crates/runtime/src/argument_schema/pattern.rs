//! Matches the patterns of a schema with an engine that takes linear time for any pattern.
//!
//! Patterns are ECMAScript regular expressions. The engine reads most of them in the same way. A pattern that it does
//! not accept or may read differently is not matched, and neither is text outside of ASCII, where engines disagree on
//! digits, words and spaces.

use regex::bytes::{Regex, RegexBuilder};

/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 64 * 1024;
/// Number of states that fit into this size.
const MAX_STATES: u64 = 2048;
/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 2048;
/// Escapes that are literals in ECMAScript, but not in the engine.
const DIFFERENT_ESCAPES: &str = "AazU<>";

/// A pattern of a schema.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The pattern as written.
    pub(super) text: String,
    regex: Option<Regex>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        let compile = || {
            RegexBuilder::new(text)
                .unicode(false)
                // In ECMAScript `.` does not match a carriage return.
                .crlf(true)
                .size_limit(MAX_COMPILED_BYTES)
                .dfa_size_limit(MAX_COMPILED_BYTES)
                .build()
                .ok()
        };
        let is_usable = text.len() <= MAX_PATTERN_BYTES && !is_ambiguous(text);
        Pattern { regex: if is_usable { compile() } else { None }, ..Pattern::unchecked(text) }
    }

    /// Creates a pattern that is never matched, for a schema with too many patterns.
    pub(super) fn unchecked(text: &str) -> Pattern {
        Pattern { text: text.to_owned(), regex: None }
    }

    /// Returns the cost of matching a text, in steps, for the engine's slowest strategy. Without a repetition count, a
    /// pattern has about as many states as characters.
    pub(super) fn cost(&self, text: &str) -> u32 {
        let states = if self.text.contains('{') { MAX_STATES } else { self.text.len() as u64 };
        let work = if self.regex.is_some() { (text.len() as u64).saturating_mul(states) / 256 } else { 0 };
        u32::try_from(work).map_or(u32::MAX, |cost| cost.saturating_add(1))
    }

    /// Returns whether the pattern matches somewhere in the text. `None` if that is uncertain.
    pub(super) fn find_match(&self, text: &str) -> Option<bool> {
        let regex = self.regex.as_ref()?;
        text.is_ascii().then(|| regex.is_match(text.as_bytes()))
    }
}

/// Returns whether the engine may read a pattern differently than ECMAScript does: nested classes and operations on
/// classes, counts such as `{,3}`, and a few escapes.
fn is_ambiguous(pattern: &str) -> bool {
    let (mut in_class, mut previous) = (false, ' ');
    let mut left = pattern.chars();
    while let Some(c) = left.next() {
        match (c, in_class) {
            ('\\', _) => {
                if left.next().is_none_or(|escaped| DIFFERENT_ESCAPES.contains(escaped)) {
                    return true;
                }
                // An escaped character pairs with nothing.
                previous = ' ';
                continue;
            }
            ('[', true) => return true,
            // An empty class, or one that contains a bracket.
            (']', true) if previous == '[' => return true,
            ('&' | '-' | '~', true) if c == previous => return true,
            ('[', false) => in_class = true,
            (']', true) => in_class = false,
            (',', false) if previous == '{' => return true,
            _ => {}
        }
        // `[^` begins a class like `[`.
        if !(c == '^' && previous == '[') {
            previous = c;
        }
    }
    pattern.contains(r"\b{") || pattern.contains(r"\B{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_ecmascript_or_not_at_all() {
        for (pattern, text, expected) in [
            ("^a+$", "aaa", Some(true)),
            ("a", "xax", Some(true)),
            ("^a$", "a\n", Some(false)),
            (r"^\d{4}-\d{2}$", "2026-11", Some(true)),
            (r"^[\w.-]+@[\w-]+\.\w{2,}$", "a.b@c-d.org", Some(true)),
            (r"^\S+$", "a b", Some(false)),
            (r"^\s$", "\u{b}", Some(true)),
            (r"^[^\d]+$", "ab", Some(true)),
            (r"^.$", "\r", Some(false)),
            (r"\bfoo\b", "a foo b", Some(true)),
            (r"^\/a\-b\.c$", "/a-b.c", Some(true)),
            (r"^\x41\u0042$", "AB", Some(true)),
            ("^(?:a|b)c?$", "bc", Some(true)),
            (r"^(?<year>\d+)$", "2026", Some(true)),
            ("^[#-&]$", "$", Some(true)),
            (r"^[-\w]+$", "a-b", Some(true)),
            (r"^[\w\-\s]+$", "a - b", Some(true)),
            (r"^[\[\]]$", "[", Some(true)),
            ("^[^-]-[-a]$", "b--", Some(true)),
            // Text that is not ASCII.
            (r"^\d+$", "١٢", None),
            (r"^.$", "é", None),
            // Constructs that the languages interpret differently, or that only one of them has.
            ("^(?=a)", "a", None),
            (r"^(a)\1$", "aa", None),
            (r"\p{L}", "a", None),
            (r"\cA", "\u{1}", None),
            ("a{,3}", "a{,3}", None),
            ("a{", "a{", None),
            ("[[:alpha:]]", "a", None),
            ("[a[b]]", "a", None),
            ("[]a]", "a", None),
            ("[^]a]", "a", None),
            ("[a&&b]", "a", None),
            ("[a--b]", "a", None),
            ("[a~~b]", "a", None),
            (r"\<a", "a", None),
            (r"\Aa", "a", None),
            (r"\b{start}a", "a", None),
            (r"[\b]", "\u{8}", None),
            ("(", "(", None),
            ("(((a{1000}){1000}){1000}){1000}", "a", None),
        ] {
            assert_eq!(Pattern::new(pattern).find_match(text), expected, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn matching_cost_grows_with_text_and_repetitions() {
        let cost = |pattern: &str, length: usize| Pattern::new(pattern).cost(&"a".repeat(length));
        assert_eq!(cost("^[a-z]+$", 20), 1);
        assert!(cost("^[a-z]{1,50}$", 50) < 500);
        assert!(cost("(a?){200}(a){200}", 10_000) > super::super::STEP_BUDGET);
    }
}
