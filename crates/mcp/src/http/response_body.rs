//! Reads the whole body of a response, and turns an error status into a failure.

use super::{Answer, BodyError, headers, is_not_http};
use crate::{
    Class, Failure, Message, Phase, Sent,
    envelope::{self, ParsedFrame},
    oauth,
};
use ::http::{StatusCode, header::CONTENT_LENGTH};
use bytes::{Bytes, BytesMut};

/// Maximum number of bytes read from the body of an error response.
const MAX_ERROR_BODY: usize = 64 << 10;

/// Builds the failure for an error status. Uses the JSON-RPC error of the body, except for 401, 403 and 429.
pub(crate) async fn status_failure(response: Answer) -> Failure {
    let status = response.status();
    let code = status.as_u16();
    let challenge = oauth::challenge(response.headers());
    let wait = headers::retry_after(status, response.headers());
    let body = read_body(response, MAX_ERROR_BODY).await.unwrap_or_default();
    let failure = match (status, envelope::read(&body)) {
        (StatusCode::UNAUTHORIZED, _) => Failure::connect("the server requires authentication (401)"),
        (StatusCode::TOO_MANY_REQUESTS, _) => Failure::connect("the server is rate limiting requests (429)"),
        (StatusCode::FORBIDDEN, _) => Failure::connect("the server denied access (403)"),
        (_, ParsedFrame::Message(Message::Answer { outcome: Err(error), .. })) => Failure::rpc(error),
        (status, _) if status.is_server_error() => Failure::new(
            Class::Closed,
            Phase::Request,
            Sent::Unknown,
            format!("the server answered {status}"),
        ),
        (StatusCode::NOT_FOUND | StatusCode::GONE, _) => {
            Failure::unreached(format!("the server answered {status}"))
        }
        (status, _) if status.is_redirection() => Failure::unreached(format!("it redirects with {status}")),
        (status, _) => Failure::protocol(format!("the server answered {status}")),
    };
    failure.with_status(code).with_challenge(challenge).with_retry_after(wait)
}

/// Reads the whole body, or fails if it exceeds `limit` bytes.
pub(super) async fn read_body(mut response: Answer, limit: usize) -> Result<Bytes, Failure> {
    let body_failure = |error: BodyError| {
        if is_not_http(&*error) {
            return Failure::protocol("the body of the response is invalid HTTP");
        }
        let what = "the connection broke in the middle of the response";
        Failure::new(Class::Closed, Phase::Request, Sent::Unknown, what)
    };
    if let Some(body) = response.whole(limit).await.map_err(body_failure)? {
        return Ok(body);
    }
    let declared = response.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    let (mut all, mut body) = (None, BytesMut::new());
    while let Some(chunk) = response.chunk().await.map_err(body_failure)? {
        if body.len() + chunk.len() > limit {
            return Err(too_long());
        }
        if declared == Some(chunk.len()) {
            // Most bodies arrive in one chunk, which needs no copy.
            all = Some(chunk);
            continue;
        }
        if body.is_empty() {
            body.reserve(declared.unwrap_or_default().min(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(all.unwrap_or_else(|| body.freeze()))
}

/// Builds the failure for a message above the limit.
pub(super) fn too_long() -> Failure {
    Failure::protocol("a message is longer than the limit")
}
