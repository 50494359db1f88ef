//! Checks of host, origin and size that every request passes before authentication.
//!
//! They block web pages of other sites that reach this server by DNS rebinding or by cross-site requests from a
//! browser.

use super::problem::Problem;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use std::net::SocketAddr;
use wharf_mcp::serve::http::Guard;

/// Maximum size of the URI and of all headers together, in bytes.
const MAX_URI_BYTES: usize = 16 << 10;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// The accepted host names, and the origins that may use this server.
pub(super) struct HostPolicy {
    guard: Guard,
    /// The listener's own address. Most requests use it as host, so it is compared first.
    own_address: String,
}

impl HostPolicy {
    pub(super) fn new(guard: Guard, address: SocketAddr) -> HostPolicy {
        HostPolicy { guard, own_address: address.to_string() }
    }

    fn knows_host(&self, host: &str) -> bool {
        self.own_address == host || self.guard.knows_host(host)
    }

    fn knows_origin(&self, origin: &str, host: &str) -> bool {
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        place == Some(host) || self.guard.origins.iter().any(|it| it == "*" || it == origin)
    }
}

/// Checks size, host, origin and `Sec-Fetch-Site`.
pub(super) fn check<B>(request: &Request<B>, host_policy: &HostPolicy) -> Result<(), Problem> {
    let headers = request.headers();
    check_size(request)?;
    check_host(request, host_policy)?;
    check_origin(headers, host_policy)?;
    let cross = headers.get("sec-fetch-site").is_some_and(|it| it == "cross-site");
    if cross && !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(forbidden("a request from another site may not change anything"));
    }
    Ok(())
}

fn check_size<B>(request: &Request<B>) -> Result<(), Problem> {
    if request.uri().path_and_query().is_some_and(|it| it.as_str().len() > MAX_URI_BYTES) {
        return Err(Problem::new(StatusCode::URI_TOO_LONG, "the URI is longer than 16 KiB"));
    }
    let length: usize = request.headers().iter().map(|(name, it)| name.as_str().len() + it.len()).sum();
    if length > MAX_HEADER_BYTES {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Problem::new(status, "the headers are longer than 32 KiB"));
    }
    Ok(())
}

fn check_host<B>(request: &Request<B>, host_policy: &HostPolicy) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(malformed("a request must name exactly one host"));
    };
    if request.uri().authority().is_some_and(|it| it.as_str().as_bytes() != host.as_bytes()) {
        return Err(forbidden("the request target names another host than `Host`"));
    }
    let host = host.to_str().unwrap_or("?");
    match host_policy.knows_host(host) {
        true => Ok(()),
        false => Err(forbidden(format!("host `{}` is not allowed", super::problem::shorten(host)))
            .hint("an operator can allow it with `hosts` in [server] of wharf.toml")),
    }
}

/// Checks that the origin equals the request's host, or that the operator allows it. A missing `Origin` is allowed.
fn check_origin(headers: &HeaderMap, host_policy: &HostPolicy) -> Result<(), Problem> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let origin = origin.to_str().unwrap_or("?");
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if host_policy.knows_origin(origin, host) && origins.next().is_none() {
        return Ok(());
    }
    Err(forbidden(format!("origin `{}` is not allowed", super::problem::shorten(origin)))
        .hint("an operator can allow it with `origins` in [server] of wharf.toml"))
}

/// Checks that `Accept` allows JSON or SSE. A missing header allows both.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Problem> {
    let mut accepted = headers.get_all(header::ACCEPT).iter().map(HeaderValue::as_bytes).peekable();
    let reads = |it: &[u8]| {
        let kind = it.split(|it| *it == b';').next().unwrap_or_default().trim_ascii();
        matches!(kind, b"application/json" | b"text/event-stream" | b"*/*" | b"application/*" | b"text/*")
    };
    if accepted.peek().is_none() || accepted.any(|it| it.split(|it| *it == b',').any(reads)) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "`Accept` allows neither JSON nor an event stream")
        .hint("send `Accept: application/json, text/event-stream`"))
}

fn forbidden(why: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, why)
}

fn malformed(why: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, why)
}
