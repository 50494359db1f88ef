//! Decodes the body of a request from the bytes of its connection: a known length, or chunks.

use super::request_head::BodyLength;
use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

/// Maximum size of a line between chunks, in bytes.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Maximum size of all trailers, in bytes.
const MAX_TRAILER_BYTES: usize = 16 << 10;

/// Tracks the position in a body.
#[derive(Debug)]
pub(super) struct BodyDecoder {
    at: Position,
    /// Size of the trailers so far.
    trailers: usize,
}

/// The part of a body that the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// This much data is left of a body of known length.
    Data(u64),
    /// The line with the size of a chunk.
    Size,
    Chunk(u64),
    /// The empty line after a chunk.
    ChunkEnd,
    Trailers,
    End,
}

/// The next part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyPart {
    Data(Bytes),
    End,
    /// More bytes have to be read first.
    Incomplete,
}

/// The chunks of a body are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MalformedBody;

impl BodyDecoder {
    pub(super) fn new(length: BodyLength) -> BodyDecoder {
        let at = match length {
            BodyLength::Known(0) => Position::End,
            BodyLength::Known(length) => Position::Data(length),
            BodyLength::Chunked => Position::Size,
        };
        BodyDecoder { at, trailers: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == Position::End
    }

    /// Returns the number of bytes that are left, if it is known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match self.at {
            Position::Data(left) => Some(left),
            Position::End => Some(0),
            _ => None,
        }
    }

    /// Takes the next part of the body from `unread`.
    pub(super) fn decode(&mut self, unread: &mut BytesMut) -> Result<BodyPart, MalformedBody> {
        loop {
            match self.at {
                Position::End => return Ok(BodyPart::End),
                _ if unread.is_empty() => return Ok(BodyPart::Incomplete),
                Position::Data(left) => {
                    let (data, left) = take_data(unread, left);
                    self.at = if left == 0 { Position::End } else { Position::Data(left) };
                    return Ok(BodyPart::Data(data));
                }
                Position::Chunk(left) => {
                    let (data, left) = take_data(unread, left);
                    self.at = if left == 0 { Position::ChunkEnd } else { Position::Chunk(left) };
                    return Ok(BodyPart::Data(data));
                }
                Position::Size | Position::ChunkEnd | Position::Trailers => {
                    let Some(end) = memchr(b'\n', unread) else {
                        return if unread.len() > MAX_LINE_BYTES {
                            Err(MalformedBody)
                        } else {
                            Ok(BodyPart::Incomplete)
                        };
                    };
                    let line = unread[..end].strip_suffix(b"\r").ok_or(MalformedBody)?;
                    self.at = self.after_line(line)?;
                    unread.advance(end + 1);
                }
            }
        }
    }

    fn after_line(&mut self, line: &[u8]) -> Result<Position, MalformedBody> {
        match (self.at, line) {
            _ if line.len() > MAX_LINE_BYTES => Err(MalformedBody),
            (Position::Size, _) => Ok(match chunk_size(line).ok_or(MalformedBody)? {
                0 => Position::Trailers,
                size => Position::Chunk(size),
            }),
            (Position::ChunkEnd, []) => Ok(Position::Size),
            (Position::Trailers, []) => Ok(Position::End),
            (Position::Trailers, _) => {
                self.trailers += line.len();
                if self.trailers > MAX_TRAILER_BYTES { Err(MalformedBody) } else { Ok(Position::Trailers) }
            }
            _ => Err(MalformedBody),
        }
    }
}

/// Takes the available data, at most `left` bytes. Returns it and how much is left then.
fn take_data(unread: &mut BytesMut, left: u64) -> (Bytes, u64) {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(unread.len());
    (unread.split_to(taken).freeze(), left - taken as u64)
}

/// Parses the size of a chunk and ignores chunk extensions.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|it| it.is_ascii_hexdigit()).count();
    let (digits, rest) = line.split_at(digits);
    let is_over = matches!(rest.trim_ascii_start().first(), None | Some(b';'));
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_over)?;
    u64::from_str_radix(digits, 16).ok()
}
