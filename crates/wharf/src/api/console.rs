//! Serves the console: the page at `/` and its files below `/assets/`, embedded in the program by `build.rs`.
//!
//! The page needs no token, because it contains no data: its script signs in and then uses the API like any client.

use super::problem::Problem;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use wharf_mcp::serve::http::Body;

/// Only our own files run. Trusted Types make the browser refuse markup from strings; Svelte creates its templates
/// with the one named policy.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' blob: data:; media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// The file that `/` returns.
const PAGE: &str = "index.html";

/// An embedded file.
struct ConsoleFile {
    /// Path relative to the folder of the built console, such as `assets/index.js`.
    path: &'static str,
    kind: &'static str,
    /// Hash of the content, for `ETag`.
    etag: &'static str,
    bytes: &'static [u8],
    /// The packed content, if it is smaller.
    gzip: Option<&'static [u8]>,
}

static FILES: &[ConsoleFile] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// Returns the page. The browser keeps it, and asks each time whether it has changed.
pub(super) fn page(request: &HeaderMap) -> Result<Response<Body>, Problem> {
    respond(PAGE, "no-cache", request)
}

/// Returns a file below `/assets/`. Its name contains a hash of its content, so the browser never asks again.
pub(super) fn asset(name: &str, request: &HeaderMap) -> Result<Response<Body>, Problem> {
    respond(&format!("assets/{name}"), "max-age=31536000, immutable", request)
}

fn respond(path: &str, caching: &'static str, request: &HeaderMap) -> Result<Response<Body>, Problem> {
    let file = FILES.iter().find(|it| it.path == path).ok_or_else(|| Problem::not_found("file", path))?;
    let gzip = file.gzip.filter(|_| accepts_gzip(request));
    let etag = match gzip {
        Some(_) => format!("\"{}-gzip\"", file.etag),
        None => format!("\"{}\"", file.etag),
    };
    let is_unchanged = matches_etag(request, file.etag);
    let bytes = if is_unchanged { &[] } else { gzip.unwrap_or(file.bytes) };
    let mut response = Response::new(Full::new(Bytes::from_static(bytes)).boxed_unsync());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, caching),
        (header::VARY, "Accept-Encoding"),
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(header::ETAG, etag);
    }
    if is_unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    if gzip.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// Checks whether `Accept-Encoding` names gzip, or anything, with a weight above zero.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING);
    let weight = |coding: &str| {
        values.iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(',')).find_map(|it| {
            let (name, parameters) = it.split_once(';').unwrap_or((it, ""));
            let weight = parameters.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f64>);
            name.trim().eq_ignore_ascii_case(coding).then(|| weight.unwrap_or(0.0))
        })
    };
    weight("gzip").or_else(|| weight("*")).is_some_and(|it| it > 0.0)
}

/// Checks whether `If-None-Match` names this content, in either form.
fn matches_etag(request: &HeaderMap, etag: &str) -> bool {
    let values = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    values.flat_map(|it| it.split(',')).map(str::trim).any(|it| {
        let it = it.strip_prefix("W/").unwrap_or(it).trim_matches('"');
        it == "*" || it.strip_suffix("-gzip").unwrap_or(it) == etag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &'static str) -> HeaderMap {
        [(name, HeaderValue::from_static(value))].into_iter().collect()
    }

    #[test]
    fn gzip_needs_a_weight_above_zero() {
        for (accepted, expected) in [
            ("gzip, deflate, br", true),
            ("GZIP", true),
            ("br;q=1.0, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("gzip; q=0", false),
            ("deflate", false),
            ("gzipped", false),
        ] {
            assert_eq!(accepts_gzip(&headers(header::ACCEPT_ENCODING, accepted)), expected, "{accepted}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn etag_matches_in_either_form() {
        for (known, expected) in [
            ("\"abc\"", true),
            ("W/\"abc\"", true),
            ("\"x\", \"abc-gzip\"", true),
            ("*", true),
            ("\"abcd\"", false),
            ("\"\"", false),
        ] {
            assert_eq!(matches_etag(&headers(header::IF_NONE_MATCH, known), "abc"), expected, "{known}");
        }
    }

    #[test]
    fn page_is_embedded() {
        let page = FILES.iter().find(|it| it.path == PAGE).expect("the page");
        assert!(page.bytes.starts_with(b"<!doctype html>") && page.kind.starts_with("text/html"));
    }
}
