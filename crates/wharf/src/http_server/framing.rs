//! Checks the framing of requests on a connection more strictly than the HTTP library does, to prevent request
//! smuggling.
//!
//! If a head is ambiguous, a proxy and this server may disagree about where a body ends and the next request begins.
//! A head may therefore state the body's length at most once, with either `Content-Length` or `Transfer-Encoding`,
//! and every line has to end in CR LF. The line feed of a line that violates this is overwritten in place, so that
//! the library itself rejects the line, answers 400 and closes the connection. The library decides about a line only
//! at its end, so the overwrite is always early enough.

#[cfg(test)]
mod tests;

use memchr::memchr;

/// How many bytes of a line are inspected. Lines that state a body's length have no reason to be longer.
const MAX_INSPECTED_BYTES: usize = 64;

/// Replaces the line feed of a rejected line. It is invalid in HTTP.
const INVALID_BYTE: u8 = 0;

/// Tracks the position in the bytes that a client sends.
pub(super) struct Framing {
    at: Position,
    /// The current line, if part of it arrived in an earlier read.
    partial: PartialLine,
    /// The body length that the current head has stated so far.
    body: Option<Body>,
}

/// The part of a message that the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before a request. Empty lines are skipped.
    Start,
    Head,
    Body(u64),
    /// The line with the size of a chunk.
    Size,
    Chunk(u64),
    /// The empty line after a chunk.
    ChunkEnd,
    Trailers,
    /// After a rejected line. The rest of the connection is ignored.
    End,
}

/// The length of a body.
#[derive(Clone, Copy)]
enum Body {
    Length(u64),
    Chunks,
}

/// The first bytes of an incomplete line, and its length so far.
struct PartialLine {
    start: [u8; MAX_INSPECTED_BYTES],
    length: usize,
    ends_in_cr: bool,
}

/// The line is rejected.
struct RejectedLine;

impl Framing {
    pub(super) fn new() -> Framing {
        let partial = PartialLine { start: [0; MAX_INSPECTED_BYTES], length: 0, ends_in_cr: false };
        Framing { at: Position::Start, partial, body: None }
    }

    /// Processes the bytes that were just read, and overwrites the line feed of a rejected line.
    pub(super) fn inspect(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let taken = match self.at {
                Position::End => return,
                Position::Body(left) => {
                    skip(left, bytes.len(), Position::Body, Position::Start, &mut self.at)
                }
                Position::Chunk(left) => {
                    skip(left, bytes.len(), Position::Chunk, Position::ChunkEnd, &mut self.at)
                }
                Position::Start
                | Position::Head
                | Position::Size
                | Position::ChunkEnd
                | Position::Trailers => self.line(bytes),
            };
            bytes = &mut bytes[taken..];
        }
    }

    /// Processes a line, or buffers an incomplete one. Returns the number of bytes consumed.
    fn line(&mut self, bytes: &mut [u8]) -> usize {
        let Some(end) = memchr(b'\n', bytes) else {
            self.partial.add(bytes);
            return bytes.len();
        };
        let next = match self.partial.length {
            0 => HttpLine::of(&bytes[..end]).and_then(|it| it.next(self.at, &mut self.body)),
            _ => {
                self.partial.add(&bytes[..end]);
                self.partial.line().and_then(|it| it.next(self.at, &mut self.body))
            }
        };
        self.partial.length = 0;
        self.at = next.unwrap_or_else(|RejectedLine| {
            bytes[end] = INVALID_BYTE;
            Position::End
        });
        end + 1
    }
}

/// Skips bytes of a body or chunk. Returns the number of bytes consumed.
fn skip(left: u64, there: usize, more: fn(u64) -> Position, done: Position, at: &mut Position) -> usize {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(there);
    *at = match left - taken as u64 {
        0 => done,
        left => more(left),
    };
    taken
}

