//! Problem documents (RFC 9457), the error responses of the API.

use super::document;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_mcp::serve::http::Body;
use wharf_runtime::{Fault, FaultKind, views};

/// An error response.
#[derive(Debug)]
pub(super) struct Problem(Box<Details>);

#[derive(Debug)]
struct Details {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    hint: Option<String>,
    request_id: Option<String>,
    /// All errors of the request, if there can be several.
    problems: Option<Value>,
    /// Run that keeps a conversation busy.
    run_id: Option<String>,
    retry_after: Option<Duration>,
    allow: Option<String>,
    /// Closes the connection after the response.
    closes: bool,
    /// The call was made but could not be recorded in the journal.
    is_unrecorded: bool,
}

/// Maximum length of client input that a message repeats, in bytes.
const MAX_ECHO_BYTES: usize = 200;

/// Truncates client input for use in a message.
pub(super) fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_ECHO_BYTES)]
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let (kind, detail) = ("about:blank", detail.into());
        let (hint, request_id, problems, run_id, retry_after, allow) = (None, None, None, None, None, None);
        let (closes, is_unrecorded) = (false, false);
        Problem(Box::new(Details {
            status,
            kind,
            detail,
            hint,
            request_id,
            problems,
            run_id,
            retry_after,
            allow,
            closes,
            is_unrecorded,
        }))
    }

    pub(super) fn not_found(what: &str, name: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no {what} '{}'", shorten(name)))
    }

    pub(super) fn unknown_path(path: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no route at `{}`", shorten(path)))
            .hint("/openapi.json lists every route, and /docs shows them")
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(super) fn unauthorized() -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "missing or invalid bearer token")
            .hint("send `Authorization: Bearer TOKEN`; `wharf serve` prints where its token is")
    }

    pub(super) fn method_not_allowed(allow: String) -> Problem {
        let mut problem =
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("method not allowed; use {allow}"));
        problem.0.allow = Some(allow);
        problem
    }

    /// Maps a fault to an HTTP status; nothing else in the API does.
    pub(super) fn of(fault: &Fault, request_id: Option<&str>) -> Problem {
        let status = match fault.kind {
            // A rate limit or a `Retry-After` of the server is passed on to the client.
            FaultKind::Connection if fault.status == Some(429) => StatusCode::TOO_MANY_REQUESTS,
            FaultKind::Connection if fault.status == Some(503) && fault.retry_after.is_some() => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            FaultKind::ToolNotFound
            | FaultKind::Quarantined
            | FaultKind::ResultNotFound
            | FaultKind::NotRecorded => StatusCode::NOT_FOUND,
            FaultKind::Disabled | FaultKind::LockMismatch => StatusCode::FORBIDDEN,
            FaultKind::Arguments => StatusCode::UNPROCESSABLE_ENTITY,
            FaultKind::BreakerOpen
            | FaultKind::ProcessLimitReached
            | FaultKind::NotReady
            | FaultKind::Closing => StatusCode::SERVICE_UNAVAILABLE,
            FaultKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            FaultKind::Connection | FaultKind::Protocol | FaultKind::Abandoned => StatusCode::BAD_GATEWAY,
        };
        let mut problem = Problem::new(status, fault.message());
        problem.0.kind = fault.kind.as_str();
        problem.0.hint.clone_from(&fault.hint);
        problem.0.request_id = request_id.map(str::to_owned);
        problem.0.retry_after = fault.retry_after;
        problem.0.problems = (fault.kind == FaultKind::Arguments).then(|| views::argument_errors(fault));
        problem
    }

    /// Sets the `Retry-After` header.
    pub(super) fn retry_after(mut self, wait: Duration) -> Problem {
        self.0.retry_after = Some(wait);
        self
    }

    /// Closes the connection after the response, because the rest of the request was not read.
    pub(super) fn closing(mut self) -> Problem {
        self.0.closes = true;
        self
    }

    /// Marks the call as missing from the journal.
    pub(super) fn unrecorded(mut self) -> Problem {
        self.0.is_unrecorded = true;
        self
    }

    /// Builds the JSON document.
    pub(super) fn body(&self) -> Value {
        let Details { status, kind, detail, hint, request_id, problems, run_id, is_unrecorded, .. } =
            &*self.0;
        let mut body = json!({
            "type": kind,
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "detail": detail,
            "hint": hint,
            "request_id": request_id,
        });
        if let Some(problems) = problems {
            body["problems"] = problems.clone();
        }
        if let Some(run_id) = run_id {
            body["run_id"] = run_id.as_str().into();
        }
        if *is_unrecorded {
            body["recorded"] = json!(false);
        }
        body
    }

    /// Sets the `type` that programs can match on.
    pub(super) fn kind(mut self, kind: &'static str) -> Problem {
        self.0.kind = kind;
        self
    }

    /// Adds the list of all errors, each an object.
    pub(super) fn problems(mut self, problems: Value) -> Problem {
        self.0.problems = Some(problems);
        self
    }

    /// Names the run that keeps a conversation busy.
    pub(super) fn run_id(mut self, run_id: String) -> Problem {
        self.0.run_id = Some(run_id);
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.0.hint = Some(hint.into());
        self
    }
}

impl From<Problem> for Response<Body> {
    fn from(problem: Problem) -> Response<Body> {
        let body = problem.body();
        let Details { status, retry_after, allow, closes, .. } = *problem.0;
        let mut response = document(status, "application/problem+json", body.to_string());
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"wharf\""));
        }
        if let Some(wait) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs_f64().ceil() as u64));
        }
        if let Some(allow) = allow.and_then(|it| HeaderValue::try_from(it).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        if closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
