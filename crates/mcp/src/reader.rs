//! Reading half of a byte-stream link: turns bytes into lines and lines into inbound messages.

use crate::{
    Inbound, Message,
    charset::{Charset, Transcoder},
    frame::{Line, Lines},
    link::{LinkIo, Verdict, decode_frame, failed_request},
};
use bytes::BytesMut;
use std::io;
use tokio::{io::AsyncReadExt, sync::mpsc::error::TrySendError};

const TOO_LONG: &str = "a message is longer than the limit";

/// Reads inbound messages from a byte stream and delivers them to the session.
pub(crate) struct Reader {
    lines: Lines,
    transcoder: Transcoder,
    encoded: BytesMut,
    had_output: bool,
    /// Message that did not fit into the session's channel yet.
    held: Option<Inbound>,
    /// Number of messages that were sent to the session.
    delivered: u64,
    /// Number of requests that the last call of [`Reader::deliver`] has completed.
    pub(crate) completed: usize,
    /// Number of lines that were not messages.
    pub(crate) noise: u64,
}

/// Reason to stop reading.
pub(crate) enum Stop {
    Closed,
    Violation(String),
}

impl Reader {
    pub(crate) fn new(charset: Charset, limit: usize) -> Reader {
        let (lines, transcoder) = (Lines::new(limit), charset.decoder());
        Reader {
            lines,
            transcoder,
            encoded: BytesMut::new(),
            had_output: false,
            held: None,
            delivered: 0,
            completed: 0,
            noise: 0,
        }
    }

    /// Reads one chunk. Cancel-safe: the bytes are stored before the next await.
    pub(crate) async fn fill(&mut self, source: &mut (impl AsyncReadExt + Unpin)) -> io::Result<usize> {
        if self.transcoder.is_idle() {
            return source.read_buf(self.lines.space()).await;
        }
        self.encoded.reserve(16 << 10);
        let count = source.read_buf(&mut self.encoded).await?;
        self.transcoder.decode(&self.encoded.split(), self.lines.space());
        Ok(count)
    }

    /// Delivers complete lines while the session's channel has capacity. It never waits: the task that calls it also
    /// writes, and the session may be blocked until that task writes.
    pub(crate) fn deliver(&mut self, link_io: &LinkIo) -> Result<(), Stop> {
        self.completed = 0;
        if !self.had_output {
            self.had_output = true;
            self.send(Inbound::FirstOutput, link_io)?;
        }
        if let Some(held) = self.held.take() {
            self.send(held, link_io)?;
        }
        while self.held.is_none()
            && let Some(line) = self.lines.next_line()
        {
            match decode_line(line) {
                Verdict::Deliver(message) => self.send(message, link_io)?,
                Verdict::Noise => self.noise += 1,
                Verdict::Violation(why) => return Err(Stop::Violation(why)),
            }
        }
        Ok(())
    }

    /// Returns whether a message is held back, so that reading must pause.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Delivers all complete lines and waits for capacity. Use it only when nothing is left to write.
    pub(crate) async fn deliver_all(&mut self, link_io: &LinkIo) -> Result<(), Stop> {
        self.deliver(link_io)?;
        while self.is_held() {
            drop(link_io.inbound.reserve().await.map_err(|_| Stop::Closed)?);
            self.deliver(link_io)?;
        }
        Ok(())
    }

    /// Completes the request that a message answers, or sends the message to the session, or holds it back if the
    /// channel is full.
    fn send(&mut self, message: Inbound, link_io: &LinkIo) -> Result<(), Stop> {
        let message = match (message, link_io.direct_answers.requests(self.delivered)) {
            (Inbound::Message(Message::Answer { id: Some(id), outcome }), Some(requests)) => {
                requests.complete(id, outcome);
                self.completed += 1;
                return Ok(());
            }
            (message, _) => message,
        };
        match link_io.inbound.try_send(message) {
            Ok(()) => {
                self.delivered += 1;
                Ok(())
            }
            Err(TrySendError::Full(message)) => {
                self.held = Some(message);
                Ok(())
            }
            Err(TrySendError::Closed(_)) => Err(Stop::Closed),
        }
    }

    /// Delivers a last line without a newline, if it is a complete message. A truncated line is dropped, because the
    /// end of the connection explains more.
    pub(crate) async fn finish(&mut self, link_io: &LinkIo) -> Result<(), Stop> {
        let Some(Verdict::Deliver(message @ Inbound::Message(_))) =
            self.lines.finish().map(|line| decode_frame(&line))
        else {
            return Ok(());
        };
        link_io.inbound.send(message).await.map_err(|_| Stop::Closed)
    }
}

/// Decodes a line. One that was too long fails its own request, if its id is known.
pub(crate) fn decode_line(line: Line) -> Verdict {
    match line {
        Line::Whole(line) => decode_frame(&line),
        Line::Lost { id: Some(id), resumes: true } => Verdict::Deliver(failed_request(id, TOO_LONG)),
        Line::Lost { .. } => Verdict::Violation(TOO_LONG.into()),
    }
}
