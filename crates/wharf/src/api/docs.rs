//! `/docs`: shows `/openapi.json` as a web page. The page is embedded in the program, loads nothing from other sites,
//! and renders all values as text.

use super::{document, routes::Route};
use http::{HeaderValue, Response, StatusCode, header};
use wharf_mcp::serve::http::Body;

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn respond(route: Route) -> Response<Body> {
    let (kind, text) = match route {
        Route::DocsScript => ("text/javascript; charset=utf-8", include_str!("docs/page.js")),
        Route::DocsStyle => ("text/css; charset=utf-8", include_str!("docs/page.css")),
        _ => ("text/html; charset=utf-8", include_str!("docs/page.html")),
    };
    let mut response = document(StatusCode::OK, kind, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
