//! REST endpoints of stored results. A principal sees its own results only; for others they do not exist.

use super::HandlerResult;
use crate::api::{
    ApiState, body, document, json_response, no_content, problem::Problem, query::Query, routes::Route,
};
use crate::http_server::RequestBody;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use serde_json::json;
use std::{ops::Range, sync::Arc};
use wharf_runtime::{
    Fault,
    result_handle::{Document, DocumentKind, ResultHandles, ResultOwner, StoredResult},
    time_format::rfc3339,
};

/// Maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 4096;
/// Maximum size of the results of a query, in bytes.
const MAX_QUERY_RESULT_BYTES: usize = 1 << 20;

/// Answers the requests about stored results.
pub(super) async fn respond(
    shared: &ApiState,
    route: Route,
    segment: &str,
    request: Request<RequestBody>,
) -> HandlerResult {
    shared.require_database()?;
    match route {
        Route::Result => get(shared, segment, &request).await,
        Route::QueryResult => query(shared, segment, request).await,
        Route::DeleteResult => delete(shared, segment, &request).await,
        _ => list(shared, &request).await,
    }
}

/// Lists the results of the principal, the latest first.
async fn list(shared: &ApiState, request: &Request<RequestBody>) -> HandlerResult {
    let query = Query::read(request.uri().query(), &["source", "limit", "cursor"])?;
    let listed = results(shared)?.store.list(&super::principal(request)).await;
    let mut listed = listed.map_err(|error| unavailable(&error))?;
    listed.retain(|it| query.matches("source", &it.source));
    query.page(&listed, |it| it.id.clone(), |it| result_json(it).into())
}

/// Returns the content of a result, or the range of bytes that the request names.
async fn get(shared: &ApiState, id: &str, request: &Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let owner = ResultOwner { principal: super::principal(request), conversation: None };
    read_result(shared, &owner, id, request.headers()).await
}

/// Returns the content of an owner's result, or the range of bytes that the headers name.
pub(in crate::api) async fn read_result(
    shared: &ApiState,
    owner: &ResultOwner,
    id: &str,
    headers: &HeaderMap,
) -> HandlerResult {
    let (stored, content) = find(shared, owner, id).await?;
    let media_type = match stored.kind {
        DocumentKind::Json | DocumentKind::Blocks => "application/json",
        DocumentKind::Text => "text/plain; charset=utf-8",
    };
    let length = content.text.len();
    let range = headers.get(header::RANGE).and_then(|it| it.to_str().ok());
    let mut response = match range.and_then(|it| byte_range(it, length)) {
        None => document(StatusCode::OK, media_type, content.text.as_bytes().to_vec()),
        Some(None) => {
            let problem =
                Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "the range is outside of the result");
            return Err(problem.hint(format!("the result has {length} bytes")));
        }
        Some(Some(range)) => {
            let shown = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            let part = content.text.as_bytes()[range].to_vec();
            let mut response = document(StatusCode::PARTIAL_CONTENT, media_type, part);
            if let Ok(shown) = HeaderValue::try_from(shown) {
                response.headers_mut().insert(header::CONTENT_RANGE, shown);
            }
            response
        }
    };
    response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    Ok(response)
}

/// Runs a jq expression over a result.
async fn query(shared: &ApiState, id: &str, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let owner = ResultOwner { principal: super::principal(&request), conversation: None };
    let (_, document) = find(shared, &owner, id).await?;
    let body = body::read_object(request).await?;
    body::reject_unknown_keys(&body, &["query"])?;
    let query = body::read_text(&body, "query", MAX_QUERY_CHARS)?;
    let query = query.ok_or_else(|| body::malformed("`query` is missing"))?;
    let output = results(shared)?.query(&document, &query, MAX_QUERY_RESULT_BYTES).await;
    let output = output.map_err(|reason| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, reason))?;
    Ok(json_response(StatusCode::OK, json!({ "output": output })))
}

/// Deletes a result.
async fn delete(shared: &ApiState, id: &str, request: &Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let deleted = results(shared)?.store.delete(&super::principal(request), id).await;
    match deleted.map_err(|error| unavailable(&error))? {
        true => Ok(no_content()),
        false => Err(missing(id)),
    }
}

fn results(shared: &ApiState) -> Result<&Arc<ResultHandles>, Problem> {
    shared.handle.results().ok_or_else(|| unavailable("they are not kept"))
}

async fn find(shared: &ApiState, owner: &ResultOwner, id: &str) -> Result<(StoredResult, Document), Problem> {
    let found = results(shared)?.read(owner, id).await.map_err(|error| unavailable(&error))?;
    found.ok_or_else(|| missing(id))
}

fn missing(id: &str) -> Problem {
    Problem::of(&Fault::result_not_found(id), None)
}

fn unavailable(error: &str) -> Problem {
    tracing::error!(target: "wharf::results", "the stored results cannot be read or written: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the stored results are not available")
        .hint("nothing has changed; try again, and check the log of wharf")
}

fn result_json(stored: &StoredResult) -> serde_json::Value {
    json!({
        "id": stored.id,
        "handle": stored.handle,
        "conversation_id": stored.conversation,
        "tool_id": format!("{}:{}", stored.source, stored.tool),
        "kind": stored.kind.as_str(),
        "bytes": stored.bytes,
        "sha256": stored.sha256,
        "created_at": rfc3339(stored.created_at),
        "expires_at": stored.expires_at.map(rfc3339),
    })
}

/// Reads a `Range` header with one range. The outer `None` means that the header is ignored, the inner one that the
/// range is outside of the content.
fn byte_range(header: &str, length: usize) -> Option<Option<Range<usize>>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", last) => length.saturating_sub(last.parse().ok()?)..length,
        (first, "") => first.parse().ok()?..length,
        (first, last) => {
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            if first > last {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some((range.start < range.end).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::byte_range;

    #[test]
    fn one_range_of_bytes_is_read() {
        for (header, expected) in [
            ("bytes=0-4", Some(Some(0..5))),
            ("bytes=4-99", Some(Some(4..10))),
            ("bytes=7-", Some(Some(7..10))),
            ("bytes=-3", Some(Some(7..10))),
            ("bytes=-99", Some(Some(0..10))),
            ("bytes=10-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=5-2", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-4", None),
        ] {
            assert_eq!(byte_range(header, 10), expected, "{header}");
        }
    }
}
