//! Finds the end of a response body: by its length, by its chunks, or by the end of the connection. Does no I/O.

use super::plain_connection::{closed, invalid};
use ::http::StatusCode;
use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use std::io;

/// Maximum length of a line between chunks, in bytes.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Maximum size of all trailers, in bytes. Their contents are ignored.
const MAX_TRAILER_BYTES: usize = 64 << 10;

/// Remaining part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// This many bytes.
    Length(u64),
    Chunked(ChunkPosition),
    /// All that the server sends.
    UntilClosed,
}

/// The position in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkPosition {
    /// Before the size of a chunk.
    Size,
    /// In a chunk, with this many bytes left.
    Data(u64),
    /// Before the line break after a chunk.
    LineBreak,
    /// In the trailers, after this many bytes of them.
    Trailers(usize),
    End,
}

/// The headers of a response that say how its body ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BodyHeaders<'a> {
    /// The last `Transfer-Encoding`.
    pub(super) transfer_encoding: Option<&'a [u8]>,
    /// `Content-Length`, as a number if it is valid and always the same.
    length: Option<Option<u64>>,
}

impl BodyHeaders<'_> {
    /// Adds a `Content-Length`.
    pub(super) fn add_length(&mut self, value: &[u8]) {
        let length = decimal(value);
        self.length = Some(length.filter(|_| self.length.is_none_or(|it| it == length)));
    }

    /// Returns how the body of a response ends.
    pub(super) fn framing(&self, status: StatusCode) -> io::Result<BodyFraming> {
        if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Ok(BodyFraming::Length(0));
        }
        if let Some(coding) = self.transfer_encoding {
            // Without a length, only the end of the connection ends the body.
            let last = coding.rsplit(|it| *it == b',').next().unwrap_or_default();
            return Ok(match last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                true => BodyFraming::Chunked(ChunkPosition::Size),
                false => BodyFraming::UntilClosed,
            });
        }
        let Some(length) = self.length else { return Ok(BodyFraming::UntilClosed) };
        length.map(BodyFraming::Length).ok_or_else(|| invalid("the length of the body is invalid"))
    }
}

impl BodyFraming {
    pub(super) fn is_over(self) -> bool {
        matches!(self, BodyFraming::Length(0) | BodyFraming::Chunked(ChunkPosition::End))
    }

    /// Takes the next piece of the body from the bytes that were read; `None` if there is none.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        let left = match self {
            BodyFraming::Length(left) => left,
            BodyFraming::UntilClosed => {
                return Ok((!buffer.is_empty()).then(|| buffer.split().freeze()));
            }
            BodyFraming::Chunked(position) => match position.find_data(buffer)? {
                Some(left) => left,
                None => return Ok(None),
            },
        };
        let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
        *left -= taken as u64;
        Ok((taken > 0).then(|| buffer.split_to(taken).freeze()))
    }

    /// Handles the end of the connection. Fails if the body is incomplete.
    pub(super) fn end(&mut self) -> io::Result<()> {
        match self {
            BodyFraming::UntilClosed => {
                *self = BodyFraming::Length(0);
                Ok(())
            }
            BodyFraming::Length(_) | BodyFraming::Chunked(_) => Err(closed()),
        }
    }
}

impl ChunkPosition {
    /// Advances to the data of a chunk and returns how much of it is left; `None` at the end of the body, or if more
    /// has to be read first.
    fn find_data(&mut self, buffer: &mut BytesMut) -> io::Result<Option<&mut u64>> {
        loop {
            if *self == ChunkPosition::Data(0) {
                *self = ChunkPosition::LineBreak;
            }
            if matches!(self, ChunkPosition::Data(_) | ChunkPosition::End) {
                break;
            }
            let Some(length) = memchr(b'\n', buffer) else {
                if buffer.len() > MAX_LINE_BYTES {
                    return Err(invalid("a line between chunks is too long"));
                }
                return Ok(None);
            };
            let line = buffer[..length].trim_ascii();
            *self = match *self {
                ChunkPosition::Size => match chunk_size(line).ok_or_else(|| invalid("invalid chunk size"))? {
                    0 => ChunkPosition::Trailers(0),
                    size => ChunkPosition::Data(size),
                },
                ChunkPosition::LineBreak if line.is_empty() => ChunkPosition::Size,
                ChunkPosition::LineBreak => return Err(invalid("a chunk is longer than its size")),
                ChunkPosition::Trailers(_) if line.is_empty() => ChunkPosition::End,
                ChunkPosition::Trailers(read) if read + length > MAX_TRAILER_BYTES => {
                    return Err(invalid("the trailers are too long"));
                }
                ChunkPosition::Trailers(read) => ChunkPosition::Trailers(read + length),
                position @ (ChunkPosition::Data(_) | ChunkPosition::End) => position,
            };
            buffer.advance(length + 1);
        }
        Ok(match self {
            ChunkPosition::Data(left) => Some(left),
            _ => None,
        })
    }
}

