//! REST endpoints for sources: their definition, status and circuit breakers. [`registering`] registers and changes
//! sources, [`refreshing`] reads their lists again.

mod refreshing;
mod registering;
mod view;

use super::HandlerResult;
use crate::api::{ApiState, json_response, problem::Problem, query::Query};
use http::StatusCode;
pub(super) use refreshing::refresh;
pub(super) use registering::{change, register, remove};
use view::SourceView;
use wharf_runtime::{Handle, SourceState, views};

pub(super) fn list(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["q", "limit", "cursor"])?;
    let catalog = shared.handle.catalog();
    let mut all = SourceView::all(&shared.handle, &shared.registry);
    all.retain(|it| query.matches_search(it.name()));
    query.page(&all, |it| it.id().to_owned(), |it| it.show(&catalog, &shared.registry).into())
}

pub(super) async fn get(shared: &ApiState, id_or_name: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let all = SourceView::all(&shared.handle, &shared.registry);
    let found = SourceView::find(&all, id_or_name).ok_or_else(|| Problem::not_found("source", id_or_name))?;
    let mut shown = found.show(&shared.handle.catalog(), &shared.registry);
    shown["deprecated"] = refreshing::deprecated(found.name(), shared).await?.into();
    Ok(json_response(StatusCode::OK, shown))
}

pub(super) fn connections(handle: &Handle, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let (mut sources, catalog) = (handle.sources(), handle.catalog());
    sources.retain(|it| query.matches("source", it.source.name.expose()));
    query.page(&sources, name, |it| {
        let tools = catalog.tools.iter().filter(|tool| tool.source == it.source.name.expose());
        views::connection(it, tools.map(|it| &**it)).into()
    })
}

pub(super) fn breakers(handle: &Handle, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let mut sources = handle.sources();
    sources.retain(|it| query.matches("source", it.source.name.expose()));
    query.page(&sources, name, |it| views::breaker(it.source.name.shown(), &it.circuit_breaker).into())
}

fn name(state: &SourceState) -> String {
    state.source.name.expose().to_owned()
}
