//! Keeps the last part of a server's stderr and reports its lines to an observer.

use super::ProcessObserver;
use std::sync::Arc;

/// Maximum length of a line reported to the observer, in bytes.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Maximum size of the kept tail, in bytes.
const MAX_TAIL_BYTES: usize = 64 << 10;

/// Bounded tail of a byte stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    observer: Option<Arc<dyn ProcessObserver>>,
    /// Incomplete line that was not reported yet.
    line: Vec<u8>,
}

impl Tail {
    pub(crate) fn with_observer(observer: Option<Arc<dyn ProcessObserver>>) -> Tail {
        Tail { observer, ..Tail::default() }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.report_lines(chunk);
        let chunk = &chunk[chunk.len().saturating_sub(MAX_TAIL_BYTES)..];
        self.bytes.extend_from_slice(chunk);
        // Drop half at a time, so that bytes are rarely moved.
        if self.bytes.len() > 2 * MAX_TAIL_BYTES {
            self.bytes.drain(..self.bytes.len() - MAX_TAIL_BYTES);
        }
    }

    /// Reports every complete line to the observer.
    fn report_lines(&mut self, chunk: &[u8]) {
        let Some(observer) = &self.observer else { return };
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                let line = strip_escapes(&String::from_utf8_lossy(&self.line));
                observer.stderr_line(line.trim_end());
                self.line.clear();
            }
        }
    }

    /// Returns the tail as text, without invalid characters and terminal escapes.
    pub(crate) fn text(&self) -> String {
        let from = self.bytes.len().saturating_sub(MAX_TAIL_BYTES);
        strip_escapes(&String::from_utf8_lossy(&self.bytes[from..]))
    }
}

/// Removes terminal escapes and all control characters except tabs and line ends.
fn strip_escapes(text: &str) -> String {
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
    fn only_the_last_bytes_are_kept() {
        let mut tail = Tail::default();
        for _ in 0..10 {
            tail.push(&[b'x'; 50_000]);
        }
        tail.push(b"the end");
        let text = tail.text();
        assert_eq!(text.len(), MAX_TAIL_BYTES);
        assert!(text.ends_with("xthe end"));
    }

    #[test]
    fn terminal_escapes_are_removed() {
        let mut tail = Tail::default();
        tail.push(b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\n\xff");
        assert_eq!(tail.text(), "red ok\n\u{fffd}");
    }
}