/// Parses the size of a chunk. Ignores extensions.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|it| *it == b';').next()?.trim_ascii();
    let digits = std::str::from_utf8(digits).ok().filter(|it| !it.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

/// Parses a number that consists of digits only; a sign is invalid.
fn decimal(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    text.bytes().all(|it| it.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body that arrives in two parts, split at every position. Returns its pieces, joined.
    fn check(framing: BodyFraming, sent: &str, expected: Result<&str, io::ErrorKind>) {
        for split in 0..=sent.len() {
            let (mut framing, mut buffer, mut body) = (framing, BytesMut::new(), Vec::new());
            let mut read = || -> io::Result<()> {
                for part in [&sent[..split], &sent[split..]] {
                    buffer.extend_from_slice(part.as_bytes());
                    while let Some(piece) = framing.take(&mut buffer)? {
                        body.extend_from_slice(&piece);
                    }
                }
                if framing.is_over() { Ok(()) } else { framing.end() }
            };
            let read = read().map_err(|it| it.kind());
            assert_eq!(read.map(|()| &*body), expected.map(str::as_bytes), "{sent:?} split at {split}");
        }
    }

    #[test]
    fn bodies_end_by_length_by_chunks_or_with_the_connection() {
        let chunked = BodyFraming::Chunked(ChunkPosition::Size);
        let (broken, garbled) = (io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData);
        check(BodyFraming::Length(5), "hello", Ok("hello"));
        check(BodyFraming::Length(5), "hello, next", Ok("hello"));
        check(BodyFraming::Length(0), "", Ok(""));
        check(BodyFraming::Length(6), "hello", Err(broken));
        check(BodyFraming::UntilClosed, "hello", Ok("hello"));
        check(chunked, "5\r\nhello\r\n0\r\n\r\n", Ok("hello"));
        check(chunked, "3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nx: y\r\n\r\n", Ok("hello"));
        check(chunked, "5\nhello\n0\n\n", Ok("hello"));
        check(chunked, "5\r\nhello\r\n0\r\n", Err(broken));
        check(chunked, "5\r\nhello", Err(broken));
        check(chunked, "", Err(broken));
        check(chunked, "x\r\nhello\r\n", Err(garbled));
        check(chunked, "+5\r\nhello\r\n", Err(garbled));
        check(chunked, "\r\n", Err(garbled));
        check(chunked, "3\r\nhello\r\n", Err(garbled));
        check(chunked, "fffffffffffffffff\r\nhello", Err(garbled));
    }

    #[test]
    fn lines_and_trailers_without_end_are_refused() {
        let endless = "x".repeat(MAX_LINE_BYTES + 1);
        let mut buffer = BytesMut::from(&*endless);
        assert!(BodyFraming::Chunked(ChunkPosition::Size).take(&mut buffer).is_err());
        let mut framing = BodyFraming::Chunked(ChunkPosition::Trailers(0));
        let mut failed = false;
        for _ in 0..MAX_TRAILER_BYTES / 1_000 + 2 {
            let mut line = BytesMut::from(&*format!("a: {}\r\n", "x".repeat(1_000)));
            failed |= framing.take(&mut line).is_err();
        }
        assert!(failed);
    }

    #[test]
    fn headers_give_the_framing() {
        let of = |status: u16, coding: Option<&str>, lengths: &[&str]| {
            let status = StatusCode::from_u16(status).expect("a status");
            let transfer_encoding = coding.map(str::as_bytes);
            let mut headers = BodyHeaders { transfer_encoding, ..BodyHeaders::default() };
            lengths.iter().for_each(|it| headers.add_length(it.as_bytes()));
            headers.framing(status).ok()
        };
        let chunked = Some(BodyFraming::Chunked(ChunkPosition::Size));
        assert_eq!(of(200, None, &["5"]), Some(BodyFraming::Length(5)));
        assert_eq!(of(200, None, &["5", "5"]), Some(BodyFraming::Length(5)));
        assert_eq!(of(200, None, &["5", "6"]), None);
        assert_eq!(of(200, None, &["5", "6", "5"]), None);
        assert_eq!(of(200, None, &["+5"]), None);
        assert_eq!(of(200, None, &["-1"]), None);
        assert_eq!(of(200, None, &[]), Some(BodyFraming::UntilClosed));
        assert_eq!(of(200, Some("chunked"), &[]), chunked);
        assert_eq!(of(200, Some("gzip, Chunked"), &["5"]), chunked);
        assert_eq!(of(200, Some("gzip"), &[]), Some(BodyFraming::UntilClosed));
        assert_eq!(of(204, None, &["5"]), Some(BodyFraming::Length(0)));
    }
}
