//! One plain HTTP/1.1 connection: writes a request and reads its response, in the task of the caller.
//!
//! A general HTTP library passes a request and each piece of a response through channels, which wake the waiting task
//! several times per call, and copies a long body. Here a call is one write, and a body of known length is read into
//! the buffer that the caller gets.

use super::{
    plain_body::BodyFraming,
    plain_head::{EncodedRequest, ResponseHead},
};
use bytes::{Buf, Bytes, BytesMut};
use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncReadExt, AsyncWrite},
    net::TcpStream,
    runtime::{self, Handle},
};

/// Maximum size of the head of a response, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Free space of the buffer for a read, in bytes.
const READ_BYTES: usize = 8 << 10;

/// An open connection.
#[derive(Debug)]
pub(super) struct PlainConnection {
    stream: TcpStream,
    /// The runtime that was current when the connection was made. Its thread waits for the stream.
    runtime: runtime::Id,
    /// Bytes that were read and not used.
    buffer: BytesMut,
    /// Remaining part of the body of the current response.
    framing: BodyFraming,
    /// Whether the server keeps the connection open after the current response.
    keeps_open: bool,
}

/// A request that got no response.
#[derive(Debug)]
pub(super) enum SendError {
    /// Nothing of it was sent.
    Unsent(io::Error),
    /// The server may have received it.
    Sent(io::Error),
}

impl PlainConnection {
    pub(super) fn new(stream: TcpStream) -> PlainConnection {
        PlainConnection {
            stream,
            runtime: Handle::current().id(),
            buffer: BytesMut::new(),
            framing: BodyFraming::Length(0),
            keeps_open: true,
        }
    }

    /// Returns whether this runtime waits for the stream. A task of another one would be woken by its thread.
    pub(super) fn is_of(&self, runtime: runtime::Id) -> bool {
        self.runtime == runtime
    }

    /// Returns whether the connection can take a request: the last response has been read, and nothing came after it.
    pub(super) fn is_idle(&self) -> bool {
        self.keeps_open && self.framing.is_over() && self.buffer.is_empty()
    }

    /// Returns whether the body of the current response has been read.
    pub(super) fn is_over(&self) -> bool {
        self.framing.is_over()
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// Reads while it writes: a server may reject a long request before it has read all of it.
    pub(super) async fn send(&mut self, request: &EncodedRequest) -> Result<ResponseHead, SendError> {
        self.check_open().map_err(SendError::Unsent)?;
        let mut unwritten = Buf::chain(&request.head[..], &request.body[..]);
        let mut write_error = None;
        let head = poll_fn(|context| {
            while write_error.is_none() && unwritten.has_remaining() {
                match self.poll_write(&mut unwritten, context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => write_error = Some(error),
                    Poll::Pending => break,
                }
            }
            self.poll_head(context)
        })
        .await;
        let is_unsent = unwritten.remaining() == request.head.len() + request.body.len();
        // Without the rest of the request, the server cannot find the next one.
        self.keeps_open &= !unwritten.has_remaining();
        match (head, write_error) {
            (Ok(head), _) => Ok(head),
            (Err(_), Some(error)) if is_unsent => Err(SendError::Unsent(error)),
            (Err(error), _) => Err(SendError::Sent(error)),
        }
    }

    /// Fails if the server has closed the idle connection, or sent something on it.
    fn check_open(&self) -> io::Result<()> {
        match self.stream.try_read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
            Ok(0) => Err(closed()),
            Ok(_) => Err(invalid("the server sent something before the request")),
        }
    }

    fn poll_write(&mut self, unwritten: &mut impl Buf, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut slices = [io::IoSlice::new(&[]); 2];
        let count = unwritten.chunks_vectored(&mut slices);
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, &slices[..count]);
        match ready!(written)? {
            0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            written => {
                unwritten.advance(written);
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Reads until the head of the final response is complete.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ResponseHead>> {
        loop {
            if !self.buffer.is_empty()
                && let Some(head) = ResponseHead::take(&mut self.buffer)?
            {
                (self.framing, self.keeps_open) = (head.framing, head.keeps_open);
                return Poll::Ready(Ok(head));
            }
            if self.buffer.len() > MAX_HEAD_BYTES {
                return Poll::Ready(Err(invalid("the head of the response is too long")));
            }
            self.buffer.reserve(READ_BYTES);
            if ready!(self.poll_read(context))? == 0 {
                return Poll::Ready(Err(closed()));
            }
        }
    }

    /// Reads what is there into the buffer. The future has no state, so it need not be kept.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        pin!(self.stream.read_buf(&mut self.buffer)).poll(context)
    }

    /// Returns the next piece of the body, or `None` at its end.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(piece) = self.framing.take(&mut self.buffer)? {
                return Ok(Some(piece));
            }
            if self.framing.is_over() {
                return Ok(None);
            }
            self.buffer.reserve(READ_BYTES);
            if self.read().await? == 0 {
                return self.framing.end().map(|()| None);
            }
        }
    }

    /// Reads the rest of a body whose length is known and at most `limit`, in one piece. Returns `None` for any other
    /// body.
    pub(super) async fn rest(&mut self, limit: usize) -> io::Result<Option<Bytes>> {
        let BodyFraming::Length(left) = self.framing else { return Ok(None) };
        let Some(left) = usize::try_from(left).ok().filter(|it| *it <= limit) else { return Ok(None) };
        // The buffer becomes the body, so there is no need for more than its size.
        self.buffer.reserve(left.saturating_sub(self.buffer.len()));
        while self.buffer.len() < left {
            if self.read().await? == 0 {
                return Err(closed());
            }
        }
        self.framing.take(&mut self.buffer)
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.buffer).await
    }
}

pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it")
}

pub(super) fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
