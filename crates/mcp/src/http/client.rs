//! The pool of HTTP connections.

use crate::{Failure, Reach};
use std::{
    error::Error,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};
use url::Url;

/// How many redirects are followed within one origin.
const REDIRECTS: usize = 5;

/// A pool of connections, cheap to clone and meant to be shared by all endpoints of a process.
#[derive(Clone, Debug)]
pub struct Client {
    plain: reqwest::Client,
    /// Made when somebody needs it: to read what this machine trusts takes longer than everything else at a start.
    secure: Arc<OnceLock<reqwest::Client>>,
    /// How long a connection may take.
    pub(crate) connect_timeout: Duration,
    /// Which addresses may be dialled, where not all may.
    pub(crate) reach: Option<Reach>,
}

impl Client {
    /// A pool whose connections are established within `connect_timeout`. The environment's proxies are not used.
    pub fn new(connect_timeout: Duration) -> Result<Client, Failure> {
        Client::build(connect_timeout, None)
    }

    /// The same, and no connection is made to an address beyond `reach`, whatever name leads there.
    pub fn within(reach: Reach, connect_timeout: Duration) -> Result<Client, Failure> {
        Client::build(connect_timeout, Some(reach))
    }

    /// How long a connection may take.
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Which addresses may be dialled, where not all may.
    pub fn reach(&self) -> Option<Reach> {
        self.reach
    }

    fn build(connect_timeout: Duration, reach: Option<Reach>) -> Result<Client, Failure> {
        // Nothing is trusted over TLS here, because nobody speaks it: redirects stay within their origin.
        let plain = built(pool(connect_timeout, reach).tls_certs_only([]))?;
        Ok(Client { plain, secure: Arc::default(), connect_timeout, reach })
    }

    /// The connections with such an address.
    pub(crate) fn pool(&self, url: &Url) -> Result<&reqwest::Client, Failure> {
        // A name is looked at when it is resolved; what is an address already is not.
        if let Some(Err(error)) = self.reach.map(|it| it.check(url)) {
            let place = url.origin().ascii_serialization();
            return Err(Failure::connect(format!("could not connect to `{place}`: {error}")));
        }
        if url.scheme() == "http" {
            return Ok(&self.plain);
        }
        if let Some(secure) = self.secure.get() {
            return Ok(secure);
        }
        let secure = built(pool(self.connect_timeout, self.reach))?;
        Ok(self.secure.get_or_init(|| secure))
    }
}

fn pool(connect_timeout: Duration, reach: Option<Reach>) -> reqwest::ClientBuilder {
    let same_origin = reqwest::redirect::Policy::custom(|attempt| {
        let start = attempt.previous().first();
        match start {
            Some(start) if start.origin() != attempt.url().origin() => {
                attempt.error("it redirects to another origin")
            }
            _ if attempt.previous().len() > REDIRECTS => attempt.error("it redirects too often"),
            _ => attempt.follow(),
        }
    });
    let builder = reqwest::Client::builder()
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .redirect(same_origin)
        .no_proxy();
    match reach {
        Some(reach) => builder.dns_resolver(Arc::new(reach)),
        None => builder,
    }
}

fn built(pool: reqwest::ClientBuilder) -> Result<reqwest::Client, Failure> {
    pool.build().map_err(|error| Failure::connect(format!("could not set up HTTP: {}", root_cause(&error))))
}

/// What went wrong at the bottom: the layers above it only say that something did.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// A request to `url` that got no response.
pub(crate) fn no_response(url: &Url, error: &reqwest::Error) -> Failure {
    use crate::{Class, Phase, Sent};
    let place = url.origin().ascii_serialization();
    let cause = root_cause(error);
    if error.is_connect() && error.is_timeout() {
        let what = format!("could not connect to `{place}` in time");
        return Failure::new(Class::Timeout, Phase::Open, Sent::No, what);
    }
    if error.is_connect() || error.is_redirect() {
        return Failure::connect(format!("could not connect to `{place}`: {cause}"));
    }
    if is_not_http(error) {
        return Failure::protocol(format!("`{place}` does not speak HTTP as it should: {cause}"));
    }
    let class = if error.is_timeout() { Class::Timeout } else { Class::Closed };
    Failure::new(class, Phase::Request, Sent::Unknown, format!("the connection to `{place}` broke: {cause}"))
}

/// Whether what came back is not HTTP, rather than not there.
pub(crate) fn is_not_http(error: &(dyn Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.into_iter().any(|cause| {
        let parsed = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
        // A chunk without a size; an end that comes too soon is of another kind.
        let framed = cause
            .downcast_ref::<io::Error>()
            .is_some_and(|it| matches!(it.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData));
        // Said before anything was asked, for which the library has no name.
        parsed || framed || cause.to_string() == "received unexpected message from connection"
    })
}
