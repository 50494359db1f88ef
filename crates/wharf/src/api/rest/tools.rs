//! REST endpoints that list tools and enable or disable them.

use super::HandlerResult;
use crate::http_server::RequestBody;
use crate::{
    api::{
        ApiState, body, json_response,
        problem::Problem,
        query::{self, Query},
        tokens::Principal,
    },
    registry::Inventory,
};
use http::{Request, StatusCode};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use wharf_mcp::Raw;
use wharf_runtime::{
    Catalog,
    catalog::{BlockReason, ToolEntry},
    lock::Difference,
    time_format::rfc3339,
    views,
};
use wharf_store::{ListedTool, ToolSwitch};

/// Maximum length of the reason for disabling a tool, in characters.
const MAX_REASON_CHARS: usize = 1_000;

/// Lists tools, filtered by `source`, by `enabled`, and by `q` in name or description.
pub(super) fn list(catalog: &Catalog, inventory: &Inventory, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "q", "enabled", "limit", "cursor"])?;
    let enabled = query.choice("enabled", &[("true", true), ("false", false)])?;
    let mut tools = catalog.tools.clone();
    tools.retain(|it| {
        let text = || format!("{} {}", it.name, it.description.as_deref().unwrap_or_default());
        query.matches("source", &it.source)
            && enabled.is_none_or(|wanted| (switched_off(it).is_none()) == wanted)
            && (query.text("q").is_none() || query.matches_search(&text()))
    });
    query.page(&tools, |it| it.id(), |it| tool(it, inventory))
}

pub(super) fn get(catalog: &Catalog, inventory: &Inventory, id: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    Ok(json_response(StatusCode::OK, tool(&*find_tool(catalog, id)?, inventory)))
}

/// Lists the latest editions of a tool's definition, newest first.
pub(super) async fn definitions(shared: &ApiState, id: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let entry = find_tool(&*shared.settled().await, id)?;
    let editions = shared.journal.store().tool_definitions(&entry.source, &entry.wire_name).await;
    let editions = editions.map_err(|error| {
        tracing::error!(target: "wharf::store", "the definitions of a tool could not be read: {error}");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer")
            .hint("try again, and check the log of wharf")
    })?;
    // An edition was last seen when the next one came; the latest is seen now.
    let mut last_seen = SystemTime::now();
    let mut items = Vec::new();
    for edition in editions {
        let first_seen = time(edition.first_seen);
        let definition = Raw::parse(edition.definition).unwrap_or_else(|_| Raw::null());
        items.push(Raw::object([
            ("definition_hash", json!(edition.definition_hash).into()),
            ("definition", definition),
            ("first_seen", json!(rfc3339(first_seen)).into()),
            ("last_seen", json!(rfc3339(last_seen)).into()),
        ]));
        last_seen = first_seen;
    }
    Ok(query::list(items, None))
}

/// Enables or disables a tool and stores the change.
pub(super) async fn switch(shared: &ApiState, id: &str, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let principal =
        request.extensions().get::<Arc<Principal>>().cloned().ok_or_else(Problem::unauthorized)?;
    let change = ToolChange::read(&body::read_object(request).await?)?;
    let entry = find_tool(&*shared.settled().await, id)?;
    let listed = ListedTool {
        wire_name: entry.wire_name.as_ref().to_owned(),
        definition: entry.listed.as_str().to_owned(),
        definition_hash: entry.definition_hash.clone(),
    };
    let off = (!change.enabled)
        .then(|| ToolSwitch { principal: principal.name.to_string(), reason: change.reason.clone() });
    let stored = shared.journal.store().switch_tool(&entry.source, &listed, off.as_ref()).await;
    stored.map_err(|error| {
        tracing::error!(target: "wharf::store", "a tool could not be enabled or disabled: {error}");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the change could not be stored")
            .hint("nothing has changed; try again, and check the log of wharf")
    })?;
    let off = (!change.enabled).then(|| change.reason.unwrap_or_default());
    shared.handle.set_tool_disabled(&entry.id(), off).await;
    let (tool_id, enabled) = (entry.id(), change.enabled);
    tracing::info!(target: "wharf::tools", tool_id, enabled, "tool enabled or disabled");
    let inventory = shared.registry.inventory();
    Ok(json_response(StatusCode::OK, tool(&*find_tool(&shared.handle.catalog(), id)?, inventory)))
}

/// The body of a request that enables or disables a tool.
struct ToolChange {
    enabled: bool,
    reason: Option<String>,
}

impl ToolChange {
    fn read(body: &Raw) -> Result<ToolChange, Problem> {
        body::reject_unknown_keys(body, &["enabled", "reason"])?;
        let enabled = body.member("enabled").and_then(|it| it.decode().ok());
        let enabled = enabled.ok_or_else(|| body::malformed("`enabled` has to be true or false"))?;
        let reason = body::read_text(body, "reason", MAX_REASON_CHARS)?;
        Ok(ToolChange { enabled, reason })
    }
}

fn find_tool(catalog: &Catalog, id: &str) -> Result<Arc<ToolEntry>, Problem> {
    catalog.tool(id).cloned().ok_or_else(|| Problem::not_found("tool", id))
}

fn tool(entry: &ToolEntry, inventory: &Inventory) -> Raw {
    let mut tool = views::tool(entry);
    tool["tool_id"] = json!(entry.id());
    tool["aliases"] = json!(entry.aliases());
    tool["for_models"] = json!(entry.for_models);
    let off = switched_off(entry);
    tool["enabled"] = json!(off.is_none());
    tool["reason"] = json!(off.filter(|it| !it.is_empty()));
    let differences = match &entry.blocked {
        Some(BlockReason::LockMismatch(differences)) => Some(differences),
        _ => None,
    };
    let json = |it: &Difference| it.to_json(&entry.source, Some(&entry.wire_name));
    tool["blocked"] = json!(differences.map(|it| it.iter().map(json).collect::<Vec<_>>()));
    let dates = inventory.dates(&entry.source, &entry.wire_name);
    tool["first_seen"] = json!(dates.as_ref().map(|it| rfc3339(time(it.first_seen))));
    tool["changed_at"] = json!(dates.and_then(|it| it.changed_at()).map(|it| rfc3339(time(it))));
    tool.into()
}

/// Converts microseconds since 1970.
pub(super) fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// Returns the reason why an operator has disabled the tool.
fn switched_off(entry: &ToolEntry) -> Option<&String> {
    match &entry.blocked {
        Some(BlockReason::SwitchedOff(reason)) => Some(reason),
        _ => None,
    }
}
