//! Checks of host, origin and size that every request passes before authentication.
//!
//! They block web pages of other sites that reach this server by DNS rebinding or by cross-site requests from a
//! browser.

use super::problem::Problem;
use http::{HeaderMap, Method, Request, StatusCode, header};
use std::net::SocketAddr;
use wharf_mcp::serve::http::Guard;

/// Maximum size of the URI and of all headers together, in bytes.
const LONGEST_URI: usize = 16 << 10;
const LONGEST_HEADERS: usize = 32 << 10;

/// The accepted host names, and the origins that may use this server.
pub(super) struct Entrance {
    guard: Guard,
    /// The listener's own address. Most requests use it as host, so it is compared first.
    usual: String,
}

impl Entrance {
    pub(super) fn new(guard: Guard, address: SocketAddr) -> Entrance {
        Entrance { guard, usual: address.to_string() }
    }

    fn knows_host(&self, host: &str) -> bool {
        self.usual == host || self.guard.knows_host(host)
    }

    fn knows_origin(&self, origin: &str, host: &str) -> bool {
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        place == Some(host) || self.guard.origins.iter().any(|it| it == "*" || it == origin)
    }
}

/// Checks size, host, origin and `Sec-Fetch-Site`.
pub(super) fn check<B>(request: &Request<B>, entrance: &Entrance) -> Result<(), Problem> {
    let headers = request.headers();
    is_bounded(request)?;
    speaks_to_us(request, entrance)?;
    comes_from_us(headers, entrance)?;
    let cross = headers.get("sec-fetch-site").is_some_and(|it| it == "cross-site");
    if cross && !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(forbidden("a page of another site may not change anything here"));
    }
    Ok(())
}

fn is_bounded<B>(request: &Request<B>) -> Result<(), Problem> {
    if request.uri().path_and_query().is_some_and(|it| it.as_str().len() > LONGEST_URI) {
        return Err(Problem::new(StatusCode::URI_TOO_LONG, "the address is longer than 16 KiB"));
    }
    let length: usize = request.headers().iter().map(|(name, it)| name.as_str().len() + it.len()).sum();
    if length > LONGEST_HEADERS {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Problem::new(status, "the headers are longer than 32 KiB"));
    }
    Ok(())
}

fn speaks_to_us<B>(request: &Request<B>, entrance: &Entrance) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(malformed("a request names exactly one host"));
    };
    if request.uri().authority().is_some_and(|it| it.as_str().as_bytes() != host.as_bytes()) {
        return Err(forbidden("the address names another host than `Host`"));
    }
    let host = host.to_str().unwrap_or("?");
    match entrance.knows_host(host) {
        true => Ok(()),
        false => Err(forbidden(format!("this server is not known as `{}`", super::problem::echo(host)))
            .hint("an operator can name it in wharf.toml: [server] hosts")),
    }
}

/// Checks that the origin equals the request's host, or that the operator allows it. A missing `Origin` is allowed.
fn comes_from_us(headers: &HeaderMap, entrance: &Entrance) -> Result<(), Problem> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let origin = origin.to_str().unwrap_or("?");
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if entrance.knows_origin(origin, host) && origins.next().is_none() {
        return Ok(());
    }
    Err(forbidden(format!("pages of `{}` may not use this server", super::problem::echo(origin)))
        .hint("an operator can allow a page in wharf.toml: [server] origins"))
}

/// Checks that `Accept` allows JSON or SSE. A missing header allows both.
pub(super) fn reads_what_is_said(headers: &HeaderMap) -> Result<(), Problem> {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok()).peekable();
    let reads = |it: &str| {
        let kind = it.split(';').next().unwrap_or_default().trim();
        matches!(kind, "application/json" | "text/event-stream" | "*/*" | "application/*" | "text/*")
    };
    if accepted.peek().is_none() || accepted.any(|it| it.split(',').any(reads)) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "what is answered here is JSON or a stream of events")
        .hint("send `Accept: application/json, text/event-stream`"))
}

fn forbidden(why: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, why)
}

fn malformed(why: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, why)
}
