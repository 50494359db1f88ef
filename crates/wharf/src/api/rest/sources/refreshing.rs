//! Reads the lists of a source again and reports the changes.

use super::{HandlerResult, SourceView};
use crate::{
    api::{ApiState, json_response, problem::Problem, query::Query},
    registry::ListedTools,
};
use http::StatusCode;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use wharf_runtime::{Catalog, Fault, catalog::Discovery};
use wharf_store::{InventoryChange, StoreError, ToolRow};

/// Timeout for reading the lists of a source.
const LIST_TIMEOUT: Duration = Duration::from_secs(180);

/// The stored tools of a source before the refresh, and the time of its start.
pub(super) struct StoredTools {
    tools: Vec<ToolRow>,
    at: Instant,
}

/// Reads the lists of a source again.
pub(in crate::api::rest) async fn refresh(
    shared: &ApiState,
    id_or_name: &str,
    query: Option<&str>,
) -> HandlerResult {
    Query::read(query, &[])?;
    if let Some(entry) = shared.registry.registered().entry(id_or_name) {
        shared.registry.reload(Some(entry.row.id.clone())).await.map_err(|it| store_failed(&it))?;
    }
    let all = SourceView::all(&shared.handle, &shared.registry);
    let source =
        SourceView::find(&all, id_or_name).ok_or_else(|| Problem::not_found("source", id_or_name))?;
    if let SourceView::Idle(entry) = source
        && let Some(fault) = entry.fault()
    {
        return Err(Problem::of(&fault, None));
    }
    let before = StoredTools::of(source.name(), shared).await?;
    let read = timeout(LIST_TIMEOUT, shared.handle.refresh(source.name())).await;
    let late = |_| Problem::new(StatusCode::GATEWAY_TIMEOUT, "the server did not list its tools in time");
    let catalog = read.map_err(late)?.map_err(|fault| Problem::of(&fault, None))?;
    if let Some(Discovery::Failed(fault)) = catalog.discovery(source.name()) {
        return Err(Problem::of(fault, None));
    }
    let id = source.entry().map(|it| it.row.id.as_str());
    let report = before.report(source.name(), id, &catalog, shared).await?;
    Ok(json_response(StatusCode::OK, report))
}

/// The tools that a source no longer offers.
pub(super) async fn deprecated(source: &str, shared: &ApiState) -> Result<Vec<String>, Problem> {
    let tools = shared.journal.store().tools(source).await.map_err(|it| store_failed(&it))?;
    Ok(tools.into_iter().filter(|it| it.status == "deprecated").map(|it| it.wire_name).collect())
}

impl StoredTools {
    pub(super) async fn of(source: &str, shared: &ApiState) -> Result<StoredTools, Problem> {
        let tools = shared.journal.store().tools(source).await.map_err(|it| store_failed(&it))?;
        Ok(StoredTools { tools, at: Instant::now() })
    }

    /// Stores the new inventory and returns the difference.
    pub(super) async fn report(
        self,
        source: &str,
        id: Option<&str>,
        catalog: &Catalog,
        shared: &ApiState,
    ) -> Result<Value, Problem> {
        let listed = ListedTools::of(source, catalog);
        let rows = listed.rows();
        shared.registry.inventory().store_tools(source, id, &listed).await.map_err(|it| store_failed(&it))?;
        let change = InventoryChange::between(&self.tools, &rows);
        Ok(json!({
            "tools_discovered": rows.len(),
            "tools_created": change.created,
            "tools_updated": change.updated,
            "tools_deprecated": change.deprecated,
            "inventory_hash": listed.hash,
            "duration_ms": self.at.elapsed().as_secs_f64() * 1_000.0,
        }))
    }
}

/// Waits until the lists of a newly registered source have been read.
pub(super) async fn wait_until_listed(
    source: &str,
    shared: &ApiState,
) -> Result<Arc<Catalog>, Option<Arc<Fault>>> {
    let reading = async {
        let catalog = shared.handle.wait_for_source(source).await;
        match catalog.discovery(source) {
            // Such a source is normally listed at its first call, so it is listed now.
            Some(Discovery::NotStarted) => shared.handle.refresh(source).await,
            _ => Ok(catalog),
        }
    };
    let catalog = timeout(REGISTRATION_LIST_TIMEOUT, reading).await.map_err(|_| None)?.map_err(Some)?;
    match catalog.discovery(source) {
        Some(Discovery::Done) => Ok(catalog),
        Some(Discovery::Failed(fault)) => Err(Some(fault.clone())),
        _ => Err(None),
    }
}

/// How long registering waits for the lists of a source. Reading continues after the timeout.
const REGISTRATION_LIST_TIMEOUT: Duration = Duration::from_secs(60);

fn store_failed(error: &StoreError) -> Problem {
    tracing::error!(target: "wharf::store", "the tools of a source could not be read or stored: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer")
        .hint("try again, and check the log of wharf")
}
