//! Keep-alive pool for one plain HTTP URL.
//!
//! Local servers are called often and answer fast. For them, the redirects, compression and TLS support of the
//! general client are most of the cost of a call. This pool supports none of these: it leaves HTTPS and redirects
//! within the origin to the general client.

use super::{
    client::HttpClient,
    plain_connection::{PlainConnection, SendError},
    plain_head::{EncodedRequest, RequestHead, ResponseHead},
};
use crate::{Class, EgressPolicy, Failure, Outbound, Phase, Sent};
use ::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpStream,
    runtime::Handle,
    task::yield_now,
    time::{self, Instant},
};
use url::{Host, Url};

/// Maximum number of pooled connections.
const MAX_POOLED: usize = 64;

/// Maximum idle time of a pooled connection.
pub(super) const MAX_IDLE: Duration = Duration::from_secs(30);

/// Pooled connections to one URL.
#[derive(Debug)]
pub(super) struct PlainHttpPool {
    url: Url,
    head: RequestHead,
    connect_timeout: Duration,
    egress: Option<EgressPolicy>,
    /// Idle connections, most recently used last.
    idle: Mutex<VecDeque<IdleConnection>>,
    /// Number of requests that wait for their response.
    waiting: AtomicUsize,
}

/// Counts a request that waits for its response, until it is dropped.
struct WaitingGuard<'a>(&'a AtomicUsize);

/// Outcome of a POST.
pub(super) enum Posted {
    Answered(PlainResponse),
    /// The server redirects to this URL of the same origin.
    Redirected(Url),
}

/// A response with the connection on which its body arrives. At the end of the body the connection returns to the pool, or
/// closes if the server wants that. Dropping the response before closes it.
#[derive(Debug)]
pub(crate) struct PlainResponse {
    head: ResponseHead,
    /// The connection on which the body arrives, until its end.
    connection: Option<PlainConnection>,
    pool: Arc<PlainHttpPool>,
}

/// An idle connection and the time it was last used.
#[derive(Debug)]
struct IdleConnection {
    connection: PlainConnection,
    since: Instant,
}

