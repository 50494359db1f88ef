//! REST endpoints of the lock: which tools differ from it, and accepting them.

use super::HandlerResult;
use crate::http_server::RequestBody;
use crate::{
    accepted_definitions::accepted_definitions,
    api::{ApiState, body, json_response, problem::Problem, query::Query},
};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use wharf_config::Source;
use wharf_mcp::Raw;
use wharf_runtime::{
    LockItem,
    lock::{Difference, LockedKind},
    time_format::rfc3339,
};
use wharf_store::{AcceptedDefinition, StoreError};

/// Maximum length of the reason for accepting, in characters.
const MAX_REASON_CHARS: usize = 1_000;

/// Accepted definitions of tools, by source and name.
type AcceptedTools = HashMap<(String, String), AcceptedDefinition>;

/// Lists the tools of locked sources, filtered by `source` and `state`.
pub(super) async fn list(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    const STATES: [&str; 5] = ["same", "changed", "new", "gone", "accepted"];
    let query = Query::read(query, &["source", "state", "limit", "cursor"])?;
    let state = query.choice("state", &STATES.map(|it| (it, it)))?;
    let mut items = items(shared).await;
    items.retain(|it| query.matches("source", &it.source) && state.is_none_or(|state| it.state == state));
    // Read after the items, so that it has everything that they show as accepted.
    let accepted = accepted_tools(shared).await?;
    query.page(&items, tool_id, |it| item_json(it, &accepted).into())
}

/// Reads the accepted tools, by source and name.
async fn accepted_tools(shared: &ApiState) -> Result<AcceptedTools, Problem> {
    let rows = shared.journal.store().accepted_definitions().await.map_err(|error| unavailable(&error))?;
    let tools = rows.into_iter().filter(|it| it.kind == LockedKind::Tool.as_str());
    Ok(tools.map(|it| ((it.source.clone(), it.name.clone()), it)).collect())
}

/// Accepts the current definition of a tool. The client names its hash, so it accepts exactly what it has shown.
pub(super) async fn accept(shared: &ApiState, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let principal = super::principal(&request);
    let body = body::read_object(request).await?;
    body::reject_unknown_keys(&body, &["tool_id", "hash", "reason"])?;
    let text = |key: &str| body.member(key).and_then(|it| it.decode::<String>().ok());
    let missing = |key: &str| body::malformed(format!("`{key}` has to be a string"));
    let id = text("tool_id").ok_or_else(|| missing("tool_id"))?;
    let hash = text("hash").ok_or_else(|| missing("hash"))?;
    let reason = body::read_text(&body, "reason", MAX_REASON_CHARS)?;
    let item = items(shared).await.into_iter().find(|it| tool_id(it) == id);
    let item = item.ok_or_else(|| Problem::not_found("tool", &id))?;
    let Some(current) = item.current.as_ref().filter(|it| it.hash == hash) else {
        return Err(Problem::new(StatusCode::CONFLICT, "the tool has another definition by now")
            .hint("read it again and review it"));
    };
    let accepted = AcceptedDefinition {
        source: item.source.clone(),
        kind: LockedKind::Tool.as_str().to_owned(),
        name: item.tool.clone(),
        hash: current.hash.clone(),
        definition: current.definition.to_string(),
        principal: principal.to_string(),
        reason,
        accepted_at: 0,
    };
    let stored = shared.journal.store().accept_definition(&accepted).await;
    stored.map_err(|error| unavailable(&error))?;
    tracing::info!(target: "wharf::lock", tool_id = id, hash, principal = &*principal, "definition accepted");
    publish(shared).await?;
    Ok(json_response(StatusCode::CREATED, shown(shared, &id).await?))
}

/// Withdraws an accepted definition.
pub(super) async fn withdraw(shared: &ApiState, id: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let (source, name) = id.split_once(':').ok_or_else(|| Problem::not_found("tool", id))?;
    let kind = LockedKind::Tool.as_str();
    let stored = shared.journal.store().withdraw_definition(source, kind, name).await;
    stored.map_err(|error| unavailable(&error))?;
    publish(shared).await?;
    Ok(json_response(StatusCode::OK, json!({ "ok": true })))
}

/// Returns the lock file with the accepted definitions.
pub(super) async fn file(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let file = shared.handle.lock().file_with_accepted(&*shared.settled().await);
    let file = file.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "this gateway has no wharf.lock"))?;
    let text = Raw::parse(file.to_text())
        .map_err(|_| Problem::new(StatusCode::NOT_FOUND, "the lock is not JSON"))?;
    Ok(json_response(StatusCode::OK, text))
}

async fn items(shared: &ApiState) -> Vec<LockItem> {
    let catalog = shared.settled().await;
    let sources: Vec<Arc<Source>> = shared.handle.sources().into_iter().map(|it| it.source).collect();
    shared.handle.lock().items(&catalog, &sources)
}

async fn shown(shared: &ApiState, id: &str) -> Result<Value, Problem> {
    let item = items(shared).await.into_iter().find(|it| tool_id(it) == id);
    let item = item.ok_or_else(|| Problem::not_found("tool", id))?;
    Ok(item_json(&item, &accepted_tools(shared).await?))
}

/// Applies the stored definitions to this gateway. Other replicas are notified by the store.
async fn publish(shared: &ApiState) -> Result<(), Problem> {
    let accepted = accepted_definitions(shared.journal.store()).await.map_err(|error| unavailable(&error))?;
    let before = shared.handle.catalog().revision;
    shared.handle.set_accepted_definitions(accepted);
    shared.handle.catalog_after(before).await;
    Ok(())
}

fn tool_id(item: &LockItem) -> String {
    format!("{}:{}", item.source, item.tool)
}

fn item_json(item: &LockItem, accepted: &AcceptedTools) -> Value {
    let accepted = accepted.get(&(item.source.clone(), item.tool.clone()));
    let accepted = accepted.filter(|_| item.state == "accepted");
    let difference = |it: &Difference| it.to_json(&item.source, Some(&item.tool));
    let at = accepted.and_then(|it| {
        let micros = u64::try_from(it.accepted_at).ok()?;
        std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_micros(micros))
    });
    json!({
        "tool_id": tool_id(item),
        "state": item.state,
        "hash": item.current.as_ref().map(|it| &it.hash),
        "locked_hash": item.locked_hash,
        "differences": item.differences.iter().map(difference).collect::<Vec<_>>(),
        "accepted_by": accepted.map(|it| &it.principal),
        "accepted_at": at.map(rfc3339),
    })
}

fn unavailable(error: &StoreError) -> Problem {
    tracing::error!(target: "wharf::store", "the accepted definitions cannot be read or written: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the accepted definitions are not available")
        .hint("nothing has changed; try again, and check the log of wharf")
}
