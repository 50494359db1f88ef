//! REST endpoints for sources: their definition, status and circuit breakers. [`registering`] registers and changes
//! sources, [`refreshing`] reads their lists again.

mod refreshing;
mod registering;
mod view;

use super::Answer;
use crate::front::{Shared, json_response, problem::Problem, query::Query};
use http::StatusCode;
pub(super) use refreshing::refresh;
pub(super) use registering::{change, register, remove};
use view::View;
use wharf_runtime::{Handle, SourceState, project};

pub(super) fn list(shared: &Shared, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["q", "limit", "cursor"])?;
    let catalog = shared.handle.catalog();
    let mut all = View::all(&shared.handle, &shared.registry);
    all.retain(|it| query.finds(it.name()));
    query.page(&all, |it| it.id().to_owned(), |it| it.show(&catalog, &shared.registry).into())
}

pub(super) async fn get(shared: &Shared, word: &str, query: Option<&str>) -> Answer {
    Query::read(query, &[])?;
    let all = View::all(&shared.handle, &shared.registry);
    let found = View::find(&all, word).ok_or_else(|| Problem::not_found("source", word))?;
    let mut shown = found.show(&shared.handle.catalog(), &shared.registry);
    shown["deprecated"] = refreshing::deprecated(found.name(), shared).await?.into();
    Ok(json_response(StatusCode::OK, shown))
}

pub(super) fn connections(handle: &Handle, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let (mut sources, catalog) = (handle.sources(), handle.catalog());
    sources.retain(|it| query.is("source", it.source.name.expose()));
    query.page(&sources, name, |it| {
        let tools = catalog.tools.iter().filter(|tool| tool.source == it.source.name.expose());
        project::connection(it, tools.map(|it| &**it)).into()
    })
}

pub(super) fn breakers(handle: &Handle, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let mut sources = handle.sources();
    sources.retain(|it| query.is("source", it.source.name.expose()));
    query.page(&sources, name, |it| project::breaker(it.source.name.shown(), &it.gate).into())
}

fn name(state: &SourceState) -> String {
    state.source.name.expose().to_owned()
}
