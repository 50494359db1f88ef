//! Buffers messages that wait to be written to a byte stream.
//!
//! Messages queued during a write leave together in the next one. The outbox records where each message ends, so that
//! after a broken pipe the session knows which requests were certainly not sent.

use crate::{Outbound, Written, charset::Charset};
use bytes::{Buf, BufMut, BytesMut};
use std::collections::VecDeque;

/// Buffer size at which no further messages are accepted, in bytes.
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// Write buffer of a byte-stream link.
#[derive(Debug)]
pub(crate) struct Outbox {
    buffer: BytesMut,
    scratch: BytesMut,
    /// Length of each buffered message, in order.
    lengths: VecDeque<usize>,
    /// Bytes of the first message that were already written.
    partial: usize,
    charset: Charset,
    written: Written,
}

impl Outbox {
    pub(crate) fn new(charset: Charset, written: Written) -> Outbox {
        Outbox {
            buffer: BytesMut::new(),
            scratch: BytesMut::new(),
            lengths: VecDeque::new(),
            partial: 0,
            charset,
            written,
        }
    }

    /// Returns whether the buffer contains data.
    pub(crate) fn has_data(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Returns whether another message may be added.
    pub(crate) fn has_room(&self) -> bool {
        self.buffer.len() < MAX_BUFFERED_BYTES
    }

    /// Adds a message as one line. [`Outbound::Abandon`] writes nothing: on a byte stream the session sends a
    /// cancellation message instead.
    pub(crate) fn push(&mut self, message: &Outbound) {
        let before = self.buffer.len();
        if !matches!(message, Outbound::Abandon { .. }) {
            self.write_line(message);
        }
        self.lengths.push_back(self.buffer.len() - before);
        self.count_written();
    }

    /// Returns the bytes to write next.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Removes `count` written bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        self.buffer.advance(count);
        self.partial += count;
        self.count_written();
    }

    fn write_line(&mut self, message: &Outbound) {
        if self.charset.is_utf8() {
            message.write(&mut self.buffer);
            self.buffer.put_u8(b'\n');
        } else {
            message.write(&mut self.scratch);
            self.scratch.put_u8(b'\n');
            self.charset.encode(&self.scratch.split(), &mut self.buffer);
        }
    }

    /// Counts messages whose last byte was written.
    fn count_written(&mut self) {
        while let Some(length) = self.lengths.front()
            && *length <= self.partial
        {
            self.partial -= length;
            self.lengths.pop_front();
            self.written.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_after_its_last_byte_was_written() {
        let written = Written::default();
        let mut outbox = Outbox::new(Charset::UTF_8, written.clone());
        for id in 0..2 {
            outbox.push(&Outbound::Request {
                id,
                method: "ping".into(),
                params: None,
                routing: Default::default(),
            });
        }
        let line = outbox.bytes().len() / 2;
        let mut seen = Vec::new();
        for step in [line - 1, 1, line - 1, 1] {
            outbox.advance(step);
            seen.push(written.count());
        }
        assert_eq!(seen, [0, 1, 1, 2]);
        assert!(!outbox.has_data());
    }
}
