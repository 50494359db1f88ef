//! `POST /api/v1/tools/{tool_id}/call`.

use super::Answer;
use crate::{
    front::{json_response, problem::Problem},
    journal::Journal,
};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use wharf_mcp::{Raw, model::CallResult};
use wharf_runtime::{Call, CallRecord, Handle, Outcome, project};

/// The longest body.
const LONGEST: usize = 4 << 20;

/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);

/// The longest time that a call may be given.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

pub(super) async fn run(handle: &Handle, journal: &Journal, id: &str, request: Request<Incoming>) -> Answer {
    let body = body(request).await?;
    let call = call(id, &body)?;
    let record = handle.call(call).await;
    journal.keep(&record, "rest").await;
    match &record.outcome {
        Outcome::Failed(fault) => Err(Problem::of(fault, Some(&record.request_id))),
        Outcome::Answered(_) | Outcome::Refused(_) => Ok(json_response(StatusCode::OK, &report(&record))),
    }
}

fn call(id: &str, body: &Raw) -> Result<Call, Problem> {
    let text = |key: &str| match body.member(key).map(|it| it.decode::<String>()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(malformed(format!("`{key}` is no string"))),
    };
    let arguments = body.member("arguments");
    if arguments.as_ref().is_some_and(|it| !it.is_object()) {
        return Err(malformed("`arguments` is no object"));
    }
    let seconds = body.member("timeout").map(|it| it.decode::<f64>());
    let timeout = match seconds {
        None => None,
        Some(seconds) => {
            let seconds = seconds.ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
            let fits = seconds.filter(|it| !it.is_zero() && *it <= LONGEST_TIMEOUT);
            Some(fits.ok_or_else(|| malformed("`timeout` is a number of seconds above 0, at most 86400"))?)
        }
    };
    let (thread_id, request_id) = (text("thread_id")?, text("request_id")?);
    Ok(Call { tool: id.to_owned(), arguments, timeout, thread_id, request_id, ..Call::default() })
}

fn report(record: &CallRecord) -> Value {
    let result = record.result().map(|it| CallResult::read(&it));
    let content = result.as_ref().map_or_else(|| json!([]), |it| project::content_blocks(&it.content));
    let structured = result.and_then(|it| it.structured).map(|it| it.decode_or_default::<Value>());
    let success = matches!(record.outcome, Outcome::Answered(_));
    let tool_id = record.source.as_deref().zip(record.wire_name.as_ref());
    json!({
        "request_id": &*record.request_id,
        "tool_id": tool_id.map(|(source, name)| format!("{source}:{name}")),
        "status": record.status().as_str(),
        "success": success,
        "is_error": !success,
        "content": content,
        "structured_content": structured,
        "error": record.error_text(),
        "execution_time_ms": record.took.as_secs_f64() * 1_000.0,
    })
}

/// The body of a request: one JSON object, in time and not too long.
pub(super) async fn body(request: Request<Incoming>) -> Result<Raw, Problem> {
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json")
        || request.headers().contains_key(header::CONTENT_ENCODING)
    {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body has to be JSON")
            .hint("send `Content-Type: application/json`"));
    }
    let collected = timeout(ARRIVAL, Limited::new(request.into_body(), LONGEST).collect()).await;
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    let body =
        collected.map_err(late)?.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
            true => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 4 MiB"),
            false => malformed("the body was cut off"),
        })?;
    let bytes = body.to_bytes();
    if bytes.is_empty() {
        return Ok(Raw::empty_object());
    }
    let raw = Raw::parse(bytes).map_err(|error| malformed(format!("the body is no JSON: {error}")))?;
    if raw.is_object() { Ok(raw) } else { Err(malformed("the body is no object")) }
}

fn malformed(what: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, what)
}
