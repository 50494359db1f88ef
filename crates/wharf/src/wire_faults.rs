//! Injects faults into the bytes that a server writes: an answer that is not valid JSON, or a connection that ends.
//!
//! A handler knows requests but no frames, so it answers with a mark, a random word. The stream of the client finds the mark
//! in the frame of the answer, whatever the transport, and breaks the frame or the connection there.

use memchr::memmem;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};
use uuid::Uuid;

/// The marks of one server.
#[derive(Debug)]
pub(crate) struct WireFaults {
    malformed: String,
    disconnect: String,
    ended: Notify,
}

/// A stream to a client that injects the faults of marked answers. Without faults it changes nothing.
pub(crate) struct FaultyStream<S> {
    stream: S,
    faults: Option<Arc<WireFaults>>,
    /// Bytes of a mark that have not been replaced yet.
    unreplaced: usize,
}

impl WireFaults {
    pub(crate) fn new() -> WireFaults {
        let mark = || Uuid::new_v4().simple().to_string();
        WireFaults { malformed: mark(), disconnect: mark(), ended: Notify::new() }
    }

    /// Returns the text of an answer whose frame is to be invalid.
    pub(crate) fn malformed(&self) -> &str {
        &self.malformed
    }

    /// Returns the text of an answer that is to end the connection.
    pub(crate) fn disconnect(&self) -> &str {
        &self.disconnect
    }

    /// Waits until a connection has been ended.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Finds the first mark: its position, and whether it ends the connection.
    fn find(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        let at = |mark: &str| memmem::find(bytes, mark.as_bytes());
        let marks = [at(&self.malformed).map(|it| (it, false)), at(&self.disconnect).map(|it| (it, true))];
        marks.into_iter().flatten().min()
    }
}

impl<S> FaultyStream<S> {
    pub(crate) fn new(stream: S, faults: Option<Arc<WireFaults>>) -> FaultyStream<S> {
        FaultyStream { stream, faults, unreplaced: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FaultyStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FaultyStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(faults) = self.faults.clone() else {
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        };
        if self.unreplaced == 0 {
            match faults.find(bytes) {
                // What precedes the mark is written first.
                Some((at @ 1.., _)) => return Pin::new(&mut self.stream).poll_write(context, &bytes[..at]),
                Some((0, true)) => {
                    faults.ended.notify_one();
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                Some((0, false)) => self.unreplaced = faults.malformed.len(),
                None => return Pin::new(&mut self.stream).poll_write(context, bytes),
            }
        }
        // Quotation marks end the string that the mark is in, so the rest is no JSON. The length stays the same.
        let quotes = vec![b'"'; self.unreplaced];
        let written = Pin::new(&mut self.stream).poll_write(context, &quotes);
        if let Poll::Ready(Ok(count)) = written {
            self.unreplaced -= count;
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.faults.is_none() {
            return Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        }
        let first = parts.iter().find(|it| !it.is_empty()).map_or(&[][..], |it| it);
        self.poll_write(context, first)
    }

    fn is_write_vectored(&self) -> bool {
        self.faults.is_none() && self.stream.is_write_vectored()
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
    use tokio::io::AsyncWriteExt;

    async fn write(faults: &Arc<WireFaults>, frame: String) -> (Vec<u8>, io::Result<()>) {
        let (near, mut far) = tokio::io::duplex(7);
        let mut stream = FaultyStream::new(near, Some(faults.clone()));
        let writing = async move {
            let written = stream.write_all(frame.as_bytes()).await;
            drop(stream);
            written
        };
        let mut received = Vec::new();
        let reading = tokio::io::AsyncReadExt::read_to_end(&mut far, &mut received);
        let (written, read) = tokio::join!(writing, reading);
        read.expect("it is read");
        (received, written)
    }

    #[tokio::test]
    async fn marked_answers_are_broken_and_others_unchanged() {
        let faults = Arc::new(WireFaults::new());
        let plain = r#"{"id":1,"result":"plain"}"#.to_owned();
        assert_eq!(write(&faults, plain.clone()).await.0, plain.as_bytes());
        let frame = format!(r#"{{"id":1,"result":"{}"}}"#, faults.malformed());
        let (received, written) = write(&faults, frame.clone()).await;
        assert!(
            written.is_ok()
                && received.len() == frame.len()
                && received.starts_with(br#"{"id":1,"result":""#)
        );
        assert!(serde_json::from_slice::<serde_json::Value>(&received).is_err());
        let frames = format!("{plain}\n{{\"id\":2,\"result\":\"{}\"}}\n", faults.disconnect());
        let (received, written) = write(&faults, frames).await;
        assert!(written.is_err() && received.starts_with(plain.as_bytes()));
        faults.ended().await;
    }
}
