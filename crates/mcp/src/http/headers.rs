//! Headers of MCP messages over HTTP: building them, encoding their values, and reading `Retry-After`.

use crate::{Outbound, Raw, Routing, session::MetaKey};
use ::http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, DATE, RETRY_AFTER},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use memchr::memmem::Finder;
use std::{
    borrow::Cow,
    sync::LazyLock,
    time::{Duration, SystemTime},
};

/// Upper bound for `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Prefix of headers that repeat tool arguments.
pub(crate) const PARAM: &str = "mcp-param-";

/// Searches for a trace context. Built once, because building it costs more than searching a short message.
static TRACE_PARENT_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"traceparent\""));

pub(super) const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
pub(crate) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns `Retry-After` of a 429 or 503, a number of seconds or a date, bounded by [`MAX_RETRY_AFTER`].
pub(crate) fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit()) {
        // A number too large to parse is above the bound.
        return Some(value.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs).min(MAX_RETRY_AFTER));
    }
    let date = |value: &str| httpdate::parse_http_date(value).ok();
    let at = date(value)?;
    // Measured by the server's clock if the response shows it, because ours may differ.
    let now = headers.get(DATE).and_then(|it| date(it.to_str().ok()?)).unwrap_or_else(SystemTime::now);
    Some(at.duration_since(now).unwrap_or_default().min(MAX_RETRY_AFTER))
}

/// Builds the headers of a message. Protocol headers override configured ones.
pub(super) fn of(message: &Outbound, configured: &HeaderMap, session: Option<HeaderValue>) -> HeaderMap {
    let mut headers = configured.clone();
    headers.insert(ACCEPT, ACCEPT_BOTH);
    headers.insert(CONTENT_TYPE, JSON);
    session.into_iter().for_each(|session| drop(headers.insert(SESSION, session)));
    let (method, routing) = match message {
        Outbound::Request { method, routing, params, .. }
        | Outbound::Notification { method, routing, params } => {
            params.iter().for_each(|params| insert_trace(&mut headers, params));
            (Some(&**method), routing)
        }
        Outbound::Answer { routing, .. } => (None, routing),
        Outbound::Abandon { .. } => return headers,
    };
    insert_routing(&mut headers, method, routing);
    headers
}

/// Copies the trace context from `_meta` to headers, so that proxies see it. The byte search skips most messages more
/// cheaply than parsing would.
fn insert_trace(headers: &mut HeaderMap, params: &Raw) {
    if TRACE_PARENT_FINDER.find(params.as_bytes()).is_none() {
        return;
    }
    let meta = params.member("_meta");
    for name in [MetaKey::TRACE_PARENT, MetaKey::TRACE_STATE] {
        let value: Option<String> = meta.as_ref().and_then(|it| it.member(name)?.decode().ok());
        if let Some(value) = value.and_then(|it| HeaderValue::try_from(it).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

fn insert_routing(headers: &mut HeaderMap, method: Option<&str>, routing: &Routing) {
    write_routing(method, routing, |name, value| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    });
}

/// Returns whether a message has a trace context, which goes into headers.
pub(super) fn has_trace(message: &Outbound) -> bool {
    let (Outbound::Request { params, .. } | Outbound::Notification { params, .. }) = message else {
        return false;
    };
    params.as_ref().is_some_and(|it| TRACE_PARENT_FINDER.find(it.as_bytes()).is_some())
}

/// Calls `write` with each header that a message's routing gives, encoded.
pub(super) fn each_routing(message: &Outbound, write: impl FnMut(&str, &str)) {
    match message {
        Outbound::Request { method, routing, .. } | Outbound::Notification { method, routing, .. } => {
            write_routing(Some(method), routing, write);
        }
        Outbound::Answer { routing, .. } => write_routing(None, routing, write),
        Outbound::Abandon { .. } => {}
    }
}

fn write_routing(method: Option<&str>, routing: &Routing, mut write: impl FnMut(&str, &str)) {
    let mut set = |name: &str, value: &str| write(name, &encode(value));
    routing.version.iter().for_each(|version| set(VERSION.as_str(), version));
    if routing.modern {
        method.into_iter().for_each(|method| set(METHOD.as_str(), method));
        routing.name.iter().for_each(|name| set(NAME.as_str(), name));
        for (suffix, value) in &routing.params {
            if let Ok(name) = HeaderName::try_from(format!("{PARAM}{suffix}")) {
                set(name.as_str(), value);
            }
        }
    }
}

/// Encodes a value for a header: unchanged if possible, otherwise as `=?base64?…?=`.
///
/// Encodes values with characters other than printable ASCII, with spaces at either end, or with that prefix.
pub fn encode_value(value: &str) -> String {
    encode(value).into_owned()
}

fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let trimmed = value.trim_matches(' ').len() == value.len();
    if plain && trimmed && !value.starts_with("=?base64?") {
        return value.into();
    }
    format!("=?base64?{}?=", STANDARD.encode(value)).into()
}

/// Decodes a value from [`encode_value`]. Returns `None` if the encoded part is invalid.
pub fn decode_value(value: &str) -> Option<String> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(value.to_owned());
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (value, date, expected) in [
            ("7", None, Some(7)),
            ("99999999999999999999", None, Some(300)),
            ("Sun, 06 Nov 1994 08:49:57 GMT", now, Some(20)),
            ("Sunday, 06-Nov-94 08:49:57 GMT", now, Some(20)),
            ("Sun Nov  6 08:49:57 1994", now, Some(20)),
            ("Sun, 06 Nov 1994 09:49:37 GMT", now, Some(300)),
            ("Sun, 06 Nov 1994 08:49:17 GMT", now, Some(0)),
            // Without the server's clock, ours applies.
            ("Sun, 06 Nov 1994 08:49:57 GMT", None, Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some("today"), Some(300)),
            ("tomorrow", now, None),
            ("-1", now, None),
            ("", now, None),
        ] {
            let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            date.into_iter().for_each(|it| drop(headers.insert(DATE, HeaderValue::from_static(it))));
            let expected = expected.map(Duration::from_secs);
            assert_eq!(retry_after(StatusCode::TOO_MANY_REQUESTS, &headers), expected, "{value}");
            assert_eq!(retry_after(StatusCode::BAD_GATEWAY, &headers), None);
        }
    }

    #[test]
    fn encoded_header_values_decode_to_the_original() {
        for (value, encoded) in [
            ("plain", "plain"),
            ("two words", "two words"),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("日本", "=?base64?5pel5pys?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?x", "=?base64?PT9iYXNlNjQ/eA==?="),
            ("", ""),
        ] {
            assert_eq!(encode_value(value), encoded);
            assert_eq!(decode_value(encoded).as_deref(), Some(value));
        }
        assert_eq!(decode_value("=?base64?!?="), None);
    }
}
