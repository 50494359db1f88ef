//! The sources of tools: what they are, how they stand, and their breakers.

use super::Answer;
use crate::front::{json_response, problem::Problem, query::Query};
use http::StatusCode;
use serde_json::{Value, json};
use wharf_runtime::{
    Catalog, Handle, SourceState,
    catalog::Discovery,
    config::{Lifecycle, Source},
    project,
};

pub(super) fn list(handle: &Handle, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["q", "limit", "cursor"])?;
    let (mut sources, catalog) = (handle.sources(), handle.catalog());
    sources.retain(|it| query.finds(it.source.name.shown()));
    query.page(&sources, name, |it| source(it, &catalog))
}

pub(super) fn get(handle: &Handle, id: &str, query: Option<&str>) -> Answer {
    Query::read(query, &[])?;
    let sources = handle.sources();
    let found = sources.iter().find(|it| it.source.name.expose() == id);
    let found = found.ok_or_else(|| Problem::not_found("source", id))?;
    Ok(json_response(StatusCode::OK, &source(found, &handle.catalog())))
}

pub(super) fn connections(handle: &Handle, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let (mut sources, catalog) = (handle.sources(), handle.catalog());
    sources.retain(|it| query.is("source", it.source.name.expose()));
    query.page(&sources, name, |it| {
        let tools = catalog.tools.iter().filter(|tool| tool.source == it.source.name.expose());
        project::connection(it, tools.map(|it| &**it))
    })
}

pub(super) fn breakers(handle: &Handle, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["source", "limit", "cursor"])?;
    let mut sources = handle.sources();
    sources.retain(|it| query.is("source", it.source.name.expose()));
    query.page(&sources, name, |it| project::breaker(it.source.name.shown(), &it.gate))
}

fn name(state: &SourceState) -> String {
    state.source.name.expose().to_owned()
}

fn source(state: &SourceState, catalog: &Catalog) -> Value {
    let SourceState { source, standing, connection, .. } = state;
    let Source { description, .. } = &**source;
    let id = source.name.expose();
    let (discovery, error) = match catalog.discovery(id) {
        None | Some(Discovery::Pending) => ("pending", None),
        Some(Discovery::Asleep) => ("asleep", None),
        Some(Discovery::Done) => ("done", None),
        Some(Discovery::Failed(fault)) => ("failed", Some(project::error(fault))),
    };
    json!({
        "id": id,
        "name": source.name.shown(),
        "description": description.shown(),
        // What the agent file names; it is changed there.
        "origin": "file",
        "enabled": true,
        "transport": source.endpoint.transport(),
        "lifecycle": match source.lifecycle {
            Lifecycle::Singleton => "singleton",
            Lifecycle::Transient => "transient",
        },
        "required": source.required,
        "connection_state": connection.as_str(),
        "session_state": standing.session.as_str(),
        "health": standing.health.as_str(),
        "discovery": discovery,
        "error": error,
        "tools": catalog.tools.iter().filter(|it| it.source == id).count(),
    })
}
