//! Serves the requests of one HTTP/1 connection, one after the other.
//!
//! The handler of a request runs in the task of its connection. Meanwhile the connection reads the rest of the body, or
//! watches whether the client disconnects, which drops the handler. Knows no routes and no protocol but HTTP/1.

use super::{
    ConnectionHandle,
    client_stream::ClientStream,
    pending_output::PendingOutput,
    repeated_head::RepeatingReader,
    request_body::{BodyFeeder, RequestBody},
    request_head::{RejectedHead, RequestHead},
    response_head::{AnsweredRequest, ResponseFraming, closes, write_head},
};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header::CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use std::{
    future::{pending, poll_fn},
    io,
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use wharf_mcp::serve::http::Body;

/// How long to read on after a response that does not wait for the rest of its request. If the connection were closed
/// with bytes unread, the client might lose the response.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);

/// The connection of one client.
pub(super) struct Connection<'a, S> {
    client: ClientStream<S>,
    heads: RepeatingReader,
    handle: &'a ConnectionHandle,
    activity: &'a Activity,
}

/// Tells the rest of the server how busy a connection is.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Number of heads that the connection has waited for.
    waits: AtomicU64,
    /// Whether the connection waits for a head.
    is_waiting: AtomicBool,
    /// Set when the server shuts down: the connection closes after the current response.
    pub(super) is_draining: AtomicBool,
}

/// The next part of a response's body.
enum NextPart {
    Data(Bytes),
    End,
    /// There is none yet, and something has to be written first.
    Later,
}

/// Next step of a connection after a response.
enum After {
    NextRequest,
    Upgrade,
    /// The rest of the request was not read.
    Linger,
    Close,
}

impl Activity {
    /// Returns the number of the head that the connection waits for, if it waits for one.
    pub(super) fn waiting_for(&self) -> Option<u64> {
        self.is_waiting.load(Ordering::Relaxed).then(|| self.waits.load(Ordering::Relaxed))
    }

    fn wait_for_head(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.is_waiting.store(true, Ordering::Relaxed);
    }

    fn have_head(&self) {
        self.is_waiting.store(false, Ordering::Relaxed);
    }
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, S> {
    pub(super) fn new(stream: S, handle: &'a ConnectionHandle, activity: &'a Activity) -> Connection<'a, S> {
        Connection { client: ClientStream::new(stream), heads: RepeatingReader::default(), handle, activity }
    }

    /// Serves requests until the connection ends. Returns the stream if a request has upgraded the connection.
    pub(super) async fn serve<F>(
        mut self,
        respond: impl Fn(Request<RequestBody>, &ConnectionHandle) -> F,
    ) -> Option<ClientStream<S>>
    where
        F: Future<Output = Response<Body>>,
    {
        while !self.activity.is_draining.load(Ordering::Relaxed) {
            let head = match self.next_head().await? {
                Ok(head) => head,
                Err(rejected) => {
                    self.reject(rejected).await;
                    return None;
                }
            };
            match self.exchange(head, &respond).await.ok()? {
                After::NextRequest => {}
                After::Upgrade => return Some(self.client),
                After::Linger => {
                    self.linger().await;
                    return None;
                }
                After::Close => break,
            }
        }
        self.client.shutdown().await;
        None
    }

    /// Waits for the head of the next request. Returns `None` if the client disconnects.
    async fn next_head(&mut self) -> Option<Result<RequestHead, RejectedHead>> {
        self.activity.wait_for_head();
        self.client.release_buffer();
        loop {
            if let Some(head) = self.heads.take(&mut self.client.unread, self.handle).transpose() {
                self.activity.have_head();
                return Some(head);
            }
            self.client.fill().await.ok().filter(|it| *it > 0)?;
        }
    }

