//! REST endpoints of the lock: what differs from it, and accepting it.

use super::HandlerResult;
use crate::http_server::RequestBody;
use crate::{
    accepted_definitions::accepted_definitions,
    api::{ApiState, body, json_response, problem::Problem, query::Query},
};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use std::collections::HashMap;
use wharf_config::LockBasis;
use wharf_mcp::Raw;
use wharf_runtime::{
    LockItem, SourceState,
    lock::{Difference, LockedKind},
    time_format::rfc3339,
};
use wharf_store::{AcceptedDefinition, StoreError};

/// Maximum length of the reason for accepting, in characters.
const MAX_REASON_CHARS: usize = 1_000;

/// The kinds of items, by name.
const KINDS: [(&str, LockedKind); 4] = [
    ("tool", LockedKind::Tool),
    ("prompt", LockedKind::Prompt),
    ("template", LockedKind::Template),
    ("instructions", LockedKind::Instructions),
];

/// Accepted definitions, by source, kind and name.
type AcceptedByKey = HashMap<(String, String, String), AcceptedDefinition>;

/// Lists what locked sources offer, filtered by `source`, `kind` and `state`.
pub(super) async fn list(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    const STATES: [&str; 5] = ["same", "changed", "new", "gone", "accepted"];
    let query = Query::read(query, &["source", "kind", "state", "limit", "cursor"])?;
    let state = query.choice("state", &STATES.map(|it| (it, it)))?;
    let kind = query.choice("kind", &KINDS)?;
    let mut items = items(shared).await;
    items.retain(|it| {
        let fits = kind.is_none_or(|kind| it.kind == kind) && state.is_none_or(|state| it.state == state);
        fits && query.matches("source", &it.source)
    });
    // Read after the items, so that it has everything that they show as accepted.
    let accepted = accepted_by_key(shared).await?;
    let key = |it: &LockItem| format!("{} {}", it.kind.as_str(), item_id(it));
    query.page(&items, key, |it| item_json(it, &accepted).into())
}

/// Reads the accepted definitions, by source, kind and name.
async fn accepted_by_key(shared: &ApiState) -> Result<AcceptedByKey, Problem> {
    let rows = shared.journal.store().accepted_definitions().await.map_err(|error| unavailable(&error))?;
    Ok(rows.into_iter().map(|it| ((it.source.clone(), it.kind.clone(), it.name.clone()), it)).collect())
}

/// Accepts the current definition of an item. The client names its hash, so it accepts exactly what it has shown.
pub(super) async fn accept(shared: &ApiState, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let principal = super::principal(&request);
    let body = body::read_object(request).await?;
    body::reject_unknown_keys(&body, &["tool_id", "kind", "source", "name", "hash", "reason"])?;
    let (kind, id) = named_item(&body)?;
    let hash = text(&body, "hash")?.ok_or_else(|| missing("hash"))?;
    let reason = body::read_text(&body, "reason", MAX_REASON_CHARS)?;
    let item = find_item(shared, kind, &id).await?;
    let Some(current) = item.current.as_ref().filter(|it| it.hash == hash) else {
        let complaint = format!("the {} has another definition by now", kind.as_str());
        return Err(Problem::new(StatusCode::CONFLICT, complaint).hint("read it again and review it"));
    };
    let accepted = AcceptedDefinition {
        source: item.source.clone(),
        kind: kind.as_str().to_owned(),
        name: item.name.clone(),
        hash: current.hash.clone(),
        definition: current.definition.to_string(),
        principal: principal.to_string(),
        reason,
        accepted_at: 0,
    };
    let stored = shared.journal.store().accept_definition(&accepted).await;
    stored.map_err(|error| unavailable(&error))?;
    let (kind_name, principal) = (kind.as_str(), &*principal);
    tracing::info!(target: "wharf::lock", id, kind = kind_name, hash, principal, "definition accepted");
    publish(shared).await?;
    let item = find_item(shared, kind, &id).await?;
    Ok(json_response(StatusCode::CREATED, item_json(&item, &accepted_by_key(shared).await?)))
}

