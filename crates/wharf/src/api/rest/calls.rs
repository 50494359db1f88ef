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

/// Number of calls that a search for words reads at a time, and how long a list is read. A list that is not complete by
/// then has what was found, and the cursor of the next page continues it.
const SEARCH_PAGE_SIZE: usize = 500;
const MAX_READING_TIME: Duration = Duration::from_secs(1);

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
    let words = query.text("q").filter(|it| !it.is_empty());
    let page = read_page(store, &filter, after, limit, words).await;
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

/// Reads calls until it has a page of them or its time is over. The journal has no index for text and for most filters.
async fn read_page(
    store: &Store,
    filter: &CallFilter,
    mut after: Option<CallCursor>,
    limit: usize,
    words: Option<&str>,
) -> Result<CallPage, StoreError> {
    let (words, begun) = (words.map(str::to_lowercase), Instant::now());
    let mut found = CallPage::default();
    loop {
        let page_size = if words.is_some() { SEARCH_PAGE_SIZE } else { limit - found.calls.len() };
        let page = store.list_calls(filter, after.as_ref(), page_size).await?;
        let mut calls = page.calls.into_iter();
        while let Some(call) = calls.next() {
            let cursor = CallCursor::of(&call);
            if words.as_ref().is_none_or(|words| has_words(&call, words)) {
                found.calls.push(call);
            }
            if found.calls.len() == limit && calls.len() > 0 {
                return Ok(CallPage { next: Some(cursor), ..found });
            }
        }
        after = page.next;
        if after.is_none() || found.calls.len() == limit || begun.elapsed() >= MAX_READING_TIME {
            return Ok(CallPage { next: after, ..found });
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
