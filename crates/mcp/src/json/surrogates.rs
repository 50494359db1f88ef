//! Finds and replaces lone surrogates written as JSON escapes (`"\ud800"`).
//!
//! The JSON grammar allows them and some libraries emit them, but they are not characters, and neither UTF-8 nor a
//! Rust string can hold them. Without the replacement the whole text would be undecodable.

use bytes::Bytes;
use memchr::{memchr, memmem};

/// Hex digits of U+FFFD, the replacement character.
const REPLACEMENT: &[u8; 4] = b"fffd";

/// Replaces every lone surrogate with U+FFFD; `None` if there are none.
pub(crate) fn replace_lone(text: &[u8]) -> Option<Bytes> {
    let mut lone = LoneSurrogates::of(text)?.peekable();
    lone.peek()?;
    let mut text = text.to_vec();
    for at in lone {
        text[at + 2..at + 6].copy_from_slice(REPLACEMENT);
    }
    Some(text.into())
}

/// Returns whether the JSON contains a lone surrogate.
pub(super) fn has_lone(text: &[u8]) -> bool {
    LoneSurrogates::of(text).is_some_and(|mut lone| lone.next().is_some())
}

/// Iterates over the positions of lone surrogate escapes.
struct LoneSurrogates<'a> {
    text: &'a [u8],
    from: usize,
    escapes: memmem::Finder<'static>,
}

impl LoneSurrogates<'_> {
    /// Returns `None` for text without a backslash, because building a finder costs more than searching a short text.
    fn of(text: &[u8]) -> Option<LoneSurrogates<'_>> {
        let from = memchr(b'\\', text)?;
        Some(LoneSurrogates { text, from, escapes: memmem::Finder::new(b"\\u") })
    }
}

impl Iterator for LoneSurrogates<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let at = self.from + self.escapes.find(self.text.get(self.from..)?)?;
            self.from = at + 2;
            let backslashes = self.text[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes % 2 == 1 {
                continue;
            }
            match unit(self.text, at) {
                Some(0xD800..=0xDBFF) if matches!(unit(self.text, at + 6), Some(0xDC00..=0xDFFF)) => {
                    self.from = at + 12;
                }
                Some(0xD800..=0xDFFF) => return Some(at),
                _ => {}
            }
        }
    }
}

/// Decodes the UTF-16 code unit of the `\uXXXX` escape at this position.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (text, expected) in [
            (r#""plain""#, None),
            (r#""\u0041\ufffd""#, None),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud800""#, None),
            (r#""\ud800""#, Some(r#""\ufffd""#)),
            (r#""\uDFFF x""#, Some(r#""\ufffd x""#)),
            (r#""\\\ud800""#, Some(r#""\\\ufffd""#)),
            (r#""\ud800\ud83d\ude00\ude00""#, Some(r#""\ufffd\ud83d\ude00\ufffd""#)),
            (r#"{"\ud800":["\udc00\ud800"]}"#, Some(r#"{"\ufffd":["\ufffd\ufffd"]}"#)),
            (r#""\ud8"#, None),
        ] {
            let found = replace_lone(text.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{text}");
            assert_eq!(has_lone(text.as_bytes()), expected.is_some(), "{text}");
        }
    }
}
