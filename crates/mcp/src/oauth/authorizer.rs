//! The interface between a link and its credentials: [`Authorizer`] supplies tokens and learns of rejected requests.

use crate::Failure;
use ::http::{HeaderMap, HeaderValue, StatusCode, header};
use std::{fmt, future::Future, pin::Pin};

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

    pub(crate) fn header_value(&self) -> &HeaderValue {
        &self.0
    }
}

impl RejectedRequest {
    /// Returns the rejected request, if the response rejects its credentials.
    pub(crate) fn of(
        status: StatusCode,
        headers: &HeaderMap,
        sent: Option<Bearer>,
    ) -> Option<RejectedRequest> {
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN).then(|| RejectedRequest {
            status: status.as_u16(),
            challenge: challenge(headers),
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
