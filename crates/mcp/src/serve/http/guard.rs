//! Checks `Host`, `Origin` and `Content-Type`, so that a foreign web page cannot use a local server through the
//! browser (DNS rebinding, cross-site requests). Reads from `Accept` how to answer.

use ::http::{
    HeaderMap,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HOST, ORIGIN},
};
use std::cmp::Reverse;
use url::Url;

/// Allowed values of `Host` and `Origin`.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Host names accepted in addition to loopback; `*` accepts all.
    pub hosts: Vec<String>,
    /// Origins accepted in addition to loopback; `*` accepts all.
    pub origins: Vec<String>,
}

impl Guard {
    /// Checks `Host` and `Origin`, or returns why the request is rejected. A missing header passes.
    pub fn admit(&self, headers: &HeaderMap) -> Result<(), String> {
        let text = |name| headers.get(name).map(|value: &::http::HeaderValue| value.to_str().unwrap_or("?"));
        if let Some(host) = text(HOST)
            && !self.knows_host(host)
        {
            return Err(format!("host `{host}` is not allowed"));
        }
        if let Some(origin) = text(ORIGIN)
            && !self.knows_origin(origin)
        {
            return Err(format!("origin `{origin}` is not allowed"));
        }
        Ok(())
    }

    /// Checks whether this value of `Host` is allowed.
    pub fn knows_host(&self, host: &str) -> bool {
        // Fast path: the most common hosts need no URL parser.
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        if matches!(name, "127.0.0.1" | "localhost") && is_port(&host[name.len()..]) {
            return true;
        }
        let named = Url::parse(&format!("http://{host}/"));
        let named = named.as_ref().ok().and_then(Url::host_str).unwrap_or_default();
        is_loopback(named) || self.hosts.iter().any(|known| known == "*" || known == named || known == host)
    }

    fn knows_origin(&self, origin: &str) -> bool {
        let named = Url::parse(origin);
        let named = named.as_ref().ok().and_then(Url::host_str).unwrap_or_default();
        is_loopback(named) || self.origins.iter().any(|known| known == "*" || known == origin)
    }
}

/// Checks that the headers declare a JSON body: exactly one `Content-Type`, `application/json` with any parameters,
/// and no `Content-Encoding` but `identity`.
///
/// A browser sends forms, plain text and bodies without a type to other sites without a CORS preflight. It sends a
/// preflight before JSON, so a foreign page cannot pass this check.
pub fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else { return false };
    let kind = kind.as_bytes().split(|it| *it == b';').next().unwrap_or_default().trim_ascii();
    let encodings = headers.get_all(CONTENT_ENCODING);
    kind.eq_ignore_ascii_case(b"application/json")
        && encodings.iter().all(|it| it.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Checks whether `Accept` prefers an event stream to JSON: by its quality, or by its place if the qualities are equal.
pub(super) fn prefers_stream(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().peekable();
    // What almost every client sends.
    if accepted.peek().is_some_and(|it| *it == "application/json, text/event-stream") {
        return false;
    }
    let ranges = accepted.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    let (mut stream, mut json) = (None, None);
    for (place, range) in ranges.enumerate() {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let quality = parts.find_map(|it| it.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        let rank = (quality > 0.0).then_some((quality, Reverse(place)));
        if kind.eq_ignore_ascii_case("text/event-stream") {
            stream = rank;
        } else if kind.eq_ignore_ascii_case("application/json") {
            json = rank;
        }
    }
    stream > json
}

/// Checks that `rest` is empty or a colon and a port number.
fn is_port(rest: &str) -> bool {
    rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_stream_is_preferred_by_quality_and_then_by_place() {
        for (accept, prefers) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["application/json, text/event-stream"], false),
            (&["application/json", "text/event-stream"], false),
            (&["text/event-stream, application/json"], true),
            (&["Text/Event-Stream", "application/json"], true),
            (&["text/event-stream"], true),
            (&["application/json;q=0.5, text/event-stream; q=0.9"], true),
            (&["text/event-stream;q=0.1, application/json"], false),
            (&["text/event-stream;q=0, */*"], false),
        ] {
            let mut headers = HeaderMap::new();
            accept.iter().for_each(|it| _ = headers.append(ACCEPT, it.parse().unwrap()));
            assert_eq!(prefers_stream(&headers), prefers, "{accept:?}");
        }
    }

    #[test]
    fn only_unencoded_json_is_accepted() {
        for (kinds, encodings, fits) in [
            (&["application/json"][..], &[][..], true),
            (&["application/json; charset=utf-8"], &[], true),
            (&["Application/JSON;charset=utf-8"], &["identity"], true),
            (&[], &[], false),
            (&[""], &[], false),
            (&["text/plain"], &[], false),
            (&["text/plain; application/json"], &[], false),
            (&["application/jsonx"], &[], false),
            (&["application/x-www-form-urlencoded"], &[], false),
            (&["multipart/form-data; boundary=x"], &[], false),
            (&["application/json", "text/plain"], &[], false),
            (&["application/json"], &["gzip"], false),
            (&["application/json"], &["identity", "gzip"], false),
            (&["application/json"], &["identity, gzip"], false),
        ] {
            let mut headers = HeaderMap::new();
            kinds.iter().for_each(|it| _ = headers.append(CONTENT_TYPE, it.parse().unwrap()));
            encodings.iter().for_each(|it: &&str| _ = headers.append(CONTENT_ENCODING, it.parse().unwrap()));
            assert_eq!(is_json(&headers), fits, "{kinds:?} {encodings:?}");
        }
    }

    #[test]
    fn foreign_hosts_and_origins_are_rejected() {
        let guard = Guard { hosts: vec!["mcp.example".into()], origins: vec!["https://app.example".into()] };
        for (host, origin, admitted) in [
            ("localhost:8080", "", true),
            ("127.0.0.1", "http://localhost:3000", true),
            ("[::1]:80", "http://[::1]:9", true),
            ("mcp.example", "https://app.example", true),
            ("127.0.0.1:70000", "", false),
            ("127.0.0.1:80@evil.example", "", false),
            ("localhost:80:evil.example", "", false),
            ("evil.example", "", false),
            ("localhost.evil.example", "", false),
            ("localhost", "http://evil.example", false),
            ("localhost", "null", false),
            ("mcp.example", "http://app.example", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if !origin.is_empty() {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(guard.admit(&headers).is_ok(), admitted, "{host} {origin}");
        }
    }
}