impl PartialLine {
    fn add(&mut self, piece: &[u8]) {
        let Some(last) = piece.last() else { return };
        let kept = self.length.min(MAX_INSPECTED_BYTES);
        let fits = piece.len().min(MAX_INSPECTED_BYTES - kept);
        self.start[kept..kept + fits].copy_from_slice(&piece[..fits]);
        self.length = self.length.saturating_add(piece.len());
        self.ends_in_cr = *last == b'\r';
    }

    fn line(&self) -> Result<HttpLine<'_>, RejectedLine> {
        match self.ends_in_cr {
            true => Ok(HttpLine::cut(&self.start, self.length - 1)),
            false => Err(RejectedLine),
        }
    }
}

/// A line without its line ending, truncated to [`MAX_INSPECTED_BYTES`] bytes.
struct HttpLine<'a> {
    text: &'a [u8],
    is_whole: bool,
}

impl<'a> HttpLine<'a> {
    fn of(bytes: &'a [u8]) -> Result<HttpLine<'a>, RejectedLine> {
        bytes.strip_suffix(b"\r").map(|it| HttpLine::cut(it, it.len())).ok_or(RejectedLine)
    }

    fn cut(bytes: &'a [u8], length: usize) -> HttpLine<'a> {
        HttpLine { text: &bytes[..length.min(MAX_INSPECTED_BYTES)], is_whole: length <= MAX_INSPECTED_BYTES }
    }

    /// Returns the position after this line, or rejects the line.
    fn next(&self, at: Position, body: &mut Option<Body>) -> Result<Position, RejectedLine> {
        match (at, self.text) {
            (Position::Start, []) => Ok(Position::Start),
            (Position::Head, []) => Ok(match body.take() {
                None | Some(Body::Length(0)) => Position::Start,
                Some(Body::Length(length)) => Position::Body(length),
                Some(Body::Chunks) => Position::Size,
            }),
            (Position::Start | Position::Head, _) => match (self.body()?, &body) {
                (None, _) => Ok(Position::Head),
                (Some(stated), None) => {
                    *body = Some(stated);
                    Ok(Position::Head)
                }
                (Some(_), Some(_)) => Err(RejectedLine),
            },
            (Position::Size, _) => match self.size()? {
                0 => Ok(Position::Trailers),
                size => Ok(Position::Chunk(size)),
            },
            (Position::ChunkEnd, []) => Ok(Position::Size),
            (Position::Trailers, []) => Ok(Position::Start),
            (Position::Trailers, _) => Ok(Position::Trailers),
            (Position::ChunkEnd | Position::Body(_) | Position::Chunk(_) | Position::End, _) => {
                Err(RejectedLine)
            }
        }
    }

    /// Parses the body length from a header line. Most lines contain none.
    fn body(&self) -> Result<Option<Body>, RejectedLine> {
        if let Some(value) = self.value(b"content-length") {
            return decimal(value).map(Body::Length).map(Some).filter(|_| self.is_whole).ok_or(RejectedLine);
        }
        match self.value(b"transfer-encoding") {
            Some(value) if self.is_whole && value.eq_ignore_ascii_case(b"chunked") => Ok(Some(Body::Chunks)),
            Some(_) => Err(RejectedLine),
            None => Ok(None),
        }
    }

    /// Returns the header's value if the line has this header name.
    fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        let (start, rest) = self.text.split_at_checked(name.len())?;
        let value = rest.strip_prefix(b":").filter(|_| start.eq_ignore_ascii_case(name))?;
        Some(value.trim_ascii())
    }

    /// Parses the size of a chunk and ignores chunk extensions.
    fn size(&self) -> Result<u64, RejectedLine> {
        let digits = self.text.iter().take_while(|it| it.is_ascii_hexdigit()).count();
        let (digits, rest) = self.text.split_at(digits);
        let is_over = match rest.trim_ascii_start().first() {
            None => self.is_whole,
            Some(next) => *next == b';',
        };
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_over);
        digits.and_then(|it| u64::from_str_radix(it, 16).ok()).ok_or(RejectedLine)
    }
}

/// Parses a number that consists of digits only; a sign is invalid.
fn decimal(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?;
    text.parse().ok()
}
