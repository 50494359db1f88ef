//! `GET /api/v1/calls`: what was called, the newest first.

use super::Answer;
use crate::front::{json_response, problem::Problem};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::time::{Duration, UNIX_EPOCH};
use wharf_mcp::Raw;
use wharf_runtime::{project, stamp::rfc3339};
use wharf_store::{CallCursor, CallFilter, CallRow, Store, StoreError};

/// How many calls a page has, if nothing is said, and at most.
const PAGE: usize = 50;
const LARGEST_PAGE: usize = 500;

pub(super) async fn list(store: &Store, query: Option<&str>) -> Answer {
    let Wanted { filter, after, limit } = Wanted::read(query)?;
    let page = store.list_calls(&filter, after.as_ref(), limit).await.map_err(|it| unreadable(&it))?;
    let items: Vec<Value> = page.calls.iter().map(context).collect();
    let next = page.next.map(|it| write_cursor(&it));
    Ok(json_response(StatusCode::OK, &json!({ "items": items, "next_cursor": next })))
}

pub(super) async fn get(store: &Store, request_id: &str) -> Answer {
    let call = store.call(request_id).await.map_err(|it| unreadable(&it))?;
    let unknown = || Problem::new(StatusCode::NOT_FOUND, format!("there is no call '{request_id}'"));
    Ok(json_response(StatusCode::OK, &context(&call.ok_or_else(unknown)?)))
}

/// Which calls are wanted.
struct Wanted {
    filter: CallFilter,
    after: Option<CallCursor>,
    limit: usize,
}

impl Wanted {
    fn read(query: Option<&str>) -> Result<Wanted, Problem> {
        let mut wanted = Wanted { filter: CallFilter::default(), after: None, limit: PAGE };
        for (key, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let (filter, text) = (&mut wanted.filter, Some(value.to_string()));
            match &*key {
                "source" => filter.source = text,
                "tool" | "tool_name" => filter.tool_name = text,
                "thread_id" => filter.thread_id = text,
                "status" if ["success", "failure", "timeout"].contains(&&*value) => filter.status = text,
                "limit" => {
                    let limit = value.parse().ok().filter(|it| (1..=LARGEST_PAGE).contains(it));
                    wanted.limit = limit.ok_or_else(|| wrong(&key))?;
                }
                "cursor" => wanted.after = Some(read_cursor(&value).ok_or_else(|| wrong(&key))?),
                _ => return Err(wrong(&key)),
            }
        }
        Ok(wanted)
    }
}

/// A call in the words of a `ToolCallContext`, and where it went and came from.
fn context(row: &CallRow) -> Value {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let started = Duration::from_micros(u64::try_from(row.execution_start).unwrap_or_default());
    let mut context = Map::new();
    let mut add = |key: &str, value: Value| _ = context.insert(key.to_owned(), value);
    add("request_id", json!(row.request_id));
    row.thread_id.iter().for_each(|it| add("thread_id", json!(it)));
    add("tool_name", json!(row.tool_name));
    add("source", json!(row.source));
    add("parameters", json(&row.parameters));
    add("execution_start", json!(rfc3339(UNIX_EPOCH + started)));
    add("execution_duration", json!(row.execution_duration_ms / 1_000.0));
    if let Some(result) = row.result.as_ref().and_then(|it| Raw::parse(it.clone()).ok()) {
        add("result", project::meaning(&result));
    }
    row.error.iter().for_each(|it| add("error", json!(it)));
    row.error_type.iter().for_each(|it| add("error_type", json!(it)));
    row.door.iter().for_each(|it| add("door", json!(it)));
    add("status", json!(row.status));
    Value::Object(context)
}

fn write_cursor(cursor: &CallCursor) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{} {}", cursor.execution_start, cursor.request_id))
}

fn read_cursor(text: &str) -> Option<CallCursor> {
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let (start, request_id) = text.split_once(' ')?;
    Some(CallCursor { execution_start: start.parse().ok()?, request_id: request_id.to_owned() })
}

fn wrong(key: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("the parameter `{key}` cannot be used so"))
        .hint("there are source, tool, thread_id, status, limit and cursor")
}

fn unreadable(error: &StoreError) -> Problem {
    tracing::error!(target: "wharf::journal", "calls could not be read: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the journal of calls cannot be read at the moment")
}