impl PlainHttpPool {
    /// Creates a pool for this URL, or `None` if it is not plain HTTP or contains credentials.
    pub(super) fn for_url(url: &Url, configured: &HeaderMap, client: &HttpClient) -> Option<PlainHttpPool> {
        if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let host: HeaderValue = url[url::Position::BeforeHost..url::Position::AfterPort].parse().ok()?;
        let head = RequestHead::new(path, &host, configured);
        let HttpClient { connect_timeout, egress, .. } = *client;
        Some(PlainHttpPool {
            url: url.clone(),
            head,
            connect_timeout,
            egress,
            idle: Mutex::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Encodes a message to the URL with the configured headers. Returns `None` if that needs a map of headers.
    pub(super) fn encode(
        &self,
        message: &Outbound,
        session: Option<&HeaderValue>,
        body: &Bytes,
    ) -> Option<EncodedRequest> {
        self.head.with_message(message, session, body)
    }

    /// Encodes a body to the URL with these headers.
    pub(super) fn encode_with(&self, headers: &HeaderMap, body: &Bytes) -> EncodedRequest {
        self.head.with_headers(headers, body)
    }

    /// Posts a request to the URL.
    pub(super) async fn post(self: &Arc<Self>, request: &EncodedRequest) -> Result<Posted, Failure> {
        let response = self.send(request).await?;
        if response.status().is_redirection() {
            return self.redirect_target(&response).map(Posted::Redirected);
        }
        if response.head.is_encoded {
            return Err(Failure::protocol("the server sent a `Content-Encoding` that was not requested"));
        }
        Ok(Posted::Answered(response))
    }

    /// Returns the target of a redirect, or fails if it must not be followed.
    fn redirect_target(&self, response: &PlainResponse) -> Result<Url, Failure> {
        let status = response.status();
        if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
            // Following any other redirect would turn the POST into a GET.
            let what = format!("could not connect to `{}`: it redirects with {status}", self.origin());
            return Err(Failure::unreached(what).with_status(status.as_u16()));
        }
        let location = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
        let url = location.and_then(|it| self.url.join(it).ok());
        let url = url.ok_or_else(|| {
            let what = format!(
                "could not connect to `{}`: it redirects without a valid `Location` ({status})",
                self.origin()
            );
            Failure::unreached(what).with_status(status.as_u16())
        })?;
        if url.origin() != self.url.origin() {
            let origin = self.origin();
            let what = format!("could not connect to `{origin}`: it redirects to another origin");
            return Err(Failure::connect(what));
        }
        Ok(url)
    }

    /// Sends a request on an idle connection, or on a new one if there is none.
    ///
    /// An idle connection that the server has closed sends nothing, so it is safe to try the next.
    ///
    /// While other requests are under way, it lets other tasks run first: requests that arrive together then leave
    /// together, and the server wakes up once for several of them.
    async fn send(self: &Arc<Self>, request: &EncodedRequest) -> Result<PlainResponse, Failure> {
        let others = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitingGuard(&self.waiting);
        if others > 0 {
            yield_now().await;
        }
        loop {
            let idle = self.take_idle();
            let is_new = idle.is_none();
            let mut connection = match idle {
                Some(connection) => connection,
                None => self.dial().await?,
            };
            match connection.send(request).await {
                Ok(head) => {
                    let (connection, pool) = (Some(connection), self.clone());
                    let mut response = PlainResponse { head, connection, pool };
                    response.release_if_over();
                    return Ok(response);
                }
                Err(SendError::Unsent(_)) if !is_new => {}
                Err(SendError::Unsent(error) | SendError::Sent(error)) => {
                    return Err(self.to_failure(&error));
                }
            }
        }
    }

    /// Takes the most recently used idle connection of the current runtime, unless it has expired. Surplus connections stay
    /// unused and expire.
    fn take_idle(&self) -> Option<PlainConnection> {
        let runtime = Handle::current().id();
        let mut idle = self.idle();
        let index = idle.iter().rposition(|it| it.connection.is_of(runtime))?;
        let IdleConnection { connection, since } = idle.remove(index)?;
        (since.elapsed() <= MAX_IDLE).then_some(connection)
    }

    /// Returns a connection to the pool if it can be used again.
    fn put_idle(&self, connection: PlainConnection) {
        if !connection.is_idle() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() < MAX_POOLED {
            idle.push_back(IdleConnection { connection, since: Instant::now() });
        }
    }

    /// Drops connections that have been idle for too long.
    pub(super) fn drop_expired(&self) {
        let mut idle = self.idle();
        while idle.front().is_some_and(|it| it.since.elapsed() > MAX_IDLE) {
            idle.pop_front();
        }
    }

    async fn dial(&self) -> Result<PlainConnection, Failure> {
        let connected = time::timeout(self.connect_timeout, self.connect()).await;
        let stream = connected.map_err(|_| {
            let what = format!("could not connect to `{}` in time", self.origin());
            Failure::new(Class::Timeout, Phase::Open, Sent::No, what)
        })?;
        let stream = stream
            .map_err(|it| Failure::connect(format!("could not connect to `{}`: {it}", self.origin())))?;
        Ok(PlainConnection::new(stream))
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let port = self.url.port_or_known_default().unwrap_or(80);
        self.egress.map_or(Ok(()), |it| it.check(&self.url))?;
        let stream = match (self.url.host(), self.egress) {
            (Some(Host::Domain(name)), Some(egress)) => {
                TcpStream::connect(&*egress.resolve_allowed(name, port).await?).await?
            }
            (Some(Host::Domain(name)), None) => TcpStream::connect((name, port)).await?,
            (Some(Host::Ipv4(address)), _) => TcpStream::connect((address, port)).await?,
            (Some(Host::Ipv6(address)), _) => TcpStream::connect((address, port)).await?,
            (None, _) => return Err(io::Error::other("the address has no host")),
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn to_failure(&self, error: &io::Error) -> Failure {
        let origin = self.origin();
        if error.kind() == io::ErrorKind::InvalidData {
            return Failure::protocol(format!("`{origin}` sent invalid HTTP: {error}"));
        }
        let what = format!("the connection to `{origin}` broke: {error}");
        Failure::new(Class::Closed, Phase::Request, Sent::Unknown, what)
    }

    fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<IdleConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlainResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.head.headers()
    }

    pub(crate) fn is_event_stream(&self) -> bool {
        self.head.is_event_stream
    }

    /// Returns the next chunk of the body, or `None` at its end.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let chunk = connection.chunk().await?;
        self.release_if_over();
        Ok(chunk)
    }

    /// Reads a body whose length is known and at most `limit`, in one piece; `None` for any other body.
    pub(crate) async fn whole(&mut self, limit: usize) -> io::Result<Option<Bytes>> {
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let body = connection.rest(limit).await?;
        self.release_if_over();
        Ok(body)
    }

    /// Gives the connection away at the end of the body. The caller may hold the response for long, for example while a
    /// user signs in, and the server may wait for the end of the connection.
    fn release_if_over(&mut self) {
        if let Some(connection) = self.connection.take_if(|it| it.is_over()) {
            self.pool.put_idle(connection);
        }
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
