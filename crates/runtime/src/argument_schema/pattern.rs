//! Matches the patterns of a schema, which are ECMAScript regular expressions, with an engine that takes linear time
//! for any pattern.
//!
//! The two regex languages mostly agree, but differ silently in some constructs. So a pattern is translated piece by
//! piece, and is not matched at all if a piece may have a different meaning.

use regex::{Regex, RegexBuilder};
use std::{iter::Peekable, str::Chars};

/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 64 * 1024;
/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 2048;

const SPACE: &str = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// A pattern of a schema.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The pattern as written.
    pub(super) text: String,
    regex: Option<Regex>,
    /// Whether it uses classes of digits, words or spaces. Servers disagree on their meaning outside of ASCII.
    has_classes: bool,
    /// Approximate number of states.
    weight: u64,
}

/// Translation of a pattern from ECMAScript to the engine's syntax.
struct Translation<'a> {
    left: Peekable<Chars<'a>>,
    out: String,
    has_classes: bool,
    weight: u64,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        let translation = (text.len() <= MAX_PATTERN_BYTES).then(|| Translation::of(text)).flatten();
        let mut pattern = Pattern { text: text.to_owned(), regex: None, has_classes: false, weight: 0 };
        if let Some(Translation { out, has_classes, weight, .. }) = translation {
            let built = RegexBuilder::new(&out)
                .size_limit(MAX_COMPILED_BYTES)
                .dfa_size_limit(MAX_COMPILED_BYTES)
                .build();
            pattern = Pattern { regex: built.ok(), has_classes, weight, ..pattern };
        }
        pattern
    }

    /// Creates a pattern that is never matched, for a schema with too many patterns.
    pub(super) fn unchecked(text: &str) -> Pattern {
        Pattern { text: text.to_owned(), regex: None, has_classes: false, weight: 0 }
    }

    /// Returns the cost of matching a text, in steps, for the engine's slowest strategy.
    pub(super) fn cost(&self, text: &str) -> u32 {
        let work = (text.len() as u64).saturating_mul(self.weight) / 256;
        u32::try_from(work).map_or(u32::MAX, |cost| cost.saturating_add(1))
    }

    /// Returns whether the pattern matches somewhere in the text. `None` if that is uncertain.
    pub(super) fn find_match(&self, text: &str) -> Option<bool> {
        let regex = self.regex.as_ref()?;
        (!self.has_classes || text.is_ascii()).then(|| regex.is_match(text))
    }
}

