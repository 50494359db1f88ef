//! What a link needs to know of credentials: a token for each request, and somebody to tell when it was refused.

use crate::{
    Failure,
    http::{Answer, no_response},
};
use ::http::{HeaderMap, HeaderValue, StatusCode, header};
use reqwest::RequestBuilder;
use std::{fmt, future::Future, pin::Pin, sync::Arc};
use url::Url;

/// How often one request is sent: with what we have, and again after signing in and after asking for more rights.
const ATTEMPTS: usize = 3;

/// Something an [`Authorizer`] is working on.
pub type Authorizing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Has the credentials for the requests to one server.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// The token to send now, if there is one.
    fn token(&self) -> Authorizing<'_, Option<Bearer>>;

    /// Hears that the server refused a request, and says whether sending it again may help.
    fn refused(&self, refusal: Refusal) -> Authorizing<'_, bool>;
}

/// The value of an `Authorization` header. Its text is never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer(HeaderValue);

/// A request that the server refused for want of credentials.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// 401, or 403.
    pub status: u16,
    /// The `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// What the request was sent with.
    pub sent: Option<Bearer>,
}

impl Bearer {
    /// The header for a token; `None` if a header cannot carry it.
    pub fn new(token: &str) -> Option<Bearer> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Bearer(value))
    }
}

impl Refusal {
    fn of(response: &Answer, sent: Option<Bearer>) -> Option<Refusal> {
        let status = response.status();
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN).then(|| Refusal {
            status: status.as_u16(),
            challenge: challenge(response.headers()),
            sent,
        })
    }
}

/// The challenge in a response's headers: that for bearer tokens, if it is among several.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::WWW_AUTHENTICATE);
    let mut all = all.iter().filter_map(|value| value.to_str().ok());
    let first = all.next()?;
    let bearer = std::iter::once(first).chain(all).find(|challenge| is_bearer(challenge));
    Some(bearer.unwrap_or(first).to_owned())
}

/// Whether a challenge asks for a bearer token.
pub(super) fn is_bearer(challenge: &str) -> bool {
    challenge.split([' ', ',']).any(|word| word.eq_ignore_ascii_case("bearer"))
}

/// Sends a request, given by its headers, with the credentials there are, and again as long as they can be bettered.
pub(crate) async fn authorized<F>(
    authorizer: Option<&Arc<dyn Authorizer>>,
    headers: HeaderMap,
    send: impl Fn(HeaderMap) -> F,
) -> Result<Answer, Failure>
where
    F: Future<Output = Result<Answer, Failure>>,
{
    let Some(authorizer) = authorizer else { return send(headers).await };
    let mut left = ATTEMPTS;
    loop {
        let token = authorizer.token().await?;
        let mut shown = headers.clone();
        if let Some(Bearer(value)) = token.clone() {
            shown.insert(header::AUTHORIZATION, value);
        }
        let response = send(shown).await?;
        left -= 1;
        let Some(refusal) = Refusal::of(&response, token).filter(|_| left > 0) else { return Ok(response) };
        let (status, challenge) = (refusal.status, refusal.challenge.clone());
        let again = authorizer.refused(refusal).await;
        if !again.map_err(|failure| failure.with_status(status).with_challenge(challenge))? {
            return Ok(response);
        }
    }
}

/// The same for a request without a body of its own, or with one that can be sent again.
pub(crate) async fn send(
    authorizer: Option<&Arc<dyn Authorizer>>,
    url: &Url,
    request: RequestBuilder,
) -> Result<Answer, Failure> {
    authorized(authorizer, HeaderMap::new(), |headers| {
        let request = request.try_clone();
        async {
            let request = request.ok_or_else(|| Failure::protocol("the request cannot be sent again"))?;
            let sent = request.headers(headers).send().await;
            sent.map(Answer::from).map_err(|error| no_response(url, &error))
        }
    })
    .await
}
