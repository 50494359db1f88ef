//! A connection wrapper that checks the framing of incoming requests until a protocol upgrade, and fails writes when
//! the client stops reading. Otherwise such a client would hold memory forever.

use super::framing::Framing;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// How long a write may make no progress before the connection fails.
const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream with its framing check and its write timeout.
pub(super) struct CheckedStream<S> {
    stream: S,
    framing: Framing,
    /// Deadline of the blocked write, if a write is blocked.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Set after a protocol upgrade; then bytes pass unchecked.
    upgraded: Arc<AtomicBool>,
}

impl<S> CheckedStream<S> {
    pub(super) fn new(stream: S, upgraded: Arc<AtomicBool>) -> CheckedStream<S> {
        CheckedStream { stream, framing: Framing::new(), stalled: None, upgraded }
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
}

impl<S: AsyncRead + Unpin> AsyncRead for CheckedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if !self.upgraded.load(Ordering::Relaxed) {
            self.framing.inspect(&mut buffer.filled_mut()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CheckedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.fail_if_stalled(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.fail_if_stalled(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
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
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::{Instant, timeout},
    };

    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_read_is_disconnected() {
        let (mut far, near) = duplex(64);
        let mut near = CheckedStream::new(near, Arc::default());
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
        let (written, _far) = tokio::join!(near.write_all(&[b'x'; 1_000]), reading);
        assert_eq!(written.expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
        assert_eq!(
            begun.elapsed().as_secs(),
            10 * (WRITE_STALL_TIMEOUT.as_secs() - 1) + WRITE_STALL_TIMEOUT.as_secs()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn idle_client_stays_connected() {
        let (mut far, near) = duplex(64);
        let mut near = CheckedStream::new(near, Arc::default());
        let mut piece = [0; 8];
        assert!(timeout(10 * WRITE_STALL_TIMEOUT, near.read(&mut piece)).await.is_err(), "nothing comes");
        near.write_all(b"still here").await.expect("it listens");
        far.read_exact(&mut piece).await.expect("something is said");
    }

    #[tokio::test]
    async fn bytes_after_upgrade_are_not_changed() {
        let (mut far, near) = duplex(64);
        let upgraded = Arc::<AtomicBool>::default();
        let mut near = CheckedStream::new(near, upgraded.clone());
        let mut piece = [0; 3];
        for (now, expected) in [(true, b"a\nb"), (false, b"a\0b")] {
            upgraded.store(now, Ordering::Relaxed);
            far.write_all(b"a\nb").await.expect("it listens");
            near.read_exact(&mut piece).await.expect("something is said");
            assert_eq!(&piece, expected);
        }
    }
}
