//! Keep-alive pool for one plain HTTP URL.
//!
//! Local servers are called often and answer fast. For them, the redirects, compression and TLS support of the
//! general client are most of the cost of a call. This pool supports none of these: it leaves HTTPS and redirects
//! within the origin to the general client.

use super::{
    client::{Client, root_cause},
    is_not_http,
};
use crate::{Class, Failure, Phase, Reach, Sent};
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
const KEPT: usize = 64;

/// Maximum idle time of a pooled connection.
const UNUSED: Duration = Duration::from_secs(30);

/// Pooled connections to one URL.
#[derive(Debug)]
pub(super) struct Lane {
    url: Url,
    path: Uri,
    host: HeaderValue,
    connect_timeout: Duration,
    reach: Option<Reach>,
    /// Pooled connections, most recently used last.
    kept: Mutex<VecDeque<Kept>>,
    /// Tasks that drive the connections. Each ends with its connection.
    driven: Mutex<JoinSet<()>>,
}

/// Outcome of a POST.
pub(super) enum Posted {
    Answered(::http::Response<Incoming>),
    /// The server redirects to this URL of the same origin.
    Elsewhere(Url),
}

/// A pooled connection and the time it was last used.
#[derive(Debug)]
struct Kept {
    send: SendRequest<Full<Bytes>>,
    since: Instant,
}

impl Lane {
    /// Creates a pool for this URL, or `None` if it is not plain HTTP or contains credentials.
    pub(super) fn to(url: &Url, client: &Client) -> Option<Lane> {
        if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let path = url[url::Position::BeforePath..url::Position::AfterQuery].parse().ok()?;
        let host = url[url::Position::BeforeHost..url::Position::AfterPort].parse().ok()?;
        let (kept, driven) = (Mutex::default(), Mutex::default());
        let Client { connect_timeout, reach, .. } = *client;
        Some(Lane { url: url.clone(), path, host, connect_timeout, reach, kept, driven })
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
            return self.elsewhere(&response).map(Posted::Elsewhere);
        }
        let encoding = response.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|it| it != "identity") {
            return Err(Failure::protocol("the server packed its answer in a way that nobody asked for"));
        }
        Ok(Posted::Answered(response))
    }

    /// Returns the target of a redirect, or fails if it must not be followed.
    fn elsewhere<B>(&self, response: &::http::Response<B>) -> Result<Url, Failure> {
        let status = response.status();
        if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
            // Following any other redirect would turn the POST into a GET.
            let what = format!("could not connect to `{}`: it redirects with {status}", self.place());
            return Err(Failure::unreached(what).with_status(status.as_u16()));
        }
        let location = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
        let url = location.and_then(|it| self.url.join(it).ok());
        let url = url.ok_or_else(|| {
            let what = format!("could not connect to `{}`: it redirects to nowhere ({status})", self.place());
            Failure::unreached(what).with_status(status.as_u16())
        })?;
        if url.origin() != self.url.origin() {
            let place = self.place();
            let what = format!("could not connect to `{place}`: it redirects to another origin");
            return Err(Failure::connect(what));
        }
        Ok(url)
    }

    /// Sends a request on a pooled connection, or on a new one if there is none.
    ///
    /// A pooled connection that has closed returns the request unsent, so it is safe to try the next.
    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<::http::Response<Incoming>, Failure> {
        while let Some(mut send) = self.take() {
            match send.try_send_request(request).await {
                Ok(response) => return Ok(self.keep(send, response)),
                Err(mut refused) => match refused.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(self.broke(&refused.into_error())),
                },
            }
        }
        let mut send = self.dial().await?;
        match send.send_request(request).await {
            Ok(response) => Ok(self.keep(send, response)),
            Err(error) => Err(self.broke(&error)),
        }
    }

    /// Takes the most recently used idle connection and drops expired ones. Surplus connections stay unused and
    /// expire.
    fn take(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut kept = self.kept();
        let now = Instant::now();
        while kept.front().is_some_and(|it| it.send.is_closed() || now - it.since > UNUSED) {
            kept.pop_front();
        }
        let free = kept.iter().rposition(|it| it.send.is_ready())?;
        kept.remove(free).map(|it| it.send)
    }

    /// Returns a connection to the pool. It becomes ready once its response has been read.
    fn keep<T>(&self, send: SendRequest<Full<Bytes>>, response: T) -> T {
        let mut kept = self.kept();
        if kept.len() >= KEPT {
            kept.retain(|it| !it.send.is_closed());
        }
        if kept.len() < KEPT {
            kept.push_back(Kept { send, since: Instant::now() });
        }
        response
    }

    async fn dial(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let connected = time::timeout(self.connect_timeout, self.connect()).await;
        let stream = connected.map_err(|_| {
            let what = format!("could not connect to `{}` in time", self.place());
            Failure::new(Class::Timeout, Phase::Open, Sent::No, what)
        })?;
        let stream = stream
            .map_err(|it| Failure::connect(format!("could not connect to `{}`: {it}", self.place())))?;
        let agreed = http1::handshake(TokioIo::new(stream)).await;
        let (send, connection) = agreed.map_err(|it| self.broke(&it))?;
        let mut driven = self.driven.lock().unwrap_or_else(PoisonError::into_inner);
        while driven.try_join_next().is_some() {}
        // The pending request receives the connection's error, so ignore it here.
        driven.spawn(async { _ = connection.await });
        Ok(send)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let port = self.url.port_or_known_default().unwrap_or(80);
        self.reach.map_or(Ok(()), |it| it.check(&self.url))?;
        let stream = match (self.url.host(), self.reach) {
            (Some(Host::Domain(name)), Some(reach)) => {
                TcpStream::connect(&*reach.resolve_within(name, port).await?).await?
            }
            (Some(Host::Domain(name)), None) => TcpStream::connect((name, port)).await?,
            (Some(Host::Ipv4(address)), _) => TcpStream::connect((address, port)).await?,
            (Some(Host::Ipv6(address)), _) => TcpStream::connect((address, port)).await?,
            (None, _) => return Err(io::Error::other("the address has no host")),
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn broke(&self, error: &hyper::Error) -> Failure {
        let (place, cause) = (self.place(), root_cause(error));
        if is_not_http(error) {
            return Failure::protocol(format!("`{place}` does not speak HTTP as it should: {cause}"));
        }
        let what = format!("the connection to `{place}` broke: {cause}");
        Failure::new(Class::Closed, Phase::Request, Sent::Unknown, what)
    }

    fn place(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
