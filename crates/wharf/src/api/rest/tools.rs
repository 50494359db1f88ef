//! REST endpoints that list tools and enable or disable them.

use super::HandlerResult;
use crate::api::{ApiState, body, json_response, problem::Problem, query::Query};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde_json::json;
use std::sync::Arc;
use wharf_mcp::Raw;
use wharf_runtime::{Catalog, catalog::ToolEntry, views};
use wharf_store::ListedTool;

/// Maximum length of the reason for disabling a tool, in characters.
const MAX_REASON_CHARS: usize = 1_000;

/// Lists tools, filtered by `source`, by `enabled`, and by `q` in name or description.
pub(super) fn list(catalog: &Catalog, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "q", "enabled", "limit", "cursor"])?;
    let enabled = query.choice("enabled", &[("true", true), ("false", false)])?;
    let mut tools = catalog.tools.clone();
    tools.retain(|it| {
        let text = || format!("{} {}", it.name, it.description.as_deref().unwrap_or_default());
        query.matches("source", &it.source)
            && enabled.is_none_or(|wanted| it.disabled.is_none() == wanted)
            && (query.text("q").is_none() || query.matches_search(&text()))
    });
    query.page(&tools, |it| it.id(), |it| tool(it))
}

pub(super) fn get(catalog: &Catalog, id: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    Ok(json_response(StatusCode::OK, tool(&*find_tool(catalog, id)?)))
}

/// Enables or disables a tool and stores the change.
pub(super) async fn switch(shared: &ApiState, id: &str, request: Request<Incoming>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let change = ToolChange::read(&body::read_object(request).await?)?;
    let entry = find_tool(&*shared.settled().await, id)?;
    let listed = ListedTool {
        wire_name: entry.wire_name.clone(),
        definition: entry.raw.as_str().to_owned(),
        definition_hash: entry.definition_hash.clone(),
    };
    let reason = change.reason.as_deref().filter(|_| !change.enabled);
    let stored = shared.journal.store().enable_tool(&entry.source, &listed, change.enabled, reason).await;
    stored.map_err(|error| {
        tracing::error!(target: "wharf::store", "a tool could not be enabled or disabled: {error}");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the change could not be stored")
            .hint("nothing has changed; try again, and check the log of wharf")
    })?;
    let off = (!change.enabled).then(|| change.reason.unwrap_or_default());
    shared.handle.set_tool_disabled(&entry.id(), off).await;
    let (tool_id, enabled) = (entry.id(), change.enabled);
    tracing::info!(target: "wharf::tools", tool_id, enabled, "tool enabled or disabled");
    Ok(json_response(StatusCode::OK, tool(&*find_tool(&shared.handle.catalog(), id)?)))
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

fn tool(entry: &ToolEntry) -> Raw {
    let mut tool = views::tool(entry);
    tool["tool_id"] = json!(entry.id());
    tool["aliases"] = json!(entry.aliases());
    tool["for_models"] = json!(entry.for_models);
    tool["enabled"] = json!(entry.disabled.is_none());
    tool["reason"] = json!(entry.disabled.as_ref().filter(|it| !it.is_empty()));
    tool.into()
}
