//! Sends the HTTP requests of an OAuth sign-in.
//!
//! The MCP server names the URLs, directly or through metadata. Addresses in our own network are therefore rejected,
//! unless the MCP server itself is there or the configuration allows private networks. Proxies from the environment
//! are ignored.

use super::dpop::{DPOP, DpopKey, NonceCache, USE_DPOP_NONCE};
use crate::{EgressPolicy, Failure, events::is_event_stream};
use ::http::{Method, Request, Response};
use reqwest::{Url, redirect::Policy};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use serde_json::Value;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response body, in bytes.
const BODY_LIMIT: usize = 1 << 20;

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Maximum number of times that a token request is sent: at first, and with the nonce that the server requires.
const MAX_TOKEN_REQUESTS: usize = 2;

/// HTTP clients with and without redirects, limited to allowed addresses.
pub(super) struct Transport {
    with_redirects: reqwest::Client,
    without_redirects: reqwest::Client,
    egress: EgressPolicy,
    /// Set if tokens have to be bound to a key.
    token_proofs: OnceLock<TokenProofs>,
}

/// Signs the requests to a token endpoint.
pub(super) struct TokenProofs {
    /// The token endpoint.
    pub(super) endpoint: Url,
    /// Key that the tokens are bound to.
    pub(super) key: Arc<DpopKey>,
    /// Nonces of the authorization server.
    pub(super) nonces: Arc<NonceCache>,
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
            token_proofs: OnceLock::new(),
        })
    }

    /// Binds tokens to a key from now on. Only the first call has an effect.
    pub(super) fn sign_token_requests(&self, proofs: TokenProofs) {
        let _ = self.token_proofs.set(proofs);
    }

    /// Sends a request. A request to the token endpoint carries a proof if tokens have to be bound to a key.
    pub(super) async fn send(
        &self,
        request: Request<Vec<u8>>,
        follow_redirects: bool,
    ) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let client = if follow_redirects { &self.with_redirects } else { &self.without_redirects };
        let proofs = self.token_proofs.get().filter(|proofs| {
            request.method() == Method::POST
                && request.uri().to_string().parse() == Ok(proofs.endpoint.clone())
        });
        let Some(TokenProofs { endpoint, key, nonces }) = proofs else {
            return self.send_once(client, request).await;
        };
        let mut requests_left = MAX_TOKEN_REQUESTS;
        loop {
            let mut signed = request.clone();
            let proof = key.proof(&Method::POST, endpoint, None, nonces.current().as_deref())?;
            signed.headers_mut().insert(DPOP, proof);
            let response = self.send_once(client, signed).await?;
            requests_left -= 1;
            let has_nonce = nonces.read(response.headers()).is_some();
            if !has_nonce || requests_left == 0 || !requires_nonce(&response) {
                return Ok(response);
            }
        }
    }

    async fn send_once(
        &self,
        client: &reqwest::Client,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request)?;
        self.egress.check(request.url())?;
        let mut response = client.execute(request).await?;
        let mut answer = Response::builder().status(response.status());
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
    }
}

/// Checks whether a token endpoint rejected a request because of its nonce.
fn requires_nonce(response: &Response<Vec<u8>>) -> bool {
    let error: Option<Value> = serde_json::from_slice(response.body()).ok();
    response.status().is_client_error() && error.is_some_and(|error| error["error"] == USE_DPOP_NONCE)
}

fn client(redirect: Policy, egress: EgressPolicy) -> Result<reqwest::Client, Failure> {
    let client = reqwest::Client::builder().redirect(redirect).timeout(REQUEST_TIMEOUT).no_proxy();
    let client = client.dns_resolver(Arc::new(egress)).build();
    client.map_err(|error| Failure::connect(format!("could not set up HTTP: {error}")))
}

impl OAuthHttpClient for Transport {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let follow_redirects = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        Box::pin(self.send(request.request, follow_redirects))
    }
}
