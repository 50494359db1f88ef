//! REST endpoints that list tools and enable or disable them.

use super::Answer;
use crate::front::{Shared, body, json_response, problem::Problem, query::Query};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde_json::json;
use std::sync::Arc;
use wharf_mcp::Raw;
use wharf_runtime::{Catalog, catalog::ToolEntry, project};
use wharf_store::ListedTool;

/// Maximum length of the reason for disabling a tool, in characters.
const LONGEST_REASON: usize = 1_000;

/// Lists tools, filtered by `source`, by `enabled`, and by `q` in name or description.
pub(super) fn list(catalog: &Catalog, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["source", "q", "enabled", "limit", "cursor"])?;
    let enabled = query.word("enabled", &[("true", true), ("false", false)])?;
    let mut tools = catalog.tools.clone();
    tools.retain(|it| {
        let text = || format!("{} {}", it.name, it.description.as_deref().unwrap_or_default());
        query.is("source", &it.source)
            && enabled.is_none_or(|wanted| it.disabled.is_none() == wanted)
            && (query.text("q").is_none() || query.finds(&text()))
    });
    query.page(&tools, |it| it.id(), |it| tool(it))
}

pub(super) fn get(catalog: &Catalog, id: &str, query: Option<&str>) -> Answer {
    Query::read(query, &[])?;
    Ok(json_response(StatusCode::OK, tool(&*known(catalog, id)?)))
}

/// Enables or disables a tool and stores the change.
pub(super) async fn switch(shared: &Shared, id: &str, request: Request<Incoming>) -> Answer {
    Query::read(request.uri().query(), &[])?;
    let change = Change::read(&body::object(request).await?)?;
    let entry = known(&*shared.settled().await, id)?;
    let listed = ListedTool {
        wire_name: entry.wire_name.clone(),
        definition: entry.raw.as_str().to_owned(),
        definition_hash: entry.definition_hash.clone(),
    };
    let reason = change.reason.as_deref().filter(|_| !change.enabled);
    let kept = shared.journal.store().enable_tool(&entry.source, &listed, change.enabled, reason).await;
    kept.map_err(|error| {
        tracing::error!(target: "wharf::store", "a tool could not be switched: {error}");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this cannot be remembered at the moment")
            .hint("nothing has changed; try again, and look at the log of wharf")
    })?;
    let off = (!change.enabled).then(|| change.reason.unwrap_or_default());
    shared.handle.switch(&entry.id(), off).await;
    let (tool_id, enabled) = (entry.id(), change.enabled);
    tracing::info!(target: "wharf::tools", tool_id, enabled, "a tool was switched");
    Ok(json_response(StatusCode::OK, tool(&*known(&shared.handle.catalog(), id)?)))
}

/// The body of a request that enables or disables a tool.
struct Change {
    enabled: bool,
    reason: Option<String>,
}

impl Change {
    fn read(body: &Raw) -> Result<Change, Problem> {
        body::only(body, &["enabled", "reason"])?;
        let enabled = body.member("enabled").and_then(|it| it.decode().ok());
        let enabled = enabled.ok_or_else(|| body::malformed("`enabled` has to be true or false"))?;
        let reason = body::text(body, "reason", LONGEST_REASON)?;
        Ok(Change { enabled, reason })
    }
}

fn known(catalog: &Catalog, id: &str) -> Result<Arc<ToolEntry>, Problem> {
    catalog.tool(id).cloned().ok_or_else(|| Problem::not_found("tool", id))
}

fn tool(entry: &ToolEntry) -> Raw {
    let mut tool = project::tool(entry);
    tool["tool_id"] = json!(entry.id());
    tool["aliases"] = json!(entry.aliases());
    tool["for_models"] = json!(entry.for_models);
    tool["enabled"] = json!(entry.disabled.is_none());
    tool["reason"] = json!(entry.disabled.as_ref().filter(|it| !it.is_empty()));
    tool.into()
}
