//! The body of a request as its handler reads it.

use super::{
    body_decoder::{BodyDecoder, BodyPart, MalformedBody},
    client_stream::ClientStream,
    pending_output::PendingOutput,
    request_head::RequestHead,
    response_head::ResponseFraming,
};
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::{
    error::Error,
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, oneshot},
};

/// Allows the client to send the body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The body of a request. Most bodies have arrived when the request is handled.
#[derive(Debug)]
pub(crate) struct RequestBody(BodyState);

#[derive(Debug)]
enum BodyState {
    Whole(Bytes),
    Arriving(ArrivingBody),
}

#[derive(Debug)]
struct ArrivingBody {
    /// The parts of the body. An empty one is its end.
    parts: mpsc::Receiver<Result<Bytes, BrokenBody>>,
    /// Number of bytes that have not been read, if it is known.
    remaining: Option<u64>,
    is_over: bool,
    /// Signals that the handler reads the body.
    wanted: Option<oneshot::Sender<()>>,
}

/// The client disconnected in the body, or its chunks are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenBody;

/// Reads a body from its connection while the request is handled.
#[derive(Debug)]
pub(super) struct BodyFeeder {
    decoder: BodyDecoder,
    /// Receives the parts. An empty one is the end.
    parts: mpsc::Sender<Result<Bytes, BrokenBody>>,
    /// Fires when the handler reads the body, if the client waits for that.
    wanted: Option<oneshot::Receiver<()>>,
}

impl RequestBody {
    /// Returns the body of a request, and its feeder unless the whole body has arrived.
    pub(super) fn of(head: &RequestHead, unread: &mut BytesMut) -> (RequestBody, Option<BodyFeeder>) {
        let mut decoder = BodyDecoder::new(head.body);
        let whole = match decoder.remaining() {
            Some(0) => Some(Bytes::new()),
            Some(length) if unread.len() as u64 >= length => match decoder.decode(unread) {
                Ok(BodyPart::Data(data)) => Some(data),
                _ => None,
            },
            _ => None,
        };
        if let Some(whole) = whole {
            return (RequestBody(BodyState::Whole(whole)), None);
        }
        let (sender, parts) = mpsc::channel(1);
        let waits = head.expects_continue && unread.is_empty();
        let (signal, wanted) = if waits { Some(oneshot::channel()) } else { None }.unzip();
        let body = ArrivingBody { parts, remaining: decoder.remaining(), is_over: false, wanted: signal };
        let feeder = BodyFeeder { decoder, parts: sender, wanted };
        (RequestBody(BodyState::Arriving(body)), Some(feeder))
    }
}

impl RequestBody {
    /// Takes the body if all of it arrived with the head, so that nobody has to wait for it.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        match &mut self.0 {
            BodyState::Whole(whole) => Some(std::mem::take(whole)),
            BodyState::Arriving(_) => None,
        }
    }
}

impl BodyFeeder {
    /// Reads the body and passes it on. Returns at its end, or when it is broken.
    pub(super) async fn run<S>(&mut self, client: &mut ClientStream<S>) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if let Some(wanted) = self.wanted.take() {
            if wanted.await.is_err() {
                return Ok(());
            }
            client.write_all(&mut PendingOutput::new(CONTINUE.into(), ResponseFraming::Nothing)).await?;
        }
        loop {
            let part = match self.decoder.decode(&mut client.unread) {
                Ok(BodyPart::Data(data)) => Ok(data),
                Ok(BodyPart::End) => Ok(Bytes::new()),
                Ok(BodyPart::Incomplete) => match client.fill().await {
                    Ok(1..) => continue,
                    Ok(0) | Err(_) => Err(BrokenBody),
                },
                Err(MalformedBody) => Err(BrokenBody),
            };
            let is_last = part.as_ref().map_or(true, Bytes::is_empty);
            // Fails if the handler does not read the rest.
            if self.parts.send(part).await.is_err() || is_last {
                return Ok(());
            }
        }
    }

    /// Discards what has arrived of the rest of the body. Returns whether that was all of it.
    pub(super) fn discard(&mut self, unread: &mut BytesMut) -> bool {
        while let Ok(BodyPart::Data(_)) = self.decoder.decode(unread) {}
        self.decoder.is_at_end()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.decoder.is_at_end()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match &mut self.0 {
            BodyState::Whole(whole) if whole.is_empty() => Poll::Ready(None),
            BodyState::Whole(whole) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(whole))))),
            BodyState::Arriving(body) => {
                // The feeder is gone if the connection is.
                body.wanted.take().map(|it| it.send(()));
                let part = ready!(body.parts.poll_recv(context));
                Poll::Ready(body.next(part))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyState::Whole(whole) => whole.is_empty(),
            BodyState::Arriving(body) => body.is_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyState::Whole(whole) => SizeHint::with_exact(whole.len() as u64),
            BodyState::Arriving(ArrivingBody { remaining: Some(remaining), .. }) => {
                SizeHint::with_exact(*remaining)
            }
            BodyState::Arriving(_) => SizeHint::default(),
        }
    }
}

impl ArrivingBody {
    fn next(&mut self, part: Option<Result<Bytes, BrokenBody>>) -> Option<Result<Frame<Bytes>, BrokenBody>> {
        if self.is_over {
            return None;
        }
        // Without a part, the connection has ended.
        let part = part.unwrap_or(Err(BrokenBody));
        let length = part.as_ref().map_or(0, Bytes::len);
        self.remaining = self.remaining.map(|it| it.saturating_sub(length as u64));
        self.is_over = length == 0 || self.remaining == Some(0);
        match part {
            Ok(data) if data.is_empty() => None,
            part => Some(part.map(Frame::data)),
        }
    }
}

impl fmt::Display for BrokenBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body was cut off")
    }
}

impl Error for BrokenBody {}
