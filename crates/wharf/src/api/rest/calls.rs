//! `GET /api/v1/calls`: the recorded calls, newest first.

use super::HandlerResult;
use crate::api::{
    json_response,
    problem::Problem,
    query::{self, Query},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::StatusCode;
use serde_json::json;
use std::time::{Duration, UNIX_EPOCH};
use wharf_mcp::Raw;
use wharf_runtime::{time_format::rfc3339, views};
use wharf_store::{CallCursor, CallFilter, CallRow, Store, StoreError};

/// Default number of calls on a page.
const DEFAULT_PAGE_SIZE: usize = 50;

/// `tool_name` is an alias of `tool`, because the response uses that name.
const KNOWN_PARAMETERS: &[&str] = &["source", "tool", "tool_name", "thread_id", "status", "limit", "cursor"];

const STATUSES: &[(&str, &str)] = &[("success", "success"), ("failure", "failure"), ("timeout", "timeout")];

pub(super) async fn list(store: &Store, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, KNOWN_PARAMETERS)?;
    let text = |key: &str| query.text(key).map(str::to_owned);
    let filter = CallFilter {
        source: text("source"),
        tool_name: text("tool").or_else(|| text("tool_name")),
        thread_id: text("thread_id"),
        status: query.choice("status", STATUSES)?.map(str::to_owned),
        ..CallFilter::default()
    };
    let after = match query.text("cursor") {
        Some(cursor) => Some(read_cursor(cursor).ok_or_else(|| query.invalid_parameter("cursor"))?),
        None => None,
    };
    let limit = query.limit(DEFAULT_PAGE_SIZE)?;
    let page =
        store.list_calls(&filter, after.as_ref(), limit).await.map_err(|it| journal_unreadable(&it))?;
    Ok(query::list(page.calls.iter().map(context).collect(), page.next.map(|it| write_cursor(&it))))
}

pub(super) async fn get(store: &Store, request_id: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let call = store.call(request_id).await.map_err(|it| journal_unreadable(&it))?;
    let call = call.ok_or_else(|| Problem::not_found("call", request_id))?;
    Ok(json_response(StatusCode::OK, context(&call)))
}

/// Builds a `ToolCallContext`, with the source, entry point and principal of the call added.
fn context(row: &CallRow) -> Raw {
    let json = |text: &str| Raw::parse(text.to_owned()).unwrap_or_else(|_| Raw::null());
    let started = Duration::from_micros(u64::try_from(row.execution_start).unwrap_or_default());
    let mut context: Vec<(&str, Raw)> = Vec::new();
    let mut add = |key: &'static str, value: Raw| context.push((key, value));
    add("request_id", json!(row.request_id).into());
    row.thread_id.iter().for_each(|it| add("thread_id", json!(it).into()));
    add("tool_name", json!(row.tool_name).into());
    add("source", json!(row.source).into());
    add("parameters", json(&row.parameters));
    add("execution_start", json!(rfc3339(UNIX_EPOCH + started)).into());
    add("execution_duration", json!(row.execution_duration_ms / 1_000.0).into());
    if let Some(result) = row.result.as_ref().and_then(|it| Raw::parse(it.clone()).ok()) {
        add("result", views::result_value(&result));
    }
    row.error.iter().for_each(|it| add("error", json!(it).into()));
    row.error_type.iter().for_each(|it| add("error_type", json!(it).into()));
    row.via.iter().for_each(|it| add("via", json!(it).into()));
    row.principal.iter().for_each(|it| add("principal", json!(it).into()));
    add("status", json!(row.status).into());
    Raw::object(context)
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
