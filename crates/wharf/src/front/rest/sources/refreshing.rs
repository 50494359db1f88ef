//! Reads the lists of a source again and reports the changes.

use super::{Answer, View};
use crate::{
    front::{Shared, json_response, problem::Problem, query::Query},
    registry::Listed,
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
const PATIENCE: Duration = Duration::from_secs(180);

/// The stored tools of a source before the refresh, and the time of its start.
pub(super) struct Before {
    tools: Vec<ToolRow>,
    at: Instant,
}

/// Reads the lists of a source again.
pub(in crate::front::rest) async fn refresh(shared: &Shared, word: &str, query: Option<&str>) -> Answer {
    Query::read(query, &[])?;
    if let Some(entry) = shared.registry.book().entry(word) {
        shared.registry.renew(&entry.row.id).await.map_err(|it| unkept(&it))?;
    }
    let all = View::all(&shared.handle, &shared.registry);
    let source = View::find(&all, word).ok_or_else(|| Problem::not_found("source", word))?;
    if let View::Idle(entry) = source
        && let Some(fault) = entry.fault()
    {
        return Err(Problem::of(&fault, None));
    }
    let before = Before::of(source.name(), shared).await?;
    let read = timeout(PATIENCE, shared.handle.refresh(source.name())).await;
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
pub(super) async fn deprecated(source: &str, shared: &Shared) -> Result<Vec<String>, Problem> {
    let tools = shared.journal.store().tools(source).await.map_err(|it| unkept(&it))?;
    Ok(tools.into_iter().filter(|it| it.status == "deprecated").map(|it| it.wire_name).collect())
}

impl Before {
    pub(super) async fn of(source: &str, shared: &Shared) -> Result<Before, Problem> {
        let tools = shared.journal.store().tools(source).await.map_err(|it| unkept(&it))?;
        Ok(Before { tools, at: Instant::now() })
    }

    /// Stores the new inventory and returns the difference.
    pub(super) async fn report(
        self,
        source: &str,
        id: Option<&str>,
        catalog: &Catalog,
        shared: &Shared,
    ) -> Result<Value, Problem> {
        let listed = Listed::of(source, catalog);
        let rows = listed.rows();
        shared.registry.inventory().note(source, id, &listed).await.map_err(|it| unkept(&it))?;
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
pub(super) async fn discovered(source: &str, shared: &Shared) -> Result<Arc<Catalog>, Option<Arc<Fault>>> {
    let reading = async {
        let catalog = shared.handle.heard(source).await;
        match catalog.discovery(source) {
            // Such a source is normally listed at its first call, so it is listed now.
            Some(Discovery::Asleep) => shared.handle.refresh(source).await,
            _ => Ok(catalog),
        }
    };
    let catalog = timeout(REGISTERING, reading).await.map_err(|_| None)?.map_err(Some)?;
    match catalog.discovery(source) {
        Some(Discovery::Done) => Ok(catalog),
        Some(Discovery::Failed(fault)) => Err(Some(fault.clone())),
        _ => Err(None),
    }
}

/// How long registering waits for the lists of a source. Reading continues after the timeout.
const REGISTERING: Duration = Duration::from_secs(60);

fn unkept(error: &StoreError) -> Problem {
    tracing::error!(target: "wharf::store", "what a source offers could not be read or written down: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer at the moment")
        .hint("try again, and look at the log of wharf")
}
