//! The interface between a link and its credentials: [`Authorizer`] supplies tokens and learns of rejected requests.

use super::dpop::{self, DPOP, DpopKey, NonceCache, USE_DPOP_NONCE};
use crate::Failure;
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::{fmt, future::Future, pin::Pin, sync::Arc};
use url::Url;

/// A pending result of an [`Authorizer`].
pub type AuthorizerFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Supplies credentials for the requests to one server.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Returns the token to send now, if there is one.
    fn token(&self) -> AuthorizerFuture<'_, Option<AccessToken>>;

    /// Handles a rejected request. Returns whether sending it again may succeed.
    fn on_rejected(&self, rejected: RejectedRequest) -> AuthorizerFuture<'_, bool>;
}

/// A token to send with a request: a bearer token, or one that is bound to a key. `Debug` does not print it.
#[derive(Clone, Debug)]
pub struct AccessToken {
    authorization: HeaderValue,
    binding: Option<Box<Binding>>,
}

/// The key that a token is bound to, and the nonce for the next proof.
#[derive(Clone, Debug)]
struct Binding {
    key: Arc<DpopKey>,
    token_hash: String,
    nonces: Arc<NonceCache>,
    nonce: Option<String>,
}

/// A request that the server rejected for its credentials.
#[derive(Clone, Debug)]
pub struct RejectedRequest {
    /// HTTP status, 401 or 403.
    pub status: u16,
    /// The `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// Token of the rejected request.
    pub sent: Option<AccessToken>,
}

impl AccessToken {
    /// Creates a bearer token. Returns `None` if the token is not valid in a header.
    pub fn bearer(token: &str) -> Option<AccessToken> {
        AccessToken::new("Bearer", token, None)
    }

    /// Creates a token that is bound to a key. Returns `None` if the token is not valid in a header.
    pub(super) fn bound(token: &str, key: Arc<DpopKey>, nonces: Arc<NonceCache>) -> Option<AccessToken> {
        let binding = Binding { key, token_hash: dpop::hash(token), nonces, nonce: None };
        AccessToken::new("DPoP", token, Some(Box::new(binding)))
    }

    fn new(scheme: &str, token: &str, binding: Option<Box<Binding>>) -> Option<AccessToken> {
        let mut authorization = HeaderValue::try_from(format!("{scheme} {token}")).ok()?;
        authorization.set_sensitive(true);
        Some(AccessToken { authorization, binding })
    }

    /// Returns the token with the server's most recent nonce.
    pub(super) fn with_current_nonce(mut self) -> AccessToken {
        if let Some(binding) = &mut self.binding {
            binding.nonce = binding.nonces.current();
        }
        self
    }

    /// Sets the headers that authorize one request: the token and, if it is bound to a key, a new proof.
    pub(crate) fn authorize(
        &self,
        headers: &mut HeaderMap,
        method: &Method,
        url: &Url,
    ) -> Result<(), Failure> {
        headers.insert(header::AUTHORIZATION, self.authorization.clone());
        if let Some(Binding { key, token_hash, nonce, .. }) = self.binding.as_deref() {
            headers.insert(DPOP, key.proof(method, url, Some(token_hash), nonce.as_deref())?);
        }
        Ok(())
    }

    /// Stores the nonce of a response. Returns the token to send again if the server rejected only the nonce.
    pub(crate) fn read_nonce(&self, status: StatusCode, headers: &HeaderMap) -> Option<AccessToken> {
        let binding = self.binding.as_deref()?;
        let nonce = binding.nonces.read(headers)?;
        let requires_nonce = status == StatusCode::UNAUTHORIZED
            && challenges(headers).any(|challenge| challenge.contains(USE_DPOP_NONCE));
        // A retry uses the nonce of its own response: requests in flight may have got others.
        requires_nonce.then(|| AccessToken {
            binding: Some(Box::new(Binding { nonce: Some(nonce), ..binding.clone() })),
            ..self.clone()
        })
    }
}

/// Compares the tokens, but not the nonces.
impl PartialEq for AccessToken {
    fn eq(&self, other: &AccessToken) -> bool {
        self.authorization == other.authorization
    }
}

