//! Sends requests with the credentials of an [`Authorizer`].

use super::{Answer, no_response};
use crate::{
    Failure,
    oauth::{Authorizer, Bearer, RejectedRequest},
};
use ::http::{HeaderMap, header::AUTHORIZATION};
use reqwest::RequestBuilder;
use std::{future::Future, sync::Arc};
use url::Url;

/// Maximum number of attempts per request: with the current token, after signing in, and after requesting more
/// scopes.
const MAX_ATTEMPTS: usize = 3;

/// Sends a request with the current token, and again while the authorizer can get a better one.
pub(super) async fn send_authorized<F>(
    authorizer: Option<&Arc<dyn Authorizer>>,
    send: impl Fn(Option<Bearer>) -> F,
) -> Result<Answer, Failure>
where
    F: Future<Output = Result<Answer, Failure>>,
{
    let Some(authorizer) = authorizer else { return send(None).await };
    let mut attempts_left = MAX_ATTEMPTS;
    loop {
        let token = authorizer.token().await?;
        let response = send(token.clone()).await?;
        attempts_left -= 1;
        let rejected = RejectedRequest::of(response.status(), response.headers(), token);
        let Some(rejected) = rejected.filter(|_| attempts_left > 0) else { return Ok(response) };
        let (status, challenge) = (rejected.status, rejected.challenge.clone());
        let may_succeed = authorizer.on_rejected(rejected).await;
        if !may_succeed.map_err(|failure| failure.with_status(status).with_challenge(challenge))? {
            return Ok(response);
        }
    }
}

/// Sets the `Authorization` header.
pub(super) fn insert_token(headers: &mut HeaderMap, token: &Bearer) {
    headers.insert(AUTHORIZATION, token.header_value().clone());
}

/// Sends a `reqwest` request like [`send_authorized`]. Fails if its body cannot be cloned.
pub(crate) async fn send_request(
    authorizer: Option<&Arc<dyn Authorizer>>,
    url: &Url,
    request: RequestBuilder,
) -> Result<Answer, Failure> {
    send_authorized(authorizer, |token| {
        let request = request.try_clone();
        async move {
            let request = request.ok_or_else(|| Failure::protocol("the request cannot be sent again"))?;
            let mut headers = HeaderMap::new();
            token.iter().for_each(|token| insert_token(&mut headers, token));
            let sent = request.headers(headers).send().await;
            sent.map(Answer::from).map_err(|error| no_response(url, &error))
        }
    })
    .await
}
