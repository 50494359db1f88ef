//! Keep-alive pool for one plain HTTP URL.
//!
//! Local servers are called often and answer fast. For them, the redirects, compression and TLS support of the
//! general client are most of the cost of a call. This pool supports none of these: it leaves HTTPS and redirects
//! within the origin to the general client.

use super::{
    client::{HttpClient, root_cause},
    is_not_http,
};
use crate::{Class, EgressPolicy, Failure, Phase, Sent};
use ::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{self, Instant},
};
use url::{Host, Url};

/// Maximum number of pooled connections.
const MAX_POOLED: usize = 64;

/// Maximum idle time of a pooled connection.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Pooled connections to one URL.
#[derive(Debug)]
pub(super) struct PlainHttpPool {
    url: Url,
    path: Uri,
    host: HeaderValue,
    connect_timeout: Duration,
    egress: Option<EgressPolicy>,
    /// Pooled connections, most recently used last.
    idle: Mutex<VecDeque<PooledConnection>>,
    /// Tasks that drive the connections. Each ends with its connection.
    drivers: Mutex<JoinSet<()>>,
}

/// Outcome of a POST.
pub(super) enum Posted {
    Answered(::http::Response<Incoming>),
    /// The server redirects to this URL of the same origin.
    Redirected(Url),
}

/// A pooled connection and the time it was last used.
#[derive(Debug)]
struct PooledConnection {
    send: SendRequest<Full<Bytes>>,
    since: Instant,
}

impl PlainHttpPool {
    /// Creates a pool for this URL, or `None` if it is not plain HTTP or contains credentials.
    pub(super) fn for_url(url: &Url, client: &HttpClient) -> Option<PlainHttpPool> {
        if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let path = url[url::Position::BeforePath..url::Position::AfterQuery].parse().ok()?;
        let host = url[url::Position::BeforeHost..url::Position::AfterPort].parse().ok()?;
        let (idle, drivers) = (Mutex::default(), Mutex::default());
        let HttpClient { connect_timeout, egress, .. } = *client;
        Some(PlainHttpPool { url: url.clone(), path, host, connect_timeout, egress, idle, drivers })
    }

    /// Posts a body to the URL.
    pub(super) async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<Posted, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::HOST, self.host.clone());
        let response = self.send(request).await?;
        if response.status().is_redirection() {
            return self.redirect_target(&response).map(Posted::Redirected);
        }
        let encoding = response.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|it| it != "identity") {
            return Err(Failure::protocol("the server sent a `Content-Encoding` that was not requested"));
        }
        Ok(Posted::Answered(response))
    }

    /// Returns the target of a redirect, or fails if it must not be followed.
    fn redirect_target<B>(&self, response: &::http::Response<B>) -> Result<Url, Failure> {
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

    /// Sends a request on a pooled connection, or on a new one if there is none.
    ///
    /// A pooled connection that has closed returns the request unsent, so it is safe to try the next.
    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<::http::Response<Incoming>, Failure> {
        while let Some(mut send) = self.take_idle() {
            match send.try_send_request(request).await {
                Ok(response) => return Ok(self.put_idle(send, response)),
                Err(mut unsent) => match unsent.take_message() {
                    Some(again) => request = again,
                    None => return Err(self.to_failure(&unsent.into_error())),
                },
            }
        }
        let mut send = self.dial().await?;
        match send.send_request(request).await {
            Ok(response) => Ok(self.put_idle(send, response)),
            Err(error) => Err(self.to_failure(&error)),
        }
    }

    /// Takes the most recently used idle connection and drops expired ones. Surplus connections stay unused and
    /// expire.
    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle();
        let now = Instant::now();
        while idle.front().is_some_and(|it| it.send.is_closed() || now - it.since > MAX_IDLE) {
            idle.pop_front();
        }
        let free = idle.iter().rposition(|it| it.send.is_ready())?;
        idle.remove(free).map(|it| it.send)
    }

    /// Returns a connection to the pool. It becomes ready once its response has been read.
    fn put_idle<T>(&self, send: SendRequest<Full<Bytes>>, response: T) -> T {
        let mut idle = self.idle();
        if idle.len() >= MAX_POOLED {
            idle.retain(|it| !it.send.is_closed());
        }
        if idle.len() < MAX_POOLED {
            idle.push_back(PooledConnection { send, since: Instant::now() });
        }
        response
    }

    async fn dial(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let connected = time::timeout(self.connect_timeout, self.connect()).await;
        let stream = connected.map_err(|_| {
            let what = format!("could not connect to `{}` in time", self.origin());
            Failure::new(Class::Timeout, Phase::Open, Sent::No, what)
        })?;
        let stream = stream
            .map_err(|it| Failure::connect(format!("could not connect to `{}`: {it}", self.origin())))?;
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (send, connection) = opened.map_err(|it| self.to_failure(&it))?;
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        while drivers.try_join_next().is_some() {}
        // The pending request receives the connection's error, so ignore it here.
        drivers.spawn(async { _ = connection.await });
        Ok(send)
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

    fn to_failure(&self, error: &hyper::Error) -> Failure {
        let (origin, cause) = (self.origin(), root_cause(error));
        if is_not_http(error) {
            return Failure::protocol(format!("`{origin}` sent invalid HTTP: {cause}"));
        }
        let what = format!("the connection to `{origin}` broke: {cause}");
        Failure::new(Class::Closed, Phase::Request, Sent::Unknown, what)
    }

    fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<PooledConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
