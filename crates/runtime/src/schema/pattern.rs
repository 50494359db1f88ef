//! Patterns of a schema, which are ECMAScript's, matched by an engine that takes linear time whatever the pattern.
//!
//! The two languages agree on most of what is written and differ quietly on some of it. So a pattern is translated piece by
//! piece, and one with a piece that is not known to mean the same is not matched at all.

use regex::{Regex, RegexBuilder};
use std::{iter::Peekable, str::Chars};

/// What a compiled pattern may weigh, in bytes.
const SIZE_LIMIT: usize = 64 * 1024;
/// The longest pattern that is looked at.
const LONGEST: usize = 2048;

const SPACE: &str = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// A pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// As it is written.
    pub(super) text: String,
    regex: Option<Regex>,
    /// Whether it speaks of digits, words or spaces, of which not every server has the same idea outside of ASCII.
    has_classes: bool,
    /// About how many states it has.
    weight: u64,
}

/// A pattern on its way into the other language.
struct Translation<'a> {
    left: Peekable<Chars<'a>>,
    out: String,
    has_classes: bool,
    weight: u64,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        let translation = (text.len() <= LONGEST).then(|| Translation::of(text)).flatten();
        let mut pattern = Pattern { text: text.to_owned(), regex: None, has_classes: false, weight: 0 };
        if let Some(Translation { out, has_classes, weight, .. }) = translation {
            let built = RegexBuilder::new(&out).size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build();
            pattern = Pattern { regex: built.ok(), has_classes, weight, ..pattern };
        }
        pattern
    }

    /// One that is not looked at, because the schema has too many.
    pub(super) fn unread(text: &str) -> Pattern {
        Pattern { text: text.to_owned(), regex: None, has_classes: false, weight: 0 }
    }

    /// What it takes to match a text, in steps, even if the engine has to fall back on its slowest way.
    pub(super) fn cost(&self, text: &str) -> u32 {
        let work = (text.len() as u64).saturating_mul(self.weight) / 256;
        u32::try_from(work).map_or(u32::MAX, |cost| cost.saturating_add(1))
    }

    /// Whether it is found in a text, if that can be told.
    pub(super) fn is_found(&self, text: &str) -> Option<bool> {
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
            // Alone, they are literal in one language and a mistake in the other.
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
            // `\<` and `\>` are edges of words over there.
            c if c.is_ascii_punctuation() && c != '<' && c != '>' => return self.literal(&['\\', c]),
            _ => return None,
        };
        // In brackets of its own even within a class, lest a `-` behind it make a range of its last character.
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

    /// Up to the closing bracket. What only one of the languages has, sets within sets, is left alone.
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

    /// Whether the next character would be the end of a range, in a class that began at `start`.
    fn is_range(&self, start: usize) -> bool {
        self.out.len() > start + 1 && self.out.ends_with('-') && !self.out.ends_with(r"\-")
    }

    /// Groups that are just groups.
    fn group(&mut self) -> Option<()> {
        self.out.push_str("(?:");
        if self.left.next_if_eq(&'?').is_some() {
            self.left.next_if_eq(&':')?;
        }
        Some(())
    }

    /// `{2}`, `{2,}`, `{2,5}`: anything else is no repetition over here.
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
        // Repetitions within each other multiply; those beside each other are counted too dear.
        self.weight = self.weight.saturating_mul(high.max(1));
        self.out.push_str(&text);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
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
            // What the languages read differently, or only one of them reads.
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
            assert_eq!(Pattern::new(pattern).is_found(text), expected, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn what_matching_costs() {
        let cost = |pattern: &str, length: usize| Pattern::new(pattern).cost(&"a".repeat(length));
        assert_eq!(cost("^[a-z]+$", 20), 1);
        assert!(cost("^[a-z]{1,50}$", 50) < 200);
        assert!(cost("(a?){300}(a){300}", 10_000) > super::super::BUDGET);
    }
}
