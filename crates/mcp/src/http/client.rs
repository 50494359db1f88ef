//! Pool of HTTP connections, and the mapping of its errors to [`Failure`].

use crate::{EgressPolicy, Failure};
use std::{
    error::Error,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};
use url::Url;

/// Maximum number of redirects within one origin.
const MAX_REDIRECTS: usize = 5;

/// A pool of connections. Cheap to clone; meant to be shared by all endpoints of a process.
#[derive(Clone, Debug)]
pub struct HttpClient {
    plain: reqwest::Client,
    /// Pool for HTTPS, built on first use: loading the system's root certificates is the slowest step of a start.
    secure: Arc<OnceLock<reqwest::Client>>,
    /// Time limit for establishing a connection.
    pub(crate) connect_timeout: Duration,
    /// Addresses that may be dialled; `None` allows all.
    pub(crate) egress: Option<EgressPolicy>,
}

impl HttpClient {
    /// Creates a pool that may dial any address. It ignores proxies from the environment.
    pub fn new(connect_timeout: Duration) -> Result<HttpClient, Failure> {
        HttpClient::build(connect_timeout, None)
    }

    /// Creates a pool that only dials addresses allowed by `egress`, also after name resolution.
    pub fn with_egress(egress: EgressPolicy, connect_timeout: Duration) -> Result<HttpClient, Failure> {
        HttpClient::build(connect_timeout, Some(egress))
    }

    /// Returns the time limit for establishing a connection.
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Returns the policy for addresses that may be dialled; `None` allows all.
    pub fn egress(&self) -> Option<EgressPolicy> {
        self.egress
    }

    fn build(connect_timeout: Duration, egress: Option<EgressPolicy>) -> Result<HttpClient, Failure> {
        // This pool never uses TLS, because redirects stay within their origin. Skip loading root certificates.
        let plain = build_client(pool(connect_timeout, egress).tls_certs_only([]))?;
        Ok(HttpClient { plain, secure: Arc::default(), connect_timeout, egress })
    }

    /// Returns the pool for the scheme of `url`, or fails if its address may not be dialled.
    pub(crate) fn pool(&self, url: &Url) -> Result<&reqwest::Client, Failure> {
        // The resolver checks host names only, so check IP literals here.
        if let Some(Err(error)) = self.egress.map(|it| it.check(url)) {
            let origin = url.origin().ascii_serialization();
            return Err(Failure::connect(format!("could not connect to `{origin}`: {error}")));
        }
        if url.scheme() == "http" {
            return Ok(&self.plain);
        }
        if let Some(secure) = self.secure.get() {
            return Ok(secure);
        }
        let secure = build_client(pool(self.connect_timeout, self.egress))?;
        Ok(self.secure.get_or_init(|| secure))
    }
}

fn pool(connect_timeout: Duration, egress: Option<EgressPolicy>) -> reqwest::ClientBuilder {
    let same_origin = reqwest::redirect::Policy::custom(|attempt| {
        let start = attempt.previous().first();
        match start {
            Some(start) if start.origin() != attempt.url().origin() => {
                attempt.error("it redirects to another origin")
            }
            _ if attempt.previous().len() > MAX_REDIRECTS => attempt.error("it redirects too often"),
            _ => attempt.follow(),
        }
    });
    let builder = reqwest::Client::builder()
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .redirect(same_origin)
        .no_proxy();
    match egress {
        Some(egress) => builder.dns_resolver(Arc::new(egress)),
        None => builder,
    }
}

fn build_client(pool: reqwest::ClientBuilder) -> Result<reqwest::Client, Failure> {
    pool.build().map_err(|error| Failure::connect(format!("could not set up HTTP: {}", root_cause(&error))))
}

/// Returns the innermost cause of an error. The outer layers only say that something failed.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Builds the failure of a request to `url` that got no response.
pub(crate) fn no_response(url: &Url, error: &reqwest::Error) -> Failure {
    use crate::{Class, Phase, Sent};
    let origin = url.origin().ascii_serialization();
    let cause = root_cause(error);
    if error.is_connect() && error.is_timeout() {
        let what = format!("could not connect to `{origin}` in time");
        return Failure::new(Class::Timeout, Phase::Open, Sent::No, what);
    }
    if error.is_connect() || error.is_redirect() {
        return Failure::connect(format!("could not connect to `{origin}`: {cause}"));
    }
    if is_not_http(error) {
        return Failure::protocol(format!("`{origin}` sent invalid HTTP: {cause}"));
    }
    let class = if error.is_timeout() { Class::Timeout } else { Class::Closed };
    Failure::new(class, Phase::Request, Sent::Unknown, format!("the connection to `{origin}` broke: {cause}"))
}

/// Checks whether an error means that the server sent invalid HTTP, rather than nothing.
pub(crate) fn is_not_http(error: &(dyn Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.into_iter().any(|cause| {
        let invalid_message = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
        // Invalid chunk size. A premature end has another error kind.
        let invalid_frame = cause
            .downcast_ref::<io::Error>()
            .is_some_and(|it| matches!(it.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData));
        // Hyper has no predicate for data that arrives before any request.
        invalid_message || invalid_frame || cause.to_string() == "received unexpected message from connection"
    })
}
