//! Splits a byte stream into lines of bounded length.
//!
//! Chunk-driven: the caller reads into [`Lines::space`] and then takes every complete line. Nothing is awaited here,
//! so a cancelled read loses no data. A line over the limit is not buffered: it is reported as [`Line::Lost`] as soon
//! as its request id is known, and its remaining bytes are discarded.

use crate::id_scan;
use bytes::{Buf, Bytes, BytesMut};

/// Default maximum size of one frame on every transport, in bytes.
pub const FRAME_LIMIT: usize = 16 << 20;

/// Minimum buffer space per read, in bytes.
const MIN_READ_SPACE: usize = 64 << 10;

/// Bytes kept from either end of an oversized line, to search for its id.
const ID_SEARCH_BYTES: usize = 4 << 10;

/// How many times the limit an oversized line may reach before the stream is abandoned.
const MAX_OVERSIZE_FACTOR: usize = 4;

/// Incremental line splitter.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// Length of the prefix of `buffer` that contains no newline.
    searched: usize,
    limit: usize,
    /// Length of the last long line. The next long line is likely to be as long.
    expected: usize,
    skipping: Option<Skipping>,
}

/// Complete line, or the loss of one.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Line without its terminator.
    Whole(Bytes),
    /// Line over the limit, discarded.
    Lost {
        /// Id of the request that it answered, if found.
        id: Option<u64>,
        /// Whether the stream is still usable after this line.
        resumes: bool,
    },
}

/// State while an oversized line is being discarded.
#[derive(Debug, Default)]
struct Skipping {
    seen: usize,
    tail: Vec<u8>,
    reported: bool,
}

impl Lines {
    /// Creates a splitter for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Lines {
        Lines { buffer: BytesMut::new(), searched: 0, limit, expected: 0, skipping: None }
    }

    /// Returns the buffer for newly read bytes, with capacity for at least one chunk.
    ///
    /// A line that is longer than a chunk gets space for all of it, as far as its length can be guessed: a buffer that
    /// grows step by step copies the line several times.
    pub fn space(&mut self) -> &mut BytesMut {
        let missing = match self.searched {
            ..MIN_READ_SPACE => 0,
            searched => self.expected.saturating_sub(searched),
        };
        self.buffer.reserve(missing.max(MIN_READ_SPACE));
        &mut self.buffer
    }

    /// Returns the next complete line, if the buffer holds one.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            if self.skipping.is_some() {
                if let Some(line) = self.skip()? {
                    return Some(line);
                }
                continue;
            }
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return if self.searched > self.limit { self.start_skipping() } else { None };
            };
            let end = self.searched + at;
            self.searched = 0;
            if end >= MIN_READ_SPACE {
                self.expected = end + 1;
            }
            let line = self.buffer.split_to(end + 1).freeze();
            if end > self.limit {
                let id = id_scan::request_id(&line);
                return Some(Line::Lost { id, resumes: true });
            }
            return Some(Line::Whole(line.slice(..end)));
        }
    }

    /// Returns the last line without a newline, after the stream has ended.
    pub fn finish(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (self.skipping.is_none() && !rest.is_empty()).then_some(rest)
    }

    fn start_skipping(&mut self) -> Option<Line> {
        let head = &self.buffer[..ID_SEARCH_BYTES.min(self.buffer.len())];
        let id = id_scan::leading_id(head);
        self.skipping = Some(Skipping { reported: id.is_some(), ..Skipping::default() });
        match id {
            Some(_) => Some(Line::Lost { id, resumes: true }),
            None => self.next_line(),
        }
    }

    /// Discards bytes of the oversized line. `None`: more bytes are needed. `Some(None)`: the line has ended and was
    /// already reported.
    #[expect(
        clippy::option_option,
        reason = "`None` and `Some(None)` differ here, and both stay in this file"
    )]
    fn skip(&mut self) -> Option<Option<Line>> {
        let skipping = self.skipping.as_mut()?;
        let newline = memchr::memchr(b'\n', &self.buffer);
        let end = newline.unwrap_or(self.buffer.len());
        skipping.seen += end;
        let from = end.saturating_sub(ID_SEARCH_BYTES);
        skipping.tail.extend_from_slice(&self.buffer[from..end]);
        skipping.tail.drain(..skipping.tail.len().saturating_sub(ID_SEARCH_BYTES));
        self.searched = 0;
        self.buffer.advance(newline.map_or(end, |at| at + 1));
        if newline.is_none() && skipping.seen <= self.limit.saturating_mul(MAX_OVERSIZE_FACTOR) {
            return None;
        }
        let skipped = self.skipping.take()?;
        let resumes = newline.is_some();
        if skipped.reported && resumes {
            return Some(None);
        }
        Some(Some(Line::Lost { id: id_scan::trailing_id(&skipped.tail), resumes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feed(lines: &mut Lines, bytes: &[u8], chunk: usize) -> Vec<String> {
        let mut out = Vec::new();
        for part in bytes.chunks(chunk) {
            lines.space().extend_from_slice(part);
            while let Some(line) = lines.next_line() {
                out.push(match line {
                    Line::Whole(line) => String::from_utf8_lossy(&line).into_owned(),
                    Line::Lost { id, resumes } => format!("<lost {id:?} {resumes}>"),
                });
            }
        }
        out
    }

    fn check(limit: usize, input: &str, expected: &[&str]) {
        for chunk in [1, 3, 1000] {
            let lines_read = feed(&mut Lines::new(limit), input.as_bytes(), chunk);
            assert_eq!(lines_read, expected, "in chunks of {chunk}");
        }
    }

    #[test]
    fn lines_are_split_in_any_chunking() {
        check(10, "a\n\nb\r\nlast", &["a", "", "b\r"]);
        check(3, "abc\nabcd\nx\n", &["abc", "<lost None true>", "x"]);
    }

    #[test]
    fn an_oversized_line_is_reported_once_with_its_id() {
        let pad = "x".repeat(40);
        check(20, &format!("{{\"id\":5,\"r\":\"{pad}\"}}\nnext\n"), &["<lost Some(5) true>", "next"]);
        check(20, &format!("{{\"r\":\"{pad}\",\"id\":5}}\nnext\n"), &["<lost Some(5) true>", "next"]);
    }

    #[test]
    fn an_endless_line_ends_the_stream() {
        let lines_read = feed(&mut Lines::new(10), &[b'x'; 60], 7);
        assert_eq!(lines_read, ["<lost None false>"]);
    }

    proptest! {
        #[test]
        fn chunking_does_not_change_the_lines(input in "[a\n]{0,64}", chunk in 1_usize..9) {
            let whole = feed(&mut Lines::new(100), input.as_bytes(), input.len().max(1));
            prop_assert_eq!(feed(&mut Lines::new(100), input.as_bytes(), chunk), whole);
        }
    }
}
