//! What goes wrong on the way, as a problem document (RFC 9457).

use super::document;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_mcp::serve::http::Body;
use wharf_runtime::{Fault, FaultKind};

/// A request that cannot be answered.
#[derive(Debug)]
pub(super) struct Problem(Box<Details>);

#[derive(Debug)]
struct Details {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    hint: Option<String>,
    request_id: Option<String>,
    /// All that is wrong with what was sent, where that is more than one thing.
    problems: Option<Value>,
    retry_after: Option<Duration>,
    allow: Option<String>,
    /// Nothing more is read from a connection after this.
    closes: bool,
    /// There was a call, and it could not be written down.
    is_lost: bool,
}

/// How much of what somebody sent is repeated to them.
const LONGEST_ECHO: usize = 200;

/// What somebody sent, short enough to be repeated to them.
pub(super) fn echo(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_ECHO)]
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let (kind, detail) = ("about:blank", detail.into());
        let (hint, request_id, problems, retry_after, allow) = (None, None, None, None, None);
        let (closes, is_lost) = (false, false);
        Problem(Box::new(Details {
            status,
            kind,
            detail,
            hint,
            request_id,
            problems,
            retry_after,
            allow,
            closes,
            is_lost,
        }))
    }

    pub(super) fn not_found(what: &str, name: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no {what} '{}'", echo(name)))
    }

    pub(super) fn nothing_at(path: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at `{}`", echo(path)))
            .hint("/openapi.json says what there is, and /docs shows it")
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(super) fn unauthorized() -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "this needs a token")
            .hint("send `Authorization: Bearer TOKEN`; `wharf serve` says where its token is")
    }

    pub(super) fn not_allowed(allow: String) -> Problem {
        let mut problem =
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("only {allow} is possible here"));
        problem.0.allow = Some(allow);
        problem
    }

    /// The one place where a fault becomes a status of HTTP.
    pub(super) fn of(fault: &Fault, request_id: Option<&str>) -> Problem {
        let status = match fault.kind {
            // A server that wants to be left alone is passed on as such.
            FaultKind::Connection if fault.status == Some(429) => StatusCode::TOO_MANY_REQUESTS,
            FaultKind::Connection if fault.status == Some(503) && fault.retry_after.is_some() => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            FaultKind::ToolNotFound | FaultKind::Quarantined => StatusCode::NOT_FOUND,
            FaultKind::Disabled => StatusCode::FORBIDDEN,
            FaultKind::Arguments => StatusCode::UNPROCESSABLE_ENTITY,
            FaultKind::Resting | FaultKind::Crowded | FaultKind::NotReady | FaultKind::Closing => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            FaultKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            FaultKind::Connection | FaultKind::Protocol | FaultKind::Abandoned => StatusCode::BAD_GATEWAY,
        };
        let mut problem = Problem::new(status, fault.message());
        problem.0.kind = fault.kind.as_str();
        problem.0.hint.clone_from(&fault.hint);
        problem.0.request_id = request_id.map(str::to_owned);
        problem.0.retry_after = fault.retry_after;
        problem
    }

    /// One that is worth trying again after this time.
    pub(super) fn retry_after(mut self, wait: Duration) -> Problem {
        self.0.retry_after = Some(wait);
        self
    }

    /// One after which the connection cannot be understood any more.
    pub(super) fn closing(mut self) -> Problem {
        self.0.closes = true;
        self
    }

    /// One of a call that could not be written down.
    pub(super) fn unrecorded(mut self) -> Problem {
        self.0.is_lost = true;
        self
    }

    /// The document.
    pub(super) fn body(&self) -> Value {
        let Details { status, kind, detail, hint, request_id, problems, is_lost, .. } = &*self.0;
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
        if *is_lost {
            body["recorded"] = json!(false);
        }
        body
    }

    /// One that programs know by this name.
    pub(super) fn kind(mut self, kind: &'static str) -> Problem {
        self.0.kind = kind;
        self
    }

    /// One that is many: each an object.
    pub(super) fn problems(mut self, problems: Value) -> Problem {
        self.0.problems = Some(problems);
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
