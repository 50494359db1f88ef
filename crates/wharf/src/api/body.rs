//! Reads the body of a request within limits of size and time, and parses it as one unambiguous JSON object.

mod unambiguous;

use super::problem::Problem;
use crate::http_server::RequestBody;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};
use wharf_mcp::{Raw, serve::http::is_json};

/// Maximum size of a body, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 4 << 20;

/// Maximum size of the body of a chat request that may contain images, in bytes: 8 images of 5 MiB in base64, and text.
const MAX_CHAT_BODY_BYTES: usize = 64 << 20;

/// Bodies over [`MAX_BODY_BYTES`] that are read at the same time. Further ones wait, so that they cannot fill the memory.
static LARGE_BODIES: Semaphore = Semaphore::const_new(4);

/// Timeout between two parts of a body, for the whole body, and for one over [`MAX_BODY_BYTES`].
const BODY_PAUSE_TIMEOUT: Duration = Duration::from_secs(8);
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const LARGE_BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// How long to keep reading a body that is too large before sending the response.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(3);

/// Reads one JSON object. An empty body counts as an empty object.
pub(super) async fn read_object(request: Request<RequestBody>) -> Result<Raw, Problem> {
    parse_object(collect(request.into_body(), MAX_BODY_BYTES).await?.bytes)
}

/// A chat request that may contain images. It counts as a large body until it is dropped.
pub(super) struct ChatBody {
    pub(super) raw: Raw,
    _permit: Option<SemaphorePermit<'static>>,
}

/// Reads the JSON object of a chat request that may contain images.
pub(super) async fn read_chat_object(request: Request<RequestBody>) -> Result<ChatBody, Problem> {
    let CollectedBody { bytes, permit } = collect(request.into_body(), MAX_CHAT_BODY_BYTES).await?;
    Ok(ChatBody { raw: parse_object(bytes)?, _permit: permit })
}

fn parse_object(bytes: Bytes) -> Result<Raw, Problem> {
    if bytes.is_empty() {
        return Ok(Raw::empty_object());
    }
    let no_json = |why: String| malformed(format!("the body cannot be read as JSON: {why}"));
    let raw = Raw::parse(bytes).map_err(|error| no_json(error.to_string()))?;
    if !raw.is_object() {
        return Err(malformed("the body is not a JSON object"));
    }
    unambiguous::check(&raw).map_err(|why| no_json(why.to_owned()))?;
    Ok(raw)
}

/// Reads the whole body.
pub(super) async fn read_all(body: RequestBody) -> Result<Bytes, Problem> {
    if body.is_end_stream() { Ok(Bytes::new()) } else { Ok(collect(body, MAX_BODY_BYTES).await?.bytes) }
}

/// Rejects a request without a JSON `Content-Type`, before its body is read.
pub(super) fn check_is_json(headers: &HeaderMap) -> Result<(), Problem> {
    if is_json(headers) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body has to be JSON")
        .hint("send `Content-Type: application/json`, and no `Content-Encoding`"))
}

/// A whole body, and the right to keep one that is large.
struct CollectedBody {
    bytes: Bytes,
    permit: Option<SemaphorePermit<'static>>,
}

async fn collect(mut body: RequestBody, max_bytes: usize) -> Result<CollectedBody, Problem> {
    if body.size_hint().exact().is_some_and(|it| it <= max_bytes.min(MAX_BODY_BYTES) as u64)
        && let Some(bytes) = body.take_whole()
    {
        return Ok(CollectedBody { bytes, permit: None });
    }
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").closing();
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(Box::pin(body_too_large(body, max_bytes)).await);
    }
    let begin = Instant::now();
    let mut last = begin + BODY_TIMEOUT;
    let (mut whole, mut permit) = (BytesMut::new(), None);
    loop {
        let frame =
            timeout_at(last.min(Instant::now() + BODY_PAUSE_TIMEOUT), body.frame()).await.map_err(late)?;
        let Some(frame) = frame else { return Ok(CollectedBody { bytes: whole.freeze(), permit }) };
        let frame = frame.map_err(|_| malformed("the body was cut off").closing())?;
        let Ok(data) = frame.into_data() else { continue };
        let length = whole.len() + data.len();
        if length > max_bytes {
            return Err(Box::pin(body_too_large(body, max_bytes)).await);
        }
        if length > MAX_BODY_BYTES && permit.is_none() {
            last = begin + LARGE_BODY_TIMEOUT;
            permit = timeout_at(last, LARGE_BODIES.acquire()).await.map_err(late)?.ok();
        }
        if whole.is_empty() && body.is_end_stream() {
            return Ok(CollectedBody { bytes: data, permit });
        }
        whole.extend_from_slice(&data);
    }
}

/// Discards the rest of the body for a while, because a client that is still sending would not read the response.
async fn body_too_large(mut body: RequestBody, max_bytes: usize) -> Problem {
    let last = Instant::now() + DISCARD_TIMEOUT;
    let mut discarded = 0;
    while let Ok(Some(Ok(frame))) = timeout_at(last, body.frame()).await {
        discarded += frame.data_ref().map_or(0, Bytes::len);
        if discarded > max_bytes.max(4 * MAX_BODY_BYTES) {
            break;
        }
    }
    let limit = max_bytes >> 20;
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {limit} MiB")).closing()
}

/// Rejects unknown keys, because they are most likely typing errors.
pub(super) fn reject_unknown_keys(body: &Raw, keys: &[&str]) -> Result<(), Problem> {
    let members = body.members();
    let Some((unknown, _)) = members.0.iter().find(|(key, _)| !keys.contains(&&**key)) else { return Ok(()) };
    let unknown = super::problem::shorten(unknown);
    Err(malformed(format!("unknown key `{unknown}`")).hint(format!("the keys are {}", keys.join(", "))))
}

/// Reads a string member with at most `longest` characters and no control characters.
pub(super) fn read_text(body: &Raw, key: &str, longest: usize) -> Result<Option<String>, Problem> {
    let Some(raw) = body.member(key) else { return Ok(None) };
    let fits = |it: &String| it.chars().count() <= longest && !it.chars().any(char::is_control);
    let text = raw.decode::<String>().ok().filter(fits);
    let wrong = || malformed(format!("`{key}` has to be a string of at most {longest} printable characters"));
    text.map(Some).ok_or_else(wrong)
}

pub(super) fn malformed(what: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, what)
}
