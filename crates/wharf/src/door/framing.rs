//! Where on a connection requests begin and end, followed beside the HTTP library, which is laxer than we are.
//!
//! A head that can be read in two ways is read one way by a proxy and the other way by us, and what one of them takes for a
//! body the other takes for a request. So a head says at most once how long its body is, in one of two ways, and every
//! line ends in CR LF. The line feed of a line that does otherwise is overwritten in place: with that the library finds it
//! unreadable itself, says 400 and hangs up. It decides about a line only at its end, so that is always early enough.

#[cfg(test)]
mod tests;

use memchr::memchr;

/// How much of a line is looked at. What says how long a body is has no reason to be longer.
const LONGEST: usize = 64;

/// What stands in place of a line feed that must not be read as one: nothing that is HTTP.
const UNREADABLE: u8 = 0;

/// Follows what a client sends.
pub(super) struct Framing {
    at: At,
    /// The line that has begun, if part of it came before.
    begun: Begun,
    /// What the head has said of its body.
    body: Option<Body>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Nothing yet: empty lines before a request are skipped.
    Start,
    Head,
    Body(u64),
    /// The line that says how long a chunk is.
    Size,
    Chunk(u64),
    /// The empty line behind a chunk.
    ChunkEnd,
    Trailers,
    /// Something that nobody reads any more.
    End,
}

/// How long a body is.
#[derive(Clone, Copy)]
enum Body {
    Length(u64),
    Chunks,
}

/// The first part of a line, and how long it is so far.
struct Begun {
    start: [u8; LONGEST],
    length: usize,
    ends_in_cr: bool,
}

/// A line is not to be read.
struct Bad;

impl Framing {
    pub(super) fn new() -> Framing {
        let begun = Begun { start: [0; LONGEST], length: 0, ends_in_cr: false };
        Framing { at: At::Start, begun, body: None }
    }

    /// Goes on with what has come, and makes unreadable what must not be read.
    pub(super) fn follow(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let taken = match self.at {
                At::End => return,
                At::Body(left) => skip(left, bytes.len(), At::Body, At::Start, &mut self.at),
                At::Chunk(left) => skip(left, bytes.len(), At::Chunk, At::ChunkEnd, &mut self.at),
                At::Start | At::Head | At::Size | At::ChunkEnd | At::Trailers => self.line(bytes),
            };
            bytes = &mut bytes[taken..];
        }
    }

    /// Takes a line, or what there is of it.
    fn line(&mut self, bytes: &mut [u8]) -> usize {
        let Some(end) = memchr(b'\n', bytes) else {
            self.begun.add(bytes);
            return bytes.len();
        };
        let next = match self.begun.length {
            0 => Line::of(&bytes[..end]).and_then(|it| it.next(self.at, &mut self.body)),
            _ => {
                self.begun.add(&bytes[..end]);
                self.begun.line().and_then(|it| it.next(self.at, &mut self.body))
            }
        };
        self.begun.length = 0;
        self.at = next.unwrap_or_else(|Bad| {
            bytes[end] = UNREADABLE;
            At::End
        });
        end + 1
    }
}

/// Passes over what belongs to a body, and says how much that was.
fn skip(left: u64, there: usize, more: fn(u64) -> At, done: At, at: &mut At) -> usize {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(there);
    *at = match left - taken as u64 {
        0 => done,
        left => more(left),
    };
    taken
}

impl Begun {
    fn add(&mut self, piece: &[u8]) {
        let Some(last) = piece.last() else { return };
        let kept = self.length.min(LONGEST);
        let fits = piece.len().min(LONGEST - kept);
        self.start[kept..kept + fits].copy_from_slice(&piece[..fits]);
        self.length = self.length.saturating_add(piece.len());
        self.ends_in_cr = *last == b'\r';
    }

    fn line(&self) -> Result<Line<'_>, Bad> {
        match self.ends_in_cr {
            true => Ok(Line::cut(&self.start, self.length - 1)),
            false => Err(Bad),
        }
    }
}

/// A line without its end, as much of it as is looked at.
struct Line<'a> {
    text: &'a [u8],
    is_whole: bool,
}

impl<'a> Line<'a> {
    fn of(bytes: &'a [u8]) -> Result<Line<'a>, Bad> {
        bytes.strip_suffix(b"\r").map(|it| Line::cut(it, it.len())).ok_or(Bad)
    }

    fn cut(bytes: &'a [u8], length: usize) -> Line<'a> {
        Line { text: &bytes[..length.min(LONGEST)], is_whole: length <= LONGEST }
    }

    /// What comes behind this line, which is there.
    fn next(&self, at: At, body: &mut Option<Body>) -> Result<At, Bad> {
        match (at, self.text) {
            (At::Start, []) => Ok(At::Start),
            (At::Head, []) => Ok(match body.take() {
                None | Some(Body::Length(0)) => At::Start,
                Some(Body::Length(length)) => At::Body(length),
                Some(Body::Chunks) => At::Size,
            }),
            (At::Start | At::Head, _) => match (self.body()?, &body) {
                (None, _) => Ok(At::Head),
                (Some(said), None) => {
                    *body = Some(said);
                    Ok(At::Head)
                }
                (Some(_), Some(_)) => Err(Bad),
            },
            (At::Size, _) => match self.size()? {
                0 => Ok(At::Trailers),
                size => Ok(At::Chunk(size)),
            },
            (At::ChunkEnd, []) => Ok(At::Size),
            (At::Trailers, []) => Ok(At::Start),
            (At::Trailers, _) => Ok(At::Trailers),
            (At::ChunkEnd | At::Body(_) | At::Chunk(_) | At::End, _) => Err(Bad),
        }
    }

    /// What a line of a head says of the body; most say nothing.
    fn body(&self) -> Result<Option<Body>, Bad> {
        if let Some(value) = self.value(b"content-length") {
            return decimal(value).map(Body::Length).map(Some).filter(|_| self.is_whole).ok_or(Bad);
        }
        match self.value(b"transfer-encoding") {
            Some(value) if self.is_whole && value.eq_ignore_ascii_case(b"chunked") => Ok(Some(Body::Chunks)),
            Some(_) => Err(Bad),
            None => Ok(None),
        }
    }

    /// What stands behind this name.
    fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        let (start, rest) = self.text.split_at_checked(name.len())?;
        let value = rest.strip_prefix(b":").filter(|_| start.eq_ignore_ascii_case(name))?;
        Some(value.trim_ascii())
    }

    /// How long a chunk is.
    fn size(&self) -> Result<u64, Bad> {
        let digits = self.text.iter().take_while(|it| it.is_ascii_hexdigit()).count();
        let (digits, rest) = self.text.split_at(digits);
        let is_over = match rest.trim_ascii_start().first() {
            None => self.is_whole,
            Some(next) => *next == b';',
        };
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_over);
        digits.and_then(|it| u64::from_str_radix(it, 16).ok()).ok_or(Bad)
    }
}

/// Digits and nothing else.
fn decimal(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?;
    text.parse().ok()
}
