//! The body of an SSE response: events or batches of them, and keep-alive comments between them.

use super::paced_queue::PacedQueue;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, Sleep, interval, sleep},
};

/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// An SSE stream with keep-alive comments.
pub(super) struct Stream {
    events: mpsc::Receiver<Bytes>,
    /// The queue of a paced listener, and when it is read.
    paced: Option<(Arc<PacedQueue>, Interval)>,
    keep_alive: Pin<Box<Sleep>>,
    started: bool,
}

impl Stream {
    pub(super) fn new(events: mpsc::Receiver<Bytes>, paced: Option<(Arc<PacedQueue>, Duration)>) -> Stream {
        let paced = paced.map(|(queue, pace)| {
            let mut ticks = interval(pace);
            // A listener that was slow gets one batch, not one for each interval that it missed.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (queue, ticks)
        });
        Stream { events, paced, keep_alive: Box::pin(sleep(KEEP_ALIVE_INTERVAL)), started: false }
    }

    /// Returns the next batch, when its interval is over and there is anything to tell.
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        let Some((queue, ticks)) = &mut self.paced else { return Poll::Pending };
        loop {
            ready!(ticks.poll_tick(context));
            if let Some(batch) = queue.take_batch() {
                return Poll::Ready(batch);
            }
        }
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
        let event = match self.events.poll_recv(context) {
            Poll::Ready(event) => Poll::Ready(event),
            Poll::Pending => self.poll_batch(context).map(Some),
        };
        if let Poll::Ready(event) = event {
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
