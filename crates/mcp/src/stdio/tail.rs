//! Keeps the last part of a server's stderr and reports its lines to an observer.

use super::Witness;
use std::sync::Arc;

/// Maximum length of a line reported to the observer, in bytes.
const LINE: usize = 4 << 10;

/// Maximum size of the kept tail, in bytes.
const KEPT: usize = 64 << 10;

/// Bounded tail of a byte stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    witness: Option<Arc<dyn Witness>>,
    /// Incomplete line that was not reported yet.
    line: Vec<u8>,
}

impl Tail {
    pub(crate) fn watched_by(witness: Option<Arc<dyn Witness>>) -> Tail {
        Tail { witness, ..Tail::default() }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.tell(chunk);
        let chunk = &chunk[chunk.len().saturating_sub(KEPT)..];
        self.bytes.extend_from_slice(chunk);
        // Drop half at a time, so that bytes are rarely moved.
        if self.bytes.len() > 2 * KEPT {
            self.bytes.drain(..self.bytes.len() - KEPT);
        }
    }

    /// Reports every complete line to the observer.
    fn tell(&mut self, chunk: &[u8]) {
        let Some(witness) = &self.witness else { return };
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                let line = plain(&String::from_utf8_lossy(&self.line));
                witness.wrote(line.trim_end());
                self.line.clear();
            }
        }
    }

    /// Returns the tail as text, without invalid characters and terminal escapes.
    pub(crate) fn text(&self) -> String {
        let from = self.bytes.len().saturating_sub(KEPT);
        plain(&String::from_utf8_lossy(&self.bytes[from..]))
    }
}

/// Removes terminal escapes and all control characters except tabs and line ends.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                Some('[') => skip_past(&mut characters, |c| ('\u{40}'..='\u{7e}').contains(&c)),
                Some(']') => skip_past(&mut characters, |c| c == '\u{7}' || c == '\\'),
                _ => {}
            },
            '\n' | '\t' => out.push(character),
            _ if character.is_control() => {}
            _ => out.push(character),
        }
    }
    out
}

fn skip_past(characters: &mut impl Iterator<Item = char>, last: impl Fn(char) -> bool) {
    let _ = characters.find(|character| last(*character));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = Tail::default();
        for _ in 0..10 {
            tail.push(&[b'x'; 50_000]);
        }
        tail.push(b"the end");
        let text = tail.text();
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("xthe end"));
    }

    #[test]
    fn terminal_escapes_are_removed() {
        let mut tail = Tail::default();
        tail.push(b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\n\xff");
        assert_eq!(tail.text(), "red ok\n\u{fffd}");
    }
}