impl RejectedRequest {
    /// Returns the rejected request, if the response rejects its credentials.
    pub(crate) fn of(
        status: StatusCode,
        headers: &HeaderMap,
        sent: Option<AccessToken>,
    ) -> Option<RejectedRequest> {
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN).then(|| {
            let is_bound = sent.as_ref().is_some_and(|token| token.binding.is_some());
            let bound = challenges(headers).find(|challenge| is_bound && asks_for_dpop(challenge));
            let challenge = bound.map(str::to_owned).or_else(|| challenge(headers));
            RejectedRequest { status: status.as_u16(), challenge, sent }
        })
    }
}

/// Returns the `WWW-Authenticate` challenge of a response, preferring one for bearer tokens.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<String> {
    let first = challenges(headers).next()?;
    let find = |wanted: fn(&str) -> bool| challenges(headers).find(|challenge| wanted(challenge));
    Some(find(asks_for_bearer).or_else(|| find(asks_for_dpop)).unwrap_or(first).to_owned())
}

fn challenges(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok())
}

/// Checks whether a challenge asks for a bearer token.
pub(super) fn asks_for_bearer(challenge: &str) -> bool {
    has_scheme(challenge, "bearer")
}

/// Checks whether a challenge asks for a token that is bound to a key.
pub(super) fn asks_for_dpop(challenge: &str) -> bool {
    has_scheme(challenge, "dpop")
}

fn has_scheme(challenge: &str, scheme: &str) -> bool {
    challenge.split([' ', ',']).any(|word| word.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (header::WWW_AUTHENTICATE, value.parse().unwrap())).collect()
    }

    #[test]
    fn a_bearer_token_has_one_header_and_no_proof() {
        let mut sent = HeaderMap::new();
        let token = AccessToken::bearer("t").unwrap();
        token.authorize(&mut sent, &Method::GET, &"http://x/".parse().unwrap()).unwrap();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[header::AUTHORIZATION], "Bearer t");
        assert!(!format!("{token:?}").contains("Bearer t"), "{token:?}");
    }

    #[test]
    fn the_challenge_for_the_kind_of_token_is_preferred() {
        let both = headers(&["Basic realm=x", "DPoP algs=ES256", "Bearer scope=x"]);
        assert_eq!(challenge(&both).as_deref(), Some("Bearer scope=x"));
        assert_eq!(challenge(&headers(&["Basic", "DPoP algs=ES256"])).as_deref(), Some("DPoP algs=ES256"));
        assert_eq!(challenge(&headers(&["Basic"])).as_deref(), Some("Basic"));
        let key = Arc::new(DpopKey::generate().unwrap());
        let bound = AccessToken::bound("t", key, Arc::default());
        let rejected = RejectedRequest::of(StatusCode::UNAUTHORIZED, &both, bound).unwrap();
        assert_eq!(rejected.challenge.as_deref(), Some("DPoP algs=ES256"));
    }

    #[test]
    fn only_a_rejected_nonce_is_tried_again() {
        let key = Arc::new(DpopKey::generate().unwrap());
        let bound = AccessToken::bound("t", key, Arc::default()).unwrap();
        let answer = |challenge: &str, nonce: &str| {
            let mut headers = headers(&[challenge]);
            headers.insert("dpop-nonce", nonce.parse().unwrap());
            headers
        };
        let rejected = answer(r#"DPoP error="use_dpop_nonce""#, "n1");
        let retry = bound.read_nonce(StatusCode::UNAUTHORIZED, &rejected).unwrap();
        assert_eq!(retry.binding.unwrap().nonce.as_deref(), Some("n1"));
        assert!(bound.read_nonce(StatusCode::OK, &answer("DPoP", "n2")).is_none());
        assert_eq!(bound.clone().with_current_nonce().binding.unwrap().nonce.as_deref(), Some("n2"));
        let expired = answer(r#"DPoP error="invalid_token""#, "n3");
        assert!(bound.read_nonce(StatusCode::UNAUTHORIZED, &expired).is_none());
        let bearer = AccessToken::bearer("t").unwrap();
        assert!(bearer.read_nonce(StatusCode::UNAUTHORIZED, &rejected).is_none());
    }
}