    /// Runs the handler of one request and writes its response. Fails if the client disconnects.
    async fn exchange<F>(
        &mut self,
        head: RequestHead,
        respond: &impl Fn(Request<RequestBody>, &ConnectionHandle) -> F,
    ) -> io::Result<After>
    where
        F: Future<Output = Response<Body>>,
    {
        let (body, mut feeder) = RequestBody::of(&head, &mut self.client.unread);
        let request = AnsweredRequest {
            version: head.request.version(),
            is_head: head.request.method() == Method::HEAD,
        };
        let response = {
            let handler = pin!(respond(head.request.map(|()| body), self.handle));
            let feeding = pin!(feed(&mut self.client, feeder.as_mut()));
            tokio::select! {
                biased;
                response = handler => response,
                disconnected = feeding => return Err(disconnected),
            }
        };
        let is_read = feeder.as_mut().is_none_or(|it| it.discard(&mut self.client.unread));
        let is_draining = self.activity.is_draining.load(Ordering::Relaxed);
        let keeps_open = is_read && head.keeps_open && !is_draining && !closes(&response);
        self.write(response, request, keeps_open).await.map(|after| match after {
            After::Close if !is_read => After::Linger,
            after => after,
        })
    }

    async fn write(
        &mut self,
        response: Response<Body>,
        request: AnsweredRequest,
        keeps_open: bool,
    ) -> io::Result<After> {
        let length = response.body().size_hint().exact();
        let framing = ResponseFraming::of(response.status(), length, request);
        let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let keeps_open = is_upgrade || keeps_open && framing != ResponseFraming::UntilClose;
        let mut output =
            PendingOutput::new(write_head(&response, framing, length, request, keeps_open), framing);
        let mut body = response.into_body();
        while framing != ResponseFraming::Nothing && !body.is_end_stream() {
            match poll_fn(|context| self.poll_part(context, &mut body, output.is_empty())).await? {
                NextPart::Data(data) => output.add(data),
                NextPart::End => break,
                NextPart::Later => self.client.write_all(&mut output).await?,
            }
            if output.is_full() {
                self.client.write_all(&mut output).await?;
            }
        }
        output.finish();
        self.client.write_all(&mut output).await?;
        Ok(match keeps_open {
            _ if is_upgrade => After::Upgrade,
            true => After::NextRequest,
            false => After::Close,
        })
    }

    /// Returns the next part of a response's body. Without one, it waits only if everything before it is written.
    fn poll_part(
        &mut self,
        context: &mut Context<'_>,
        body: &mut Body,
        is_written: bool,
    ) -> Poll<io::Result<NextPart>> {
        match Pin::new(body).poll_frame(context) {
            // There are no trailers.
            Poll::Ready(Some(Ok(frame))) => {
                Poll::Ready(Ok(NextPart::Data(frame.into_data().unwrap_or_default())))
            }
            Poll::Ready(None) => Poll::Ready(Ok(NextPart::End)),
            Poll::Pending if !is_written => Poll::Ready(Ok(NextPart::Later)),
            Poll::Pending => self.client.poll_disconnect(context).map(Err),
        }
    }

    /// Answers a request that cannot be read, and closes the connection.
    async fn reject(&mut self, rejected: RejectedHead) {
        let text = Bytes::from_static(rejected.message().as_bytes());
        let mut response = Response::new(Full::new(text).boxed_unsync());
        *response.status_mut() = rejected.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        let request = AnsweredRequest { version: Version::HTTP_11, is_head: false };
        if self.write(response, request, false).await.is_ok() {
            self.linger().await;
        }
    }

    /// Closes the sending side, and discards what the client sends until it closes its side too.
    async fn linger(&mut self) {
        self.client.shutdown().await;
        let discard = async {
            while let Ok(1..) = self.client.fill().await {
                self.client.unread.clear();
            }
        };
        let _ = timeout(LINGER_TIMEOUT, discard).await;
    }
}

/// Reads the rest of the body, and then watches the connection. Returns when the client disconnects.
async fn feed<S>(client: &mut ClientStream<S>, feeder: Option<&mut BodyFeeder>) -> io::Error
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(feeder) = feeder {
        if let Err(error) = feeder.run(client).await {
            return error;
        }
        // The handler learns that the body is broken, and answers.
        if !feeder.is_at_end() {
            return pending().await;
        }
    }
    poll_fn(|context| client.poll_disconnect(context)).await
}
