//! `GET /api/v1/calls`: the recorded calls, newest first.

mod call_json;
mod editions;

use super::HandlerResult;
use crate::api::{
    json_response,
    problem::Problem,
    query::{self, Query},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use call_json::call_json;
use editions::Editions;
use http::StatusCode;
use std::time::{Duration, Instant};
use wharf_store::{CallCursor, CallFilter, CallPage, CallRow, Store, StoreError};

/// Default number of calls on a page.
const DEFAULT_PAGE_SIZE: usize = 50;

/// Number of calls that a search reads at a time, and how long it reads. A search that is not through by then returns
/// what it found, and the cursor of the next page continues it.
const SEARCH_PAGE_SIZE: usize = 500;
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// Longest duration that `min_ms` accepts.
const MAX_DURATION_MS: u64 = 1 << 40;

/// `tool_name` is an alias of `tool`, because the response uses that name.
const KNOWN_PARAMETERS: &[&str] = &[
    "source",
    "tool",
    "tool_name",
    "thread_id",
    "status",
    "q",
    "since",
    "until",
    "via",
    "principal",
    "error_type",
    "min_ms",
    "limit",
    "cursor",
];

const STATUSES: &[(&str, &str)] = &[("success", "success"), ("failure", "failure"), ("timeout", "timeout")];

pub(super) async fn list(store: &Store, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, KNOWN_PARAMETERS)?;
    let text = |key: &str| query.text(key).map(str::to_owned);
    let filter = CallFilter {
        source: text("source"),
        tool_name: text("tool").or_else(|| text("tool_name")),
        thread_id: text("thread_id"),
        status: query.choice("status", STATUSES)?.map(str::to_owned),
        since: query.time("since")?,
        until: query.time("until")?,
        via: text("via"),
        principal: text("principal"),
        error_type: text("error_type"),
        min_ms: query.number("min_ms", 0..=MAX_DURATION_MS)?.map(|it| it as f64),
    };
    let after = match query.text("cursor") {
        Some(cursor) => Some(read_cursor(cursor).ok_or_else(|| query.invalid_parameter("cursor"))?),
        None => None,
    };
    let limit = query.limit(DEFAULT_PAGE_SIZE)?;
    let page = match query.text("q").filter(|it| !it.is_empty()) {
        Some(words) => search(store, &filter, after, limit, words).await,
        None => store.list_calls(&filter, after.as_ref(), limit).await,
    };
    let page = page.map_err(|it| journal_unreadable(&it))?;
    let editions = Editions::of(store, &page.calls).await.map_err(|it| journal_unreadable(&it))?;
    let calls = page.calls.iter().map(|it| call_json(it, editions.hash_of(it))).collect();
    Ok(query::list(calls, page.next.map(|it| write_cursor(&it))))
}

pub(super) async fn get(store: &Store, request_id: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let call = store.call(request_id).await.map_err(|it| journal_unreadable(&it))?;
    let call = call.ok_or_else(|| Problem::not_found("call", request_id))?;
    let editions = Editions::of(store, std::slice::from_ref(&call)).await;
    let editions = editions.map_err(|it| journal_unreadable(&it))?;
    Ok(json_response(StatusCode::OK, call_json(&call, editions.hash_of(&call))))
}

/// Finds calls with these words. The journal has no index for text, so a search reads calls until it has enough or its
/// time is over.
async fn search(
    store: &Store,
    filter: &CallFilter,
    mut after: Option<CallCursor>,
    limit: usize,
    words: &str,
) -> Result<CallPage, StoreError> {
    let (words, begun) = (words.to_lowercase(), Instant::now());
    let mut found = CallPage::default();
    loop {
        let page = store.list_calls(filter, after.as_ref(), SEARCH_PAGE_SIZE).await?;
        for call in page.calls {
            let cursor =
                CallCursor { execution_start: call.execution_start, request_id: call.request_id.to_string() };
            if has_words(&call, &words) {
                found.calls.push(call);
            }
            after = Some(cursor);
            if found.calls.len() == limit {
                return Ok(CallPage { next: after, ..found });
            }
        }
        if page.next.is_none() || begun.elapsed() >= SEARCH_TIME {
            return Ok(CallPage { next: page.next.and(after), ..found });
        }
    }
}

/// Checks whether the id, the tool, the server, the arguments or the error contain the words, ignoring case.
fn has_words(call: &CallRow, words: &str) -> bool {
    let CallRow { request_id, source, tool_name, parameters, error, .. } = call;
    let texts = [Some(request_id), Some(source), Some(tool_name), Some(parameters), error.as_ref()];
    texts.into_iter().flatten().any(|it| it.to_lowercase().contains(words))
}

fn write_cursor(cursor: &CallCursor) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{} {}", cursor.execution_start, cursor.request_id))
}

fn read_cursor(text: &str) -> Option<CallCursor> {
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let (start, request_id) = text.split_once(' ')?;
    Some(CallCursor { execution_start: start.parse().ok()?, request_id: request_id.to_owned() })
}

pub(super) fn journal_unreadable(error: &StoreError) -> Problem {
    tracing::error!(target: "wharf::journal", "calls could not be read: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the call journal cannot be read")
        .hint("try again, and check the log of wharf")
}
