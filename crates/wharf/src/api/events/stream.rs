//! The body of an SSE response: events, and keep-alive comments between them.

use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};

/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// An SSE stream with keep-alive comments.
pub(super) struct Stream {
    events: mpsc::Receiver<Bytes>,
    keep_alive: Pin<Box<Sleep>>,
    started: bool,
}

impl Stream {
    pub(super) fn new(events: mpsc::Receiver<Bytes>) -> Stream {
        Stream { events, keep_alive: Box::pin(sleep(KEEP_ALIVE_INTERVAL)), started: false }
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // The first frame is sent at once, so that the client knows that it is subscribed.
        if !std::mem::replace(&mut self.started, true) {
            return Poll::Ready(Some(Ok(keep_alive_frame())));
        }
        if let Poll::Ready(event) = self.events.poll_recv(context) {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
            return Poll::Ready(event.map(|it| Ok(Frame::data(it))));
        }
        ready!(self.keep_alive.as_mut().poll(context));
        self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
        Poll::Ready(Some(Ok(keep_alive_frame())))
    }
}

fn keep_alive_frame() -> Frame<Bytes> {
    Frame::data(Bytes::from_static(b": alive\n\n"))
}
