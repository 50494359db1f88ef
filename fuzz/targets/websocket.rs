//! Parses an arbitrary stream as the frames of a WebSocket server. The chunking changes neither the messages nor
//! the reason for the end, no message exceeds the limit, and the end of the stream ends the link with a reason.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::{Builder, Runtime},
};
use wharf_fuzz::ChunkedInput;
use wharf_mcp::{Disconnect, Inbound, Message, Raw, ws::link_over};

/// Larger than the longest input, so that only the limit of the link applies.
const CHUNK: usize = 4 << 10;

thread_local! {
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_time().build().expect("a runtime"));
}

/// The server side of the stream: it sends these chunks and ignores all input.
struct Server {
    chunks: std::vec::IntoIter<Vec<u8>>,
}

fuzz_target!(|input: &[u8]| {
    let Some(input) = ChunkedInput::of(input) else { return };
    let received = receive(input.limit, input.chunks());
    let expected = receive(input.limit, input.stream.chunks(1));
    assert_eq!(format!("{received:?}"), format!("{expected:?}"), "chunks matter");

    let (messages, disconnect) = received;
    assert!(!disconnect.cause.is_empty(), "it ended for no reason");
    for message in &messages {
        let size = size(message);
        assert!(size <= input.limit, "a message of {size} bytes passed the limit of {}", input.limit);
    }
});

/// Collects everything received until the connection ends.
fn receive<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Inbound>, Disconnect) {
    let server = Server { chunks: chunks.map(<[u8]>::to_vec).collect::<Vec<_>>().into_iter() };
    RUNTIME.with_borrow(|runtime| {
        runtime.block_on(async {
            let mut link = link_over(server, limit).await;
            let mut received = Vec::new();
            let disconnect = loop {
                match link.inbound.recv().await.expect("the link reports its end") {
                    Inbound::Disconnected(disconnect) => break disconnect,
                    inbound => received.push(inbound),
                }
            };
            let last = link.close(Duration::from_secs(1)).await;
            assert_eq!(last.cause, disconnect.cause, "two reasons for one end");
            (received, disconnect)
        })
    })
}

fn size(inbound: &Inbound) -> usize {
    let length = |raw: &Option<Raw>| raw.as_ref().map_or(0, |it| it.as_bytes().len());
    match inbound {
        Inbound::Message(message) | Inbound::OnRequestStream { message, .. } => match message {
            Message::Request { method, params, .. } | Message::Notification { method, params } => {
                method.len() + length(params)
            }
            Message::Answer { outcome: Ok(result), .. } => result.as_bytes().len(),
            Message::Answer { outcome: Err(error), .. } => length(&error.data),
        },
        Inbound::Batch(items) => items.iter().map(size).sum(),
        Inbound::Failed { .. } | Inbound::FirstOutput | Inbound::Disconnected(_) => 0,
        Inbound::Renewed | Inbound::Stateless => 0,
    }
}

impl AsyncRead for Server {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(mut chunk) = self.chunks.next() else { return Poll::Ready(Ok(())) };
        let rest = chunk.split_off(chunk.len().min(buf.remaining()).min(CHUNK));
        buf.put_slice(&chunk);
        if !rest.is_empty() {
            let left: Vec<Vec<u8>> = [rest].into_iter().chain(self.chunks.by_ref()).collect();
            self.chunks = left.into_iter();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
