//! Sends requests with the credentials of an [`Authorizer`].

use super::{Answer, no_response};
use crate::{
    Failure,
    oauth::{AccessToken, Authorizer, RejectedRequest},
};
use ::http::{HeaderMap, StatusCode};
use reqwest::RequestBuilder;
use std::{future::Future, sync::Arc};
use url::Url;

/// Maximum number of attempts per request: with the current token, after signing in, and after requesting more
/// scopes.
const MAX_ATTEMPTS: usize = 3;

/// Maximum number of attempts per request that only repeat it with a newer nonce.
const MAX_NONCE_RETRIES: usize = 2;

/// Sends a request with the current token, and again while the authorizer can get a better one.
pub(super) async fn send_authorized<F>(
    authorizer: Option<&Arc<dyn Authorizer>>,
    send: impl Fn(Option<AccessToken>) -> F,
) -> Result<Answer, Failure>
where
    F: Future<Output = Result<Answer, Failure>>,
{
    let Some(authorizer) = authorizer else { return send(None).await };
    let (mut attempts_left, mut nonce_retries_left) = (MAX_ATTEMPTS, MAX_NONCE_RETRIES);
    let mut token = authorizer.token().await?;
    loop {
        let response = send(token.clone()).await?;
        let retry = token.as_ref().and_then(|it| it.read_nonce(response.status(), response.headers()));
        if let Some(retry) = retry.filter(|_| nonce_retries_left > 0) {
            nonce_retries_left -= 1;
            token = Some(retry);
            continue;
        }
        attempts_left -= 1;
        // Before the headers are looked at, because a call that succeeds needs none of them.
        if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok(response);
        }
        let rejected = RejectedRequest::of(response.status(), response.headers(), token);
        let Some(rejected) = rejected.filter(|_| attempts_left > 0) else { return Ok(response) };
        let (status, challenge) = (rejected.status, rejected.challenge.clone());
        let may_succeed = authorizer.on_rejected(rejected).await;
        if !may_succeed.map_err(|failure| failure.with_status(status).with_challenge(challenge))? {
            return Ok(response);
        }
        token = authorizer.token().await?;
    }
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
            let (client, request) = request.build_split();
            let mut request = request.map_err(|error| no_response(url, &error))?;
            if let Some(token) = token {
                let mut headers = HeaderMap::new();
                token.authorize(&mut headers, request.method(), request.url())?;
                request.headers_mut().extend(headers);
            }
            let sent = client.execute(request).await;
            sent.map(Answer::from).map_err(|error| no_response(url, &error))
        }
    })
    .await
}
