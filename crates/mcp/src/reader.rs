//! The reading half of a byte stream: bytes to lines to what the session hears.

use crate::{
    Inbound,
    frame::{Line, Lines},
    link::{FarEnd, Verdict, hear, lost},
    stdio::{Charset, Transcoder},
};
use bytes::BytesMut;
use std::io;
use tokio::io::AsyncReadExt;

const TOO_LONG: &str = "a message is longer than the limit";

pub(crate) struct Reader {
    lines: Lines,
    transcoder: Transcoder,
    encoded: BytesMut,
    stirred: bool,
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
        Reader { lines, transcoder, encoded: BytesMut::new(), stirred: false, noise: 0 }
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

    /// Passes on every complete line.
    pub(crate) async fn deliver(&mut self, far_end: &FarEnd) -> Result<(), Stop> {
        if !self.stirred {
            self.stirred = true;
            send(far_end, Inbound::Stirred).await?;
        }
        while let Some(line) = self.lines.next_line() {
            let verdict = match line {
                Line::Whole(line) => hear(&line),
                Line::Lost { id: Some(id), resumes: true } => Verdict::Deliver(lost(id, TOO_LONG)),
                Line::Lost { .. } => Verdict::Breach(TOO_LONG.into()),
            };
            self.pass_on(verdict, far_end).await?;
        }
        Ok(())
    }

    /// Passes on a last line that lacks its end.
    pub(crate) async fn finish(&mut self, far_end: &FarEnd) -> Result<(), Stop> {
        match self.lines.finish() {
            Some(line) => self.pass_on(hear(&line), far_end).await,
            None => Ok(()),
        }
    }

    async fn pass_on(&mut self, verdict: Verdict, far_end: &FarEnd) -> Result<(), Stop> {
        match verdict {
            Verdict::Deliver(heard) => send(far_end, heard).await,
            Verdict::Noise => {
                self.noise += 1;
                Ok(())
            }
            Verdict::Breach(why) => Err(Stop::Breach(why)),
        }
    }
}

async fn send(far_end: &FarEnd, heard: Inbound) -> Result<(), Stop> {
    far_end.inbound.send(heard).await.map_err(|_| Stop::HungUp)
}