impl<'a> Translation<'a> {
    fn of(text: &'a str) -> Option<Translation<'a>> {
        let weight = text.len() as u64;
        let left = text.chars().peekable();
        let mut it = Translation { left, out: String::with_capacity(text.len()), has_classes: false, weight };
        while let Some(c) = it.left.next() {
            it.piece(c)?;
        }
        Some(it)
    }

    fn piece(&mut self, c: char) -> Option<()> {
        match c {
            '\\' => self.escape(false),
            '[' => self.class(),
            '{' => self.repetition(),
            '(' => self.group(),
            '.' => {
                self.out.push_str(r"[^\n\r\x{2028}\x{2029}]");
                Some(())
            }
            // Unpaired, these are literals in one language and errors in the other.
            ']' | '}' => None,
            c => {
                self.out.push(c);
                Some(())
            }
        }
    }

    fn escape(&mut self, in_class: bool) -> Option<()> {
        let c = self.left.next()?;
        let inside = match c {
            'd' => "0-9",
            'w' => "A-Za-z0-9_",
            's' => SPACE,
            'D' if !in_class => "^0-9",
            'W' if !in_class => "^A-Za-z0-9_",
            'S' if !in_class => return self.classes(format!("[^{SPACE}]")),
            'b' if !in_class && self.left.peek() != Some(&'{') => {
                return self.classes(r"(?-u:\b)".to_owned());
            }
            'n' | 'r' | 't' | 'f' | 'v' => return self.literal(&['\\', c]),
            'x' => return self.hexadecimal(),
            // In the engine `\<` and `\>` are word boundaries.
            c if c.is_ascii_punctuation() && c != '<' && c != '>' => return self.literal(&['\\', c]),
            _ => return None,
        };
        // Use separate brackets even inside a class, so that a following `-` cannot form a range with the last
        // character.
        self.classes(format!("[{inside}]"))
    }

    fn classes(&mut self, text: String) -> Option<()> {
        self.has_classes = true;
        self.out.push_str(&text);
        Some(())
    }

    fn literal(&mut self, text: &[char]) -> Option<()> {
        self.out.extend(text);
        Some(())
    }

    fn hexadecimal(&mut self) -> Option<()> {
        let digits = [self.left.next()?, self.left.next()?];
        digits
            .iter()
            .all(char::is_ascii_hexdigit)
            .then(|| self.literal(&['\\', 'x', digits[0], digits[1]]))?
    }

    /// Translates a class up to its closing bracket. Nested sets, which only one language has, are not supported.
    fn class(&mut self) -> Option<()> {
        self.out.push('[');
        if self.left.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        if self.left.peek() == Some(&']') {
            return None;
        }
        let start = self.out.len();
        loop {
            match self.left.next()? {
                ']' => break,
                '\\' if self.is_range(start) && matches!(self.left.peek(), Some('d' | 'w' | 's')) => {
                    return None;
                }
                '\\' => self.escape(true)?,
                '[' => return None,
                c @ ('&' | '~') => self.literal(&['\\', c])?,
                '-' if self.left.peek() == Some(&'-') => return None,
                c => self.out.push(c),
            }
        }
        self.out.push(']');
        Some(())
    }

    /// Returns whether the next character would end a range, in a class that began at `start`.
    fn is_range(&self, start: usize) -> bool {
        self.out.len() > start + 1 && self.out.ends_with('-') && !self.out.ends_with(r"\-")
    }

    /// Translates plain groups. Lookarounds, named groups and flags are not supported.
    fn group(&mut self) -> Option<()> {
        self.out.push_str("(?:");
        if self.left.next_if_eq(&'?').is_some() {
            self.left.next_if_eq(&':')?;
        }
        Some(())
    }

    /// Translates `{2}`, `{2,}` or `{2,5}`. In ECMAScript anything else is not a repetition.
    fn repetition(&mut self) -> Option<()> {
        let mut text = String::from("{");
        loop {
            let c = self.left.next().filter(|c| c.is_ascii_digit() || matches!(c, ',' | '}'))?;
            text.push(c);
            if c == '}' {
                break;
            }
        }
        let inside = &text[1..text.len() - 1];
        let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
        let low: u64 = low.parse().ok()?;
        let high: u64 = if high.is_empty() { low } else { high.parse().ok()? };
        // Nested repetitions multiply. Adjacent ones are overestimated.
        self.weight = self.weight.saturating_mul(high.max(1));
        self.out.push_str(&text);
        Some(())
    }
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
            (r"^\d+$", "١٢", None),
            (r"^[\w.-]+@[\w-]+\.\w{2,}$", "a.b@c-d.org", Some(true)),
            (r"^\S+$", "a b", Some(false)),
            (r"^\s$", "\u{b}", Some(true)),
            (r"^[^\d]+$", "ab", Some(true)),
            (r"^.$", "\r", Some(false)),
            (r"^.$", "é", Some(true)),
            (r"\bfoo\b", "a foo b", Some(true)),
            (r"^\/a\-b\.c$", "/a-b.c", Some(true)),
            (r"^\x41$", "A", Some(true)),
            ("^(?:a|b)c?$", "bc", Some(true)),
            ("^[a&&b]+$", "&ab", Some(true)),
            ("^[#-&]$", "$", Some(true)),
            (r"^[\w-z]$", "{", Some(false)),
            (r"^[\w-z]$", "-", Some(true)),
            (r"^[\w-.]+$", "a-b.c", Some(true)),
            (r"^[-\w]+$", "a-b", Some(true)),
            (r"^[\w\-\s]+$", "a - b", Some(true)),
            (r"^[!-\d]+$", "a", None),
            // Constructs that the languages interpret differently, or that only one of them has.
            ("^(?=a)", "a", None),
            ("^(?i)a", "A", None),
            (r"^(a)\1$", "aa", None),
            (r"\p{L}", "a", None),
            (r"\u0061", "a", None),
            (r"\Ba", "ba", None),
            (r"\cA", "\u{1}", None),
            ("a{,3}", "a{,3}", None),
            ("a{", "a{", None),
            ("[[:alpha:]]", "a", None),
            ("[]a]", "a", None),
            ("[a--b]", "a", None),
            (r"\<a", "a", None),
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
        assert!(cost("^[a-z]{1,50}$", 50) < 200);
        assert!(cost("(a?){300}(a){300}", 10_000) > super::super::STEP_BUDGET);
    }
}
