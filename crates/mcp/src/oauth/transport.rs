//! Sends the HTTP requests of an OAuth sign-in.
//!
//! The MCP server names the URLs, directly or through metadata. Addresses in our own network are therefore rejected,
//! unless the MCP server itself is there or the configuration allows private networks. Proxies from the environment
//! are ignored.

use crate::{EgressPolicy, Failure, events::is_event_stream};
use reqwest::{Url, redirect::Policy};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use std::{sync::Arc, time::Duration};

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response body, in bytes.
const BODY_LIMIT: usize = 1 << 20;

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// HTTP clients with and without redirects, limited to allowed addresses.
pub(super) struct Transport {
    with_redirects: reqwest::Client,
    without_redirects: reqwest::Client,
    egress: EgressPolicy,
}

impl Transport {
    /// Creates a transport for signing in to `server`. `private` allows authorization servers in private networks.
    pub(super) fn new(server: &Url, private: bool) -> Result<Transport, Failure> {
        let egress = EgressPolicy::of(server, private);
        let follow = Policy::custom(move |attempt| {
            if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("it redirects too often")
            } else if !egress.allows(attempt.url()) {
                attempt.error("it redirects to an address in a private network")
            } else {
                attempt.follow()
            }
        });
        Ok(Transport {
            with_redirects: client(follow, egress)?,
            without_redirects: client(Policy::none(), egress)?,
            egress,
        })
    }
}

fn client(redirect: Policy, egress: EgressPolicy) -> Result<reqwest::Client, Failure> {
    let client = reqwest::Client::builder().redirect(redirect).timeout(REQUEST_TIMEOUT).no_proxy();
    let client = client.dns_resolver(Arc::new(egress)).build();
    client.map_err(|error| Failure::connect(format!("could not set up HTTP: {error}")))
}

impl OAuthHttpClient for Transport {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let client = match request.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => &self.with_redirects,
                _ => &self.without_redirects,
            };
            let request = reqwest::Request::try_from(request.request)?;
            self.egress.check(request.url())?;
            let mut response = client.execute(request).await?;
            let mut answer = ::http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            let mut body = Vec::new();
            // An MCP server asked without credentials may open an endless SSE stream, whose body is not needed.
            if is_event_stream(response.headers()) {
                return Ok(answer.body(body)?);
            }
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > BODY_LIMIT {
                    return Err("the response is longer than the limit".into());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(answer.body(body)?)
        })
    }
}
