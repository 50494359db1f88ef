//! The pool of HTTP connections.

use crate::Failure;
use std::{error::Error, time::Duration};
use url::Url;

/// How many redirects are followed within one origin.
const REDIRECTS: usize = 5;

/// A pool of connections, cheap to clone and meant to be shared by all endpoints of a process.
#[derive(Clone, Debug)]
pub struct Client(pub(crate) reqwest::Client);

impl Client {
    /// A pool whose connections are established within `connect_timeout`. The environment's proxies are not used.
    pub fn new(connect_timeout: Duration) -> Result<Client, Failure> {
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
        reqwest::Client::builder()
            .connect_timeout(connect_timeout)
            .tcp_nodelay(true)
            .redirect(same_origin)
            .no_proxy()
            .build()
            .map(Client)
            .map_err(|error| Failure::connect(format!("could not set up HTTP: {}", root_cause(&error))))
    }
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
    if error.is_connect() || error.is_redirect() {
        return Failure::connect(format!("could not connect to `{place}`: {cause}"));
    }
    let class = if error.is_timeout() { Class::Timeout } else { Class::Closed };
    Failure::new(class, Phase::Request, Sent::Unknown, format!("the connection to `{place}` broke: {cause}"))
}
