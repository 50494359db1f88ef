//! The reading half of a byte stream: bytes to lines to what the session hears.

use crate::{
    Inbound,
    frame::{Line, Lines},
    link::{FarEnd, Verdict, hear, lost},
    stdio::{Charset, Transcoder},
};
use bytes::BytesMut;
use std::io;
use tokio::{io::AsyncReadExt, sync::mpsc::error::TrySendError};

const TOO_LONG: &str = "a message is longer than the limit";

pub(crate) struct Reader {
    lines: Lines,
    transcoder: Transcoder,
    encoded: BytesMut,
    stirred: bool,
    /// What the session has no room for yet.
    held: Option<Inbound>,
    /// How many lines were no messages.
    pub(crate) noise: u64,
}

/// Why reading cannot go on.
pub(crate) enum Stop {
    HungUp,
    Breach(String),
}

impl Reader {
    pub(crate) fn new(charset: Charset, limit: usize) -> Reader {
        let (lines, transcoder) = (Lines::new(limit), charset.decoder());
        Reader { lines, transcoder, encoded: BytesMut::new(), stirred: false, held: None, noise: 0 }
    }

    /// Reads one chunk. Cancel-safe: what was read is kept before anything else is awaited.
    pub(crate) async fn fill(&mut self, source: &mut (impl AsyncReadExt + Unpin)) -> io::Result<usize> {
        if self.transcoder.is_idle() {
            return source.read_buf(self.lines.space()).await;
        }
        self.encoded.reserve(16 << 10);
        let count = source.read_buf(&mut self.encoded).await?;
        self.transcoder.decode(&self.encoded.split(), self.lines.space());
        Ok(count)
    }

    /// Passes on complete lines for as long as the session has room. It never waits: whoever waits here does not write,
    /// and the session may have no room because it waits for us to write.
    pub(crate) fn deliver(&mut self, far_end: &FarEnd) -> Result<(), Stop> {
        if !self.stirred {
            self.stirred = true;
            self.send(Inbound::Stirred, far_end)?;
        }
        if let Some(held) = self.held.take() {
            self.send(held, far_end)?;
        }
        while self.held.is_none()
            && let Some(line) = self.lines.next_line()
        {
            let verdict = match line {
                Line::Whole(line) => hear(&line),
                Line::Lost { id: Some(id), resumes: true } => Verdict::Deliver(lost(id, TOO_LONG)),
                Line::Lost { .. } => Verdict::Breach(TOO_LONG.into()),
            };
            match verdict {
                Verdict::Deliver(heard) => self.send(heard, far_end)?,
                Verdict::Noise => self.noise += 1,
                Verdict::Breach(why) => return Err(Stop::Breach(why)),
            }
        }
        Ok(())
    }

    /// Whether something waits for room, so that no more should be read.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// The same as [`Reader::deliver`], where there is nothing left to write.
    pub(crate) async fn deliver_all(&mut self, far_end: &FarEnd) -> Result<(), Stop> {
        self.deliver(far_end)?;
        while self.is_held() {
            drop(far_end.inbound.reserve().await.map_err(|_| Stop::HungUp)?);
            self.deliver(far_end)?;
        }
        Ok(())
    }

    fn send(&mut self, heard: Inbound, far_end: &FarEnd) -> Result<(), Stop> {
        match far_end.inbound.try_send(heard) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(heard)) => {
                self.held = Some(heard);
                Ok(())
            }
            Err(TrySendError::Closed(_)) => Err(Stop::HungUp),
        }
    }

    /// Passes on a last line that lacks its end, if it is whole. One that is cut says no more than the end of the stream
    /// does, and less than how the server ended.
    pub(crate) async fn finish(&mut self, far_end: &FarEnd) -> Result<(), Stop> {
        let Some(Verdict::Deliver(heard @ Inbound::Message(_))) = self.lines.finish().map(|line| hear(&line))
        else {
            return Ok(());
        };
        far_end.inbound.send(heard).await.map_err(|_| Stop::HungUp)
    }
}
