//! Link over any pair of byte streams that carry one message per line.

use crate::{
    Disconnect, Inbound, Link,
    charset::Charset,
    frame::FRAME_LIMIT,
    link::LinkIo,
    outbox::Outbox,
    reader::{Reader, Stop},
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time,
};

const CLOSED: &str = "the server closed the connection";

/// Time limit for flushing the last messages on close.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of queued messages taken at once.
const MAX_TAKEN: usize = 64;

/// Event in the loop of the I/O task.
enum StreamEvent {
    /// Number of queued messages; 0 after the session closed the link.
    Queued(usize),
    Wrote(io::Result<usize>),
    Read(io::Result<usize>),
    /// The session's channel has capacity again for a held message.
    Capacity,
}

/// Opens a link over existing streams, such as a socket or a pair of pipes.
pub fn link_over<R, W>(source: R, sink: W) -> Link
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    Link::start(false, |link_io| run(source, sink, link_io))
}

async fn run<R, W>(mut source: R, mut sink: W, mut link_io: LinkIo) -> Disconnect
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut reader = Reader::new(Charset::UTF_8, FRAME_LIMIT);
    let mut outbox = Outbox::new(Charset::UTF_8, link_io.written.clone());
    let mut queued = Vec::with_capacity(MAX_TAKEN);
    let disconnect = loop {
        let held = reader.is_held();
        let event = tokio::select! {
            count = link_io.outbound.recv_many(&mut queued, MAX_TAKEN), if outbox.has_room() => StreamEvent::Queued(count),
            // Needed while the outbox is full, because the outbound channel is not polled then.
            () = link_io.inbound.closed() => StreamEvent::Queued(0),
            wrote = sink.write(outbox.bytes()), if outbox.has_data() => StreamEvent::Wrote(wrote),
            Ok(_) = link_io.inbound.reserve(), if held => StreamEvent::Capacity,
            read = reader.fill(&mut source), if !held => StreamEvent::Read(read),
        };
        match event {
            StreamEvent::Queued(0) => return close(sink, link_io, outbox).await,
            StreamEvent::Queued(_) => queued.drain(..).for_each(|message| outbox.push(&message)),
            StreamEvent::Wrote(Ok(count @ 1..)) => outbox.advance(count),
            StreamEvent::Read(Ok(1..)) | StreamEvent::Capacity => match reader.deliver(&link_io) {
                Ok(()) => {}
                Err(Stop::Closed) => return close(sink, link_io, outbox).await,
                Err(Stop::Violation(why)) => break Disconnect::protocol_violation(why),
            },
            StreamEvent::Wrote(_) | StreamEvent::Read(_) => break Disconnect::because(CLOSED),
        }
    };
    if reader.is_held() {
        let _ = reader.deliver_all(&link_io).await;
    }
    let _ = reader.finish(&link_io).await;
    let disconnect = Disconnect { noise: reader.noise, ..disconnect };
    let _ = link_io.inbound.send(Inbound::Disconnected(disconnect.clone())).await;
    disconnect
}

/// Writes the messages that were queued before the link was closed.
async fn close(mut sink: impl AsyncWrite + Unpin, mut link_io: LinkIo, mut outbox: Outbox) -> Disconnect {
    while outbox.has_room()
        && let Ok(message) = link_io.outbound.try_recv()
    {
        outbox.push(&message);
    }
    let flush = async {
        let _ = sink.write_all(outbox.bytes()).await;
        let _ = sink.shutdown().await;
    };
    let _ = time::timeout(FLUSH_TIMEOUT, flush).await;
    Disconnect::because("the client closed the connection")
}
