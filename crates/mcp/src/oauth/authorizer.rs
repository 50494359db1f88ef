//! The interface between a link and its credentials: [`Authorizer`] supplies tokens and learns of rejected requests.

use crate::{
    Failure,
    http::{Answer, no_response},
};
use ::http::{HeaderMap, HeaderValue, StatusCode, header};
use reqwest::RequestBuilder;
use std::{fmt, future::Future, pin::Pin, sync::Arc};
use url::Url;

/// Maximum number of attempts per request: with the current token, after signing in, and after requesting more
/// scopes.
const MAX_ATTEMPTS: usize = 3;

/// A pending result of an [`Authorizer`].
pub type AuthorizerFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Supplies credentials for the requests to one server.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Returns the token to send now, if there is one.
    fn token(&self) -> AuthorizerFuture<'_, Option<Bearer>>;

    /// Handles a rejected request. Returns whether sending it again may succeed.
    fn on_rejected(&self, rejected: RejectedRequest) -> AuthorizerFuture<'_, bool>;
}

/// Value of an `Authorization` header. `Debug` does not print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer(HeaderValue);

/// A request that the server rejected for its credentials.
#[derive(Clone, Debug)]
pub struct RejectedRequest {
    /// HTTP status, 401 or 403.
    pub status: u16,
    /// The `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// Token of the rejected request.
    pub sent: Option<Bearer>,
}

impl Bearer {
    /// Builds the header value for a token. Returns `None` if the token is not valid in a header.
    pub fn new(token: &str) -> Option<Bearer> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Bearer(value))
    }
}

impl RejectedRequest {
    fn of(response: &Answer, sent: Option<Bearer>) -> Option<RejectedRequest> {
        let status = response.status();
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN).then(|| RejectedRequest {
            status: status.as_u16(),
            challenge: challenge(response.headers()),
            sent,
        })
    }
}

/// Returns the `WWW-Authenticate` challenge of a response, preferring one for bearer tokens.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::WWW_AUTHENTICATE);
    let mut all = all.iter().filter_map(|value| value.to_str().ok());
    let first = all.next()?;
    let bearer = std::iter::once(first).chain(all).find(|challenge| is_bearer(challenge));
    Some(bearer.unwrap_or(first).to_owned())
}

/// Checks whether a challenge asks for a bearer token.
pub(super) fn is_bearer(challenge: &str) -> bool {
    challenge.split([' ', ',']).any(|word| word.eq_ignore_ascii_case("bearer"))
}

/// Sends a request with the current token, and again while the authorizer can get a better one.
pub(crate) async fn send_authorized<F>(
    authorizer: Option<&Arc<dyn Authorizer>>,
    headers: HeaderMap,
    send: impl Fn(HeaderMap) -> F,
) -> Result<Answer, Failure>
where
    F: Future<Output = Result<Answer, Failure>>,
{
    let Some(authorizer) = authorizer else { return send(headers).await };
    let mut attempts_left = MAX_ATTEMPTS;
    loop {
        let token = authorizer.token().await?;
        let mut request_headers = headers.clone();
        if let Some(Bearer(value)) = token.clone() {
            request_headers.insert(header::AUTHORIZATION, value);
        }
        let response = send(request_headers).await?;
        attempts_left -= 1;
        let Some(rejected) = RejectedRequest::of(&response, token).filter(|_| attempts_left > 0) else {
            return Ok(response);
        };
        let (status, challenge) = (rejected.status, rejected.challenge.clone());
        let may_succeed = authorizer.on_rejected(rejected).await;
        if !may_succeed.map_err(|failure| failure.with_status(status).with_challenge(challenge))? {
            return Ok(response);
        }
    }
}

/// Sends a `reqwest` request like [`send_authorized`]. Fails if its body cannot be cloned.
pub(crate) async fn send(
    authorizer: Option<&Arc<dyn Authorizer>>,
    url: &Url,
    request: RequestBuilder,
) -> Result<Answer, Failure> {
    send_authorized(authorizer, HeaderMap::new(), |headers| {
        let request = request.try_clone();
        async {
            let request = request.ok_or_else(|| Failure::protocol("the request cannot be sent again"))?;
            let sent = request.headers(headers).send().await;
            sent.map(Answer::from).map_err(|error| no_response(url, &error))
        }
    })
    .await
}
