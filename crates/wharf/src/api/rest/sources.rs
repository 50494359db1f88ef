//! REST endpoints for sources: their definition, status and circuit breakers. [`registering`] registers and changes
//! sources, [`refreshing`] reads their lists again.

mod refreshing;
mod registering;
mod view;

use super::HandlerResult;
use crate::{
    api::{ApiState, json_response, problem::Problem, query::Query},
    source_facts::{describe_model, facts_json, source_facts_json},
};
use http::StatusCode;
pub(super) use refreshing::refresh;
pub(super) use registering::{change, register, remove};
use serde_json::json;
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

/// Shows the resolved configuration of a source: the document of `wharf explain NAME --json`.
pub(super) fn explain(shared: &ApiState, id_or_name: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let all = SourceView::all(&shared.handle, &shared.registry);
    let found = SourceView::find(&all, id_or_name).ok_or_else(|| Problem::not_found("source", id_or_name))?;
    let state = match found {
        SourceView::Running(state, _) => state,
        SourceView::Idle(entry) => {
            let fault = entry.fault().ok_or_else(|| Problem::not_found("running source", id_or_name))?;
            return Err(Problem::of(&fault, None));
        }
    };
    let environment = shared.registry.environment();
    let model = shared.registry.registered().file.model.as_ref().map(|it| facts_json(describe_model(it)));
    let document = json!({ "model": model, "sources": [source_facts_json(&state.source, environment)] });
    Ok(json_response(StatusCode::OK, document))
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

pub(super) fn breakers(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let source = |it: SourceState| {
        let SourceState { source, circuit_breaker, .. } = it;
        (source.name.expose().to_owned(), source.name.shown().to_owned(), circuit_breaker)
    };
    let models = shared.agent_runs.breakers().into_iter().map(|(name, it)| (name.clone(), name, it));
    let mut all: Vec<_> = shared.handle.sources().into_iter().map(source).chain(models).collect();
    all.retain(|(name, ..)| query.matches("source", name));
    query.page(&all, |(name, ..)| name.clone(), |(_, shown, breaker)| views::breaker(shown, breaker).into())
}

/// Closes the breaker of a source, or those of a provider of models.
pub(super) fn reset_breaker(shared: &ApiState, name: &str, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    if let Err(fault) = shared.handle.reset_breaker(name)
        && !shared.agent_runs.reset_breakers(name)
    {
        return Err(Problem::of(&fault, None));
    }
    Ok(json_response(StatusCode::OK, json!({ "ok": true })))
}

fn name(state: &SourceState) -> String {
    state.source.name.expose().to_owned()
}
