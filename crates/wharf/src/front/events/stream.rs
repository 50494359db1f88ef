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
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An SSE stream with keep-alive comments.
pub(super) struct Stream {
    events: mpsc::Receiver<Bytes>,
    silence: Pin<Box<Sleep>>,
    greeted: bool,
}

impl Stream {
    pub(super) fn new(events: mpsc::Receiver<Bytes>) -> Stream {
        Stream { events, silence: Box::pin(sleep(KEEP_ALIVE)), greeted: false }
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
        if !std::mem::replace(&mut self.greeted, true) {
            return Poll::Ready(Some(Ok(alive())));
        }
        if let Poll::Ready(event) = self.events.poll_recv(context) {
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(event.map(|it| Ok(Frame::data(it))));
        }
        ready!(self.silence.as_mut().poll(context));
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(Ok(alive())))
    }
}

fn alive() -> Frame<Bytes> {
    Frame::data(Bytes::from_static(b": alive\n\n"))
}
