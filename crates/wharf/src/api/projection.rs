//! The events of a run as server-sent events of some protocol, with a comment whenever nothing happens for a while.

use crate::agent_runs::{RunEvents, RunStep};
use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, Full};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::timeout;
use wharf_agent::AgentEvent;
use wharf_mcp::serve::http::Body;

/// Interval of comments on an idle stream.
pub(in crate::api) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Writes the events of a run in the form of a protocol.
pub(super) trait Projection: Send + 'static {
    /// Appends an event as server-sent events, or nothing. [`AgentEvent::Done`] is the last one.
    fn write(&mut self, event: &AgentEvent, out: &mut String);

    /// Ends the stream of a run that waits for decisions, which the client sends in another request.
    fn pause(&mut self, out: &mut String);

    /// Ends the stream of a run that was aborted.
    fn abort(&mut self, out: &mut String);
}

/// Writes the frames of a response, one after the other.
pub(in crate::api) trait FrameWriter: Sized + Send + 'static {
    /// Returns the text of the next frame, and the writer of the one after it.
    fn next_frame(self) -> impl Future<Output = NextFrame<Self>> + Send;
}

/// The text of the next frame, and what is needed to wait for the one after it.
pub(in crate::api) type NextFrame<W> = Option<(Bytes, W)>;

/// Body of a response. Dropping it drops the writer, and with it the [`RunEvents`].
pub(in crate::api) struct FrameStream<W> {
    next: Pin<Box<dyn Future<Output = NextFrame<W>> + Send>>,
}

impl<W: FrameWriter> FrameStream<W> {
    pub(in crate::api) fn new(writer: W) -> FrameStream<W> {
        FrameStream { next: Box::pin(writer.next_frame()) }
    }
}

struct StreamWriter<P> {
    events: RunEvents,
    projection: P,
    /// Text that is sent first.
    begun: String,
    is_over: bool,
}

/// Responds with the rest of a run. `begun` is what the projection wrote before.
pub(super) fn stream<P: Projection>(events: RunEvents, projection: P, begun: String) -> Response<Body> {
    let writer = StreamWriter { events, projection, begun, is_over: false };
    respond(FrameStream::new(writer).boxed_unsync())
}

/// Responds with a stream that is over already.
pub(super) fn whole(text: String) -> Response<Body> {
    respond(Full::new(Bytes::from(text)).boxed_unsync())
}

fn respond(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<P: Projection> FrameWriter for StreamWriter<P> {
    async fn next_frame(mut self) -> NextFrame<Self> {
        let mut out = std::mem::take(&mut self.begun);
        while out.is_empty() && !self.is_over {
            match timeout(KEEP_ALIVE_INTERVAL, self.events.next_step()).await {
                Err(_) => out.push_str(": alive\n\n"),
                Ok(RunStep::End) => {
                    self.is_over = true;
                    self.projection.abort(&mut out);
                }
                Ok(RunStep::Waiting) => {
                    self.is_over = true;
                    self.projection.pause(&mut out);
                }
                Ok(RunStep::Event(event)) => {
                    self.is_over = matches!(*event, AgentEvent::Done(_));
                    self.projection.write(&event, &mut out);
                }
            }
        }
        (!out.is_empty()).then(|| (Bytes::from(out), self))
    }
}

impl<W: FrameWriter> HttpBody for FrameStream<W> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Poll::Ready(next) = self.next.as_mut().poll(context) else { return Poll::Pending };
        let Some((text, writer)) = next else {
            self.next = Box::pin(std::future::pending());
            return Poll::Ready(None);
        };
        self.next = Box::pin(writer.next_frame());
        Poll::Ready(Some(Ok(Frame::data(text))))
    }
}

/// Appends one server-sent event without a name.
pub(super) fn write_data(data: &serde_json::Value, out: &mut String) {
    out.push_str(&format!("data: {data}\n\n"));
}

/// Checks that a body without events consists of a comment every 15 seconds.
#[cfg(test)]
pub(in crate::api) async fn assert_comments_on_silence(
    mut body: impl HttpBody<Data = Bytes, Error = Infallible> + Unpin,
) {
    for _ in 0..3 {
        let begin = tokio::time::Instant::now();
        let frame = body.frame().await.expect("a frame").unwrap_or_else(|never| match never {});
        assert_eq!(frame.into_data().expect("data"), ": alive\n\n");
        assert_eq!(begin.elapsed(), Duration::from_secs(15));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes nothing.
    struct NoEvents;

    impl Projection for NoEvents {
        fn write(&mut self, _: &AgentEvent, _: &mut String) {}
        fn pause(&mut self, _: &mut String) {}
        fn abort(&mut self, _: &mut String) {}
    }

    #[tokio::test(start_paused = true)]
    async fn client_of_a_silent_run_gets_comments() {
        let response = stream(RunEvents::silent(), NoEvents, String::new());
        assert_comments_on_silence(response.into_body()).await;
    }
}
