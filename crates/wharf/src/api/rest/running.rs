//! `GET /api/v1/running`: the calls in flight. An operator can cancel one.

use super::HandlerResult;
use crate::api::{no_content, problem::Problem, query::Query};
use serde_json::json;
use wharf_mcp::Raw;
use wharf_runtime::{Handle, RunningCall, time_format::rfc3339};

pub(super) fn list(handle: &Handle, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let mut calls = handle.running_calls();
    calls.retain(|it| it.tool().is_some_and(|tool| query.matches("source", &tool.source)));
    query.page(&calls, |it| it.request_id.to_string(), |it| running_call(it))
}

/// Cancels a call. Its caller gets an error of the type `Abandoned`.
pub(super) fn cancel(handle: &Handle, request_id: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    if !handle.cancel_call(request_id) {
        return Err(Problem::not_found("running call", request_id)
            .hint("the call may be over; GET /api/v1/calls/{request_id} shows it"));
    }
    tracing::info!(target: "wharf::call", request_id, "call cancelled by an operator");
    Ok(no_content())
}

fn running_call(call: &RunningCall) -> Raw {
    let progress = call
        .progress()
        .map(|it| json!({ "progress": it.progress, "total": it.total, "message": it.message }));
    json!({
        "request_id": &*call.request_id,
        "tool_id": call.tool().map(|it| it.id()),
        "source": call.tool().map(|it| it.source.as_str()),
        "started_at": rfc3339(call.started),
        "via": Some(call.via).filter(|it| !it.is_empty()),
        "principal": call.principal.as_deref(),
        "progress": progress,
    })
    .into()
}
