//! Reads the body of a request within limits of size and time, and parses it as one unambiguous JSON object.

mod unambiguous;

use super::problem::Problem;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use wharf_mcp::{Raw, serve::http::is_json};

/// Maximum size of a body, in bytes.
const LONGEST: usize = 4 << 20;

/// Timeout between two parts of a body, and for the whole body.
const SILENCE: Duration = Duration::from_secs(8);
const ARRIVAL: Duration = Duration::from_secs(30);

/// How long to keep reading a body that is too large before sending the response.
const POLITENESS: Duration = Duration::from_secs(3);

/// Reads one JSON object. An empty body counts as an empty object.
pub(super) async fn object(request: Request<Incoming>) -> Result<Raw, Problem> {
    let bytes = collect(request.into_body()).await?;
    if bytes.is_empty() {
        return Ok(Raw::empty_object());
    }
    let no_json = |why: String| malformed(format!("the body cannot be read as JSON: {why}"));
    let raw = Raw::parse(bytes).map_err(|error| no_json(error.to_string()))?;
    if !raw.is_object() {
        return Err(malformed("the body is no object"));
    }
    unambiguous::check(&raw).map_err(|why| no_json(why.to_owned()))?;
    Ok(raw)
}

/// Reads the whole body.
pub(super) async fn whole(body: Incoming) -> Result<Bytes, Problem> {
    if body.is_end_stream() { Ok(Bytes::new()) } else { collect(body).await }
}

/// Rejects a request without a JSON `Content-Type`, before its body is read.
pub(super) fn check_is_json(headers: &HeaderMap) -> Result<(), Problem> {
    if is_json(headers) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body has to be JSON")
        .hint("send `Content-Type: application/json`, and no `Content-Encoding`"))
}

async fn collect(mut body: Incoming) -> Result<Bytes, Problem> {
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").closing();
    if body.size_hint().lower() > LONGEST as u64 {
        return Err(Box::pin(too_long(body)).await);
    }
    let last = Instant::now() + ARRIVAL;
    let mut whole = BytesMut::new();
    loop {
        let frame = timeout_at(last.min(Instant::now() + SILENCE), body.frame()).await.map_err(late)?;
        let Some(frame) = frame else { return Ok(whole.freeze()) };
        let frame = frame.map_err(|_| malformed("the body was cut off").closing())?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > LONGEST {
            return Err(Box::pin(too_long(body)).await);
        }
        if whole.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        whole.extend_from_slice(&data);
    }
}

/// Discards the rest of the body for a while, because a client that is still sending would not read the response.
async fn too_long(mut body: Incoming) -> Problem {
    let last = Instant::now() + POLITENESS;
    let mut taken = 0;
    while let Ok(Some(Ok(frame))) = timeout_at(last, body.frame()).await {
        taken += frame.data_ref().map_or(0, Bytes::len);
        if taken > 4 * LONGEST {
            break;
        }
    }
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 4 MiB").closing()
}

/// Rejects unknown keys, because they are most likely typing errors.
pub(super) fn only(body: &Raw, keys: &[&str]) -> Result<(), Problem> {
    let members = body.members();
    let Some((odd, _)) = members.0.iter().find(|(key, _)| !keys.contains(&&**key)) else { return Ok(()) };
    let odd = super::problem::echo(odd);
    Err(malformed(format!("the key `{odd}` means nothing here"))
        .hint(format!("there are {}", keys.join(", "))))
}

/// Reads a string member with at most `longest` characters and no control characters.
pub(super) fn text(body: &Raw, key: &str, longest: usize) -> Result<Option<String>, Problem> {
    let Some(raw) = body.member(key) else { return Ok(None) };
    let fits = |it: &String| it.chars().count() <= longest && !it.chars().any(char::is_control);
    let text = raw.decode::<String>().ok().filter(fits);
    let wrong = || malformed(format!("`{key}` has to be a string of at most {longest} printable characters"));
    text.map(Some).ok_or_else(wrong)
}

pub(super) fn malformed(what: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, what)
}
