//! Serves one client over a pair of byte streams, one message per line, such as stdin and stdout.

use super::{MessageReceiver, Service, connection};
use crate::{
    Written,
    charset::Charset,
    frame::{FRAME_LIMIT, Line, Lines},
    outbox::Outbox,
};
use bytes::Bytes;
use std::io;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

/// Maximum number of received lines waiting to be processed.
const MAX_QUEUED_LINES: usize = 64;

/// Serves one client until it closes its side, then writes the remaining responses.
pub async fn over_streams<R, W>(service: impl Into<Service>, source: R, sink: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (frames, received) = mpsc::channel(MAX_QUEUED_LINES);
    let (connection, written) = connection::serve(service.into(), None, received);
    let (read, (), wrote) = tokio::join!(read(source, frames), connection, write(sink, written));
    read.and(wrote)
}

async fn read(mut source: impl AsyncRead + Unpin, frames: mpsc::Sender<Bytes>) -> io::Result<()> {
    let mut lines = Lines::new(FRAME_LIMIT);
    while source.read_buf(lines.space()).await? > 0 {
        while let Some(line) = lines.next_line() {
            let frame = match line {
                Line::Whole(line) => line,
                Line::Lost { resumes: true, .. } => continue,
                Line::Lost { resumes: false, .. } => {
                    return Err(io::Error::other("a line is longer than the limit"));
                }
            };
            if frames.send(frame).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn write(mut sink: impl AsyncWrite + Unpin, mut messages: MessageReceiver) -> io::Result<()> {
    let mut outbox = Outbox::new(Charset::UTF_8, Written::default());
    while let Some(message) = messages.recv().await {
        outbox.push(&message);
        while outbox.has_room()
            && let Ok(message) = messages.try_recv()
        {
            outbox.push(&message);
        }
        while outbox.has_data() {
            let count = sink.write(outbox.bytes()).await?;
            outbox.advance(count);
        }
        sink.flush().await?;
    }
    Ok(())
}