/// Reads which item a request names: `tool_id`, or `kind`, `source` and `name`. Returns its kind and `source:name`.
fn named_item(body: &Raw) -> Result<(LockedKind, String), Problem> {
    if let Some(id) = text(body, "tool_id")? {
        let others = ["kind", "source", "name"].into_iter().find(|it| body.member(it).is_some());
        return match others {
            Some(key) => Err(body::malformed(format!("`tool_id` and `{key}` cannot be used together"))),
            None => Ok((LockedKind::Tool, id)),
        };
    }
    let kind = text(body, "kind")?.ok_or_else(|| missing("tool_id"))?;
    let unknown = || body::malformed("`kind` has to be tool, prompt, template or instructions".to_owned());
    let kind = LockedKind::parse(&kind).ok_or_else(unknown)?;
    let source = text(body, "source")?.ok_or_else(|| missing("source"))?;
    let name = match (kind, text(body, "name")?) {
        (LockedKind::Instructions, name) => name.unwrap_or_default(),
        (_, name) => name.ok_or_else(|| missing("name"))?,
    };
    Ok((kind, format!("{source}:{name}")))
}

/// Reads a member that has to be a string if it is there.
fn text(body: &Raw, key: &str) -> Result<Option<String>, Problem> {
    let text = body.member(key).map(|it| it.decode::<String>());
    text.transpose().map_err(|_| missing(key))
}

fn missing(key: &str) -> Problem {
    body::malformed(format!("`{key}` has to be a string"))
}

/// Withdraws an accepted definition. `id` is `source:name`; without `kind` it is that of a tool.
pub(super) async fn withdraw(shared: &ApiState, id: &str, query: Option<&str>) -> HandlerResult {
    let kind = Query::read(query, &["kind"])?.choice("kind", &KINDS)?.unwrap_or(LockedKind::Tool);
    let (source, name) = id.split_once(':').ok_or_else(|| Problem::not_found(kind.as_str(), id))?;
    let basis = |it: &SourceState| it.source.lock.basis == LockBasis::FirstUse;
    let states = shared.handle.sources();
    let is_first_use = states.iter().any(|it| it.source.name.expose() == source && basis(it));
    if kind == LockedKind::Instructions && is_first_use {
        // Their row marks that the first listing was accepted. Without it, the server would not be locked at all.
        let complaint = "the instructions of a registered server cannot be withdrawn alone";
        let hint = "remove the server and register it again, to accept its next listing";
        return Err(Problem::new(StatusCode::CONFLICT, complaint).hint(hint));
    }
    let stored = shared.journal.store().withdraw_definition(source, kind.as_str(), name).await;
    stored.map_err(|error| unavailable(&error))?;
    publish(shared).await?;
    Ok(json_response(StatusCode::OK, json!({ "ok": true })))
}

/// Returns the lock file with the accepted definitions.
pub(super) async fn file(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let file = shared.handle.lock().file_with_accepted(&*shared.settled().await, &shared.handle.sources());
    let file = file.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "this gateway has no wharf.lock"))?;
    let text = Raw::parse(file.to_text())
        .map_err(|_| Problem::new(StatusCode::NOT_FOUND, "the lock is not JSON"))?;
    Ok(json_response(StatusCode::OK, text))
}

async fn items(shared: &ApiState) -> Vec<LockItem> {
    let catalog = shared.settled().await;
    shared.handle.lock().items(&catalog, &shared.handle.sources())
}

async fn find_item(shared: &ApiState, kind: LockedKind, id: &str) -> Result<LockItem, Problem> {
    let found = items(shared).await.into_iter().find(|it| it.kind == kind && item_id(it) == id);
    found.ok_or_else(|| Problem::not_found(kind.as_str(), id))
}

/// Applies the stored definitions to this gateway. Other replicas are notified by the store.
async fn publish(shared: &ApiState) -> Result<(), Problem> {
    let accepted = accepted_definitions(shared.journal.store()).await.map_err(|error| unavailable(&error))?;
    let before = shared.handle.catalog().revision;
    shared.handle.set_accepted_definitions(accepted);
    shared.handle.catalog_after(before).await;
    Ok(())
}

/// Returns `source:name`, which identifies an item among those of its kind.
fn item_id(item: &LockItem) -> String {
    format!("{}:{}", item.source, item.name)
}

fn item_json(item: &LockItem, accepted: &AcceptedByKey) -> Value {
    let kind = item.kind.as_str();
    let accepted = accepted.get(&(item.source.clone(), kind.to_owned(), item.name.clone()));
    let accepted = accepted.filter(|_| item.state == "accepted");
    let tool = (item.kind == LockedKind::Tool).then_some(&*item.name);
    let difference = |it: &Difference| it.to_json(&item.source, tool);
    let at = accepted.and_then(|it| {
        let micros = u64::try_from(it.accepted_at).ok()?;
        std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_micros(micros))
    });
    json!({
        "tool_id": tool.map(|_| item_id(item)),
        "kind": kind,
        "source": item.source,
        "name": item.name,
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
