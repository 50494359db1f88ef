//! The bytes of a response that are written next, with the framing of its body.

use super::response_head::{ResponseFraming, put_chunk_size};
use bytes::{Buf, Bytes, BytesMut};
use std::{collections::VecDeque, io::IoSlice};

/// Size up to which a part of a body is copied behind what is before it, so that both are one piece of memory.
const MAX_COPIED_BYTES: usize = 16 << 10;

/// Size from which bytes are written before more are gathered.
const FULL_BYTES: usize = 256 << 10;

/// Maximum number of pieces in one write.
const MAX_SLICES: usize = 8;

/// Bytes to write.
pub(super) struct PendingOutput {
    /// Pieces before `last`.
    pieces: VecDeque<Bytes>,
    last: BytesMut,
    framing: ResponseFraming,
    length: usize,
}

impl PendingOutput {
    /// Begins with the head of a response.
    pub(super) fn new(head: BytesMut, framing: ResponseFraming) -> PendingOutput {
        PendingOutput { pieces: VecDeque::new(), length: head.len(), last: head, framing }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether the bytes have to be written before more are added.
    pub(super) fn is_full(&self) -> bool {
        self.length >= FULL_BYTES
    }

    /// Adds a part of the body.
    pub(super) fn add(&mut self, data: Bytes) {
        // An empty chunk would be the last one.
        if data.is_empty() {
            return;
        }
        let is_chunk = self.framing == ResponseFraming::Chunks;
        let before = self.last.len();
        if is_chunk {
            put_chunk_size(&mut self.last, data.len());
        }
        if data.len() <= MAX_COPIED_BYTES {
            self.last.extend_from_slice(&data);
            self.length += self.last.len() - before;
        } else {
            self.length += self.last.len() - before + data.len();
            self.pieces.push_back(self.last.split().freeze());
            self.pieces.push_back(data);
        }
        if is_chunk {
            self.put(b"\r\n");
        }
    }

    /// Marks the end of the body.
    pub(super) fn finish(&mut self) {
        if self.framing == ResponseFraming::Chunks {
            self.put(b"0\r\n\r\n");
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Passes the first pieces to `write`.
    pub(super) fn write_with<T>(&self, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        if self.pieces.is_empty() {
            return write(&[IoSlice::new(&self.last)]);
        }
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let pieces = self.pieces.iter().map(|it| &**it).chain([&*self.last]).filter(|it| !it.is_empty());
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        write(&slices[..count])
    }

    /// Removes the bytes that were written.
    pub(super) fn advance(&mut self, mut written: usize) {
        self.length -= written;
        while let Some(piece) = self.pieces.front_mut() {
            let taken = written.min(piece.len());
            piece.advance(taken);
            written -= taken;
            if !piece.is_empty() {
                return;
            }
            self.pieces.pop_front();
        }
        self.last.advance(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes at most `limit` bytes at a time.
    fn written(mut output: PendingOutput, limit: usize) -> String {
        let mut all = Vec::new();
        while !output.is_empty() {
            let bytes = output.write_with(|slices| {
                slices.iter().flat_map(|it| it.to_vec()).take(limit).collect::<Vec<u8>>()
            });
            assert!(!bytes.is_empty());
            output.advance(bytes.len());
            all.extend(bytes);
        }
        String::from_utf8(all).expect("text")
    }

    #[test]
    fn parts_are_written_in_order_with_their_framing() {
        let large = "x".repeat(MAX_COPIED_BYTES + 1);
        let parts = ["one", "", &large, "two", &large, &large, "three"];
        for limit in [1, 7, 1_000, MAX_COPIED_BYTES, usize::MAX] {
            for framing in [ResponseFraming::Length(0), ResponseFraming::Chunks] {
                let mut output = PendingOutput::new("head ".into(), framing);
                parts.iter().for_each(|it| output.add(Bytes::copy_from_slice(it.as_bytes())));
                output.finish();
                let chunk = |it: &&str| format!("{:X}\r\n{it}\r\n", it.len());
                let expected = match framing {
                    ResponseFraming::Chunks => {
                        let chunks = parts.iter().filter(|it| !it.is_empty()).map(chunk);
                        format!("head {}0\r\n\r\n", chunks.collect::<String>())
                    }
                    _ => format!("head {}", parts.concat()),
                };
                assert_eq!(written(output, limit), expected);
            }
        }
    }

    #[test]
    fn many_parts_are_written_before_more_are_gathered() {
        let mut output = PendingOutput::new("head".into(), ResponseFraming::UntilClose);
        assert!(!output.is_full());
        output.add(Bytes::from(vec![b'x'; FULL_BYTES]));
        assert!(output.is_full());
    }
}
