//! The bytes of one connection: what was read and is not used yet, and writes that fail when the client stops reading.
//! Otherwise such a client would hold memory forever.

use super::pending_output::PendingOutput;
use bytes::BytesMut;
use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::{Sleep, sleep},
};

/// How long a write may make no progress before the connection fails.
const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of bytes that one read takes.
const READ_BYTES: usize = 64 << 10;

/// Maximum capacity that an idle connection keeps, in bytes.
const MAX_IDLE_CAPACITY: usize = 4 << 10;

thread_local! {
    /// Receives the bytes of each read. An idle connection needs no buffer of its own.
    static READ_BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// A stream with the bytes that were read and are not used yet.
pub(super) struct ClientStream<S> {
    stream: S,
    pub(super) unread: BytesMut,
    /// Deadline of the blocked write, if a write is blocked.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientStream<S> {
    pub(super) fn new(stream: S) -> ClientStream<S> {
        ClientStream { stream, unread: BytesMut::new(), stalled: None }
    }

    /// Reads more bytes. Returns how many; 0 means that the client has closed its side.
    pub(super) async fn fill(&mut self) -> io::Result<usize> {
        poll_fn(|context| self.poll_fill(context)).await
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            self.unread.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(buffer.filled().len()))
        })
    }

    /// Waits until the client disconnects. Does not read past the beginning of a next request.
    pub(super) fn poll_disconnect(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if !self.unread.is_empty() {
            return Poll::Pending;
        }
        match ready!(self.poll_fill(context)) {
            Ok(0) => Poll::Ready(io::ErrorKind::ConnectionReset.into()),
            Ok(_) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    /// Releases the memory of a large request.
    pub(super) fn release_buffer(&mut self) {
        if self.unread.is_empty() && self.unread.capacity() > MAX_IDLE_CAPACITY {
            self.unread = BytesMut::new();
        }
    }

    /// Writes the whole output.
    pub(super) async fn write_all(&mut self, output: &mut PendingOutput) -> io::Result<()> {
        while !output.is_empty() {
            let written = poll_fn(|context| {
                let written = output.write_with(|slices| match slices {
                    [slice] => Pin::new(&mut self.stream).poll_write(context, slice),
                    slices => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
                });
                self.fail_if_stalled(written, context)
            });
            match written.await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => output.advance(written),
            }
        }
        Ok(())
    }

    /// Returns the result of a write, or fails when it has been blocked for too long.
    fn fail_if_stalled(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        ready!(
            self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_STALL_TIMEOUT))).as_mut().poll(context)
        );
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Closes the sending side.
    pub(super) async fn shutdown(&mut self) {
        // The client may have closed the connection first.
        let _ = self.stream.shutdown().await;
    }
}

/// Reads the unread bytes first. Used after a protocol upgrade.
impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.fail_if_stalled(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::response_head::ResponseFraming, *};
    use bytes::Buf;
    use tokio::{
        io::{AsyncReadExt, duplex},
        time::{Instant, timeout},
    };

    fn output(text: &str) -> PendingOutput {
        PendingOutput::new(text.into(), ResponseFraming::Nothing)
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_read_is_disconnected() {
        let (mut far, near) = duplex(64);
        let mut near = ClientStream::new(near);
        let begun = Instant::now();
        // A slow client is not cut off, as long as it keeps reading.
        let reading = async {
            let mut piece = [0; 8];
            for _ in 0..10 {
                sleep(WRITE_STALL_TIMEOUT - Duration::from_secs(1)).await;
                far.read_exact(&mut piece).await.expect("something is said");
            }
            far
        };
        let mut large = output(&"x".repeat(1_000));
        let (written, _far) = tokio::join!(near.write_all(&mut large), reading);
        assert_eq!(written.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
        assert_eq!(
            begun.elapsed().as_secs(),
            10 * (WRITE_STALL_TIMEOUT.as_secs() - 1) + WRITE_STALL_TIMEOUT.as_secs()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn idle_client_stays_connected() {
        let (mut far, near) = duplex(64);
        let mut near = ClientStream::new(near);
        let disconnected =
            timeout(10 * WRITE_STALL_TIMEOUT, poll_fn(|context| near.poll_disconnect(context)));
        assert!(disconnected.await.is_err(), "nothing comes");
        near.write_all(&mut output("still here")).await.expect("it listens");
        far.read_exact(&mut [0; 10]).await.expect("something is said");
        drop(far);
        poll_fn(|context| near.poll_disconnect(context)).await;
    }

    #[tokio::test]
    async fn unread_bytes_come_first_after_an_upgrade() {
        let (mut far, near) = duplex(64);
        let mut near = ClientStream::new(near);
        far.write_all(b"head body").await.expect("it listens");
        near.fill().await.expect("bytes");
        near.unread.advance(5);
        far.write_all(b" and more").await.expect("it listens");
        drop(far);
        let mut rest = String::new();
        near.read_to_string(&mut rest).await.expect("text");
        assert_eq!(rest, "body and more");
    }
}
