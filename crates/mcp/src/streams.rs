//! Link over any pair of byte streams that carry one message per line.

use crate::{
    Goodbye, Inbound, Link,
    frame::FRAME_LIMIT,
    link::FarEnd,
    outbox::Outbox,
    reader::{Reader, Stop},
    stdio::Charset,
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time,
};

const CLOSED: &str = "the server closed the connection";

/// Time limit for flushing the last messages on close.
const FAREWELL: Duration = Duration::from_secs(1);

/// Maximum number of queued messages taken at once.
const TAKEN: usize = 64;

/// Event in the loop of the I/O task.
enum Event {
    /// Number of queued messages; 0 after the session closed the link.
    Queued(usize),
    Wrote(io::Result<usize>),
    Read(io::Result<usize>),
    /// The session's channel has capacity again for a held message.
    Room,
}

/// Opens a link over existing streams, such as a socket or a pair of pipes.
pub fn link_over<R, W>(source: R, sink: W) -> Link
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    Link::start(false, |far_end| run(source, sink, far_end))
}

async fn run<R, W>(mut source: R, mut sink: W, mut far_end: FarEnd) -> Goodbye
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut reader = Reader::new(Charset::UTF_8, FRAME_LIMIT);
    let mut outbox = Outbox::new(Charset::UTF_8, far_end.written.clone());
    let mut queued = Vec::with_capacity(TAKEN);
    let goodbye = loop {
        let held = reader.is_held();
        let event = tokio::select! {
            count = far_end.outbound.recv_many(&mut queued, TAKEN), if outbox.has_room() => Event::Queued(count),
            // Needed while the outbox is full, because the outbound channel is not polled then.
            () = far_end.inbound.closed() => Event::Queued(0),
            wrote = sink.write(outbox.bytes()), if outbox.is_waiting() => Event::Wrote(wrote),
            Ok(_) = far_end.inbound.reserve(), if held => Event::Room,
            read = reader.fill(&mut source), if !held => Event::Read(read),
        };
        match event {
            Event::Queued(0) => return hang_up(sink, far_end, outbox).await,
            Event::Queued(_) => queued.drain(..).for_each(|message| outbox.push(&message)),
            Event::Wrote(Ok(count @ 1..)) => outbox.advance(count),
            Event::Read(Ok(1..)) | Event::Room => match reader.deliver(&far_end) {
                Ok(()) => {}
                Err(Stop::HungUp) => return hang_up(sink, far_end, outbox).await,
                Err(Stop::Breach(why)) => break Goodbye::breach(why),
            },
            Event::Wrote(_) | Event::Read(_) => break Goodbye::because(CLOSED),
        }
    };
    if reader.is_held() {
        let _ = reader.deliver_all(&far_end).await;
    }
    let _ = reader.finish(&far_end).await;
    let goodbye = Goodbye { noise: reader.noise, ..goodbye };
    let _ = far_end.inbound.send(Inbound::Gone(goodbye.clone())).await;
    goodbye
}

/// Writes the messages that were queued before the link was closed.
async fn hang_up(mut sink: impl AsyncWrite + Unpin, mut far_end: FarEnd, mut outbox: Outbox) -> Goodbye {
    while outbox.has_room()
        && let Ok(message) = far_end.outbound.try_recv()
    {
        outbox.push(&message);
    }
    let flush = async {
        let _ = sink.write_all(outbox.bytes()).await;
        let _ = sink.shutdown().await;
    };
    let _ = time::timeout(FAREWELL, flush).await;
    Goodbye::because("we hung up")
}
