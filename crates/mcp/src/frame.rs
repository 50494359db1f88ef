//! Cuts a byte stream into lines of bounded length.
//!
//! Chunk-driven: the caller reads into [`Lines::space`] and then takes every complete line. Nothing is awaited here,
//! so a cancelled read loses nothing. A line over the limit is not kept: the frame is reported as [`Line::Lost`] as
//! soon as its request id is known, and its remaining bytes are thrown away.

use crate::salvage;
use bytes::{Buf, Bytes, BytesMut};

/// The default limit of one frame, on every transport.
pub const FRAME_LIMIT: usize = 16 << 20;

/// How much is asked of the source per read, at least.
const CHUNK: usize = 64 << 10;

/// How much of an oversized line is kept at either end, to look for its id.
const KEPT: usize = 4 << 10;

/// How many limits' worth of an oversized line are skipped before the stream is given up.
const PATIENCE: usize = 4;

/// The lines of a byte stream.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// How much of `buffer` is known to hold no newline.
    searched: usize,
    limit: usize,
    skipping: Option<Skipping>,
}

/// One line, or the loss of one.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its terminator.
    Whole(Bytes),
    /// A line over the limit was skipped.
    Lost {
        /// The id of the request it answered, if it could be found.
        id: Option<u64>,
        /// Whether the stream can be read on: there is a next line, or there may be.
        resumes: bool,
    },
}

#[derive(Debug, Default)]
struct Skipping {
    seen: usize,
    tail: Vec<u8>,
    reported: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Lines {
        Lines { buffer: BytesMut::new(), searched: 0, limit, skipping: None }
    }

    /// Where the caller puts the bytes it read; there is always room for a chunk.
    pub fn space(&mut self) -> &mut BytesMut {
        self.buffer.reserve(CHUNK);
        &mut self.buffer
    }

    /// The next complete line, if the bytes so far hold one.
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
            let line = self.buffer.split_to(end + 1).freeze();
            if end > self.limit {
                let id = salvage::request_id(&line);
                return Some(Line::Lost { id, resumes: true });
            }
            return Some(Line::Whole(line.slice(..end)));
        }
    }

    /// What is left when the stream has ended: a last line without a newline.
    pub fn finish(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (self.skipping.is_none() && !rest.is_empty()).then_some(rest)
    }

    fn start_skipping(&mut self) -> Option<Line> {
        let head = &self.buffer[..KEPT.min(self.buffer.len())];
        let id = salvage::leading_id(head);
        self.skipping = Some(Skipping { reported: id.is_some(), ..Skipping::default() });
        match id {
            Some(_) => Some(Line::Lost { id, resumes: true }),
            None => self.next_line(),
        }
    }

    /// Throws away what belongs to the oversized line. `None`: more bytes are needed. `Some(None)`: it is over, and
    /// was reported before.
    #[expect(clippy::option_option, reason = "two different kinds of nothing, both local to this file")]
    fn skip(&mut self) -> Option<Option<Line>> {
        let skipping = self.skipping.as_mut()?;
        let newline = memchr::memchr(b'\n', &self.buffer);
        let end = newline.unwrap_or(self.buffer.len());
        skipping.seen += end;
        let from = end.saturating_sub(KEPT);
        skipping.tail.extend_from_slice(&self.buffer[from..end]);
        skipping.tail.drain(..skipping.tail.len().saturating_sub(KEPT));
        self.searched = 0;
        self.buffer.advance(newline.map_or(end, |at| at + 1));
        if newline.is_none() && skipping.seen <= self.limit.saturating_mul(PATIENCE) {
            return None;
        }
        let over = self.skipping.take()?;
        let resumes = newline.is_some();
        if over.reported && resumes {
            return Some(None);
        }
        Some(Some(Line::Lost { id: salvage::trailing_id(&over.tail), resumes }))
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
            let heard = feed(&mut Lines::new(limit), input.as_bytes(), chunk);
            assert_eq!(heard, expected, "in chunks of {chunk}");
        }
    }

    #[test]
    fn lines_come_whole_whatever_the_chunks() {
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
    fn a_line_without_end_is_given_up() {
        let heard = feed(&mut Lines::new(10), &[b'x'; 60], 7);
        assert_eq!(heard, ["<lost None false>"]);
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(input in "[a\n]{0,64}", chunk in 1_usize..9) {
            let whole = feed(&mut Lines::new(100), input.as_bytes(), input.len().max(1));
            prop_assert_eq!(feed(&mut Lines::new(100), input.as_bytes(), chunk), whole);
        }
    }
}
