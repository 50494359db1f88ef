//! The HTTP requests that signing in takes.
//!
//! Where they go is named by the server and by those it names, so an address inside our own network is refused, unless
//! the server itself is reached there. The environment's proxies are not used.

use crate::{Failure, Reach};
use reqwest::{Url, redirect::Policy};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use std::{sync::Arc, time::Duration};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest answer that is read.
const BODY_LIMIT: usize = 1 << 20;

/// How many redirects are followed.
const REDIRECTS: usize = 5;

pub(super) struct Transport {
    following: reqwest::Client,
    stopping: reqwest::Client,
    reach: Reach,
}

impl Transport {
    /// For signing in to `server`; `private` allows authorization servers in private networks.
    pub(super) fn new(server: &Url, private: bool) -> Result<Transport, Failure> {
        let reach = Reach::of(server, private);
        let follow = Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS {
                attempt.error("it redirects too often")
            } else if !reach.allows(attempt.url()) {
                attempt.error("it redirects to an address inside our network")
            } else {
                attempt.follow()
            }
        });
        Ok(Transport { following: client(follow, reach)?, stopping: client(Policy::none(), reach)?, reach })
    }
}

fn client(redirect: Policy, reach: Reach) -> Result<reqwest::Client, Failure> {
    let client = reqwest::Client::builder().redirect(redirect).timeout(TIMEOUT).no_proxy();
    let client = client.dns_resolver(Arc::new(reach)).build();
    client.map_err(|error| Failure::connect(format!("could not set up HTTP: {error}")))
}

impl OAuthHttpClient for Transport {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let client = match request.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => &self.following,
                _ => &self.stopping,
            };
            let request = reqwest::Request::try_from(request.request)?;
            self.reach.check(request.url())?;
            let mut response = client.execute(request).await?;
            let mut answer = ::http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            let mut body = Vec::new();
            // Asked without credentials, a server may open a stream that never ends, and of no interest here.
            if crate::http::is_stream(response.headers()) {
                return Ok(answer.body(body)?);
            }
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > BODY_LIMIT {
                    return Err("the answer is longer than the limit".into());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(answer.body(body)?)
        })
    }
}
