//! Registers, changes and removes sources.
//!
//! The work continues when its caller disconnects, so that the table and the running sources stay consistent.

use super::{
    HandlerResult, SourceView,
    refreshing::{StoredTools, wait_until_listed},
};
use crate::http_server::RequestBody;
use crate::{
    accepted_definitions::accepted_definitions,
    api::{ApiState, body, json_response, no_content, problem::Problem, query::Query},
    registry::{RegistrationState, RegistryError, SourceChange, disabled_tools},
};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::sync::Arc;
use wharf_config::{Diagnostics, Severity};
use wharf_mcp::Raw;

/// Code of the diagnostic for a stdio source where registering processes is not allowed.
const NO_PROCESSES: &str = "stdio_registration_disabled";

/// Registers a source and returns it with its inventory.
pub(in crate::api::rest) async fn register(
    shared: &Arc<ApiState>,
    request: Request<RequestBody>,
) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let body = body::read_object(request).await?;
    let state = shared.clone();
    run_detached(shared, async move { register_source(&state, &body).await }).await
}

async fn register_source(shared: &ApiState, body: &Raw) -> HandlerResult {
    let registration = shared.registry.read(body.as_str()).map_err(refusal_problem)?;
    let before = StoredTools::of(&registration.name, shared).await?;
    let entry = shared.registry.register(registration).await.map_err(refusal_problem)?;
    let (id, name) = (entry.row.id.as_str(), entry.row.name.as_str());
    tracing::info!(target: "wharf::sources", id, source = name, state = entry.state.as_str(), "source registered");
    let mut inventory = Value::Null;
    if matches!(entry.state, RegistrationState::Ready(_))
        && let Ok(catalog) = wait_until_listed(name, shared).await
    {
        inventory = before.report(name, Some(id), &catalog, shared).await?;
    }
    let mut shown = show(shared, id)?;
    shown["inventory"] = inventory;
    let mut response = json_response(StatusCode::CREATED, shown);
    let place = format!("/api/v1/sources/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
    if let Ok(place) = HeaderValue::try_from(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// Changes a registered source.
pub(in crate::api::rest) async fn change(
    shared: &Arc<ApiState>,
    id_or_name: &str,
    request: Request<RequestBody>,
) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let wanted = read_if_match(request.headers())?;
    let mut change = read_change(&body::read_object(request).await?)?;
    change.epoch = change.epoch.or(wanted);
    let (state, id_or_name) = (shared.clone(), id_or_name.to_owned());
    let work = async move {
        let entry = state.registry.change(&id_or_name, change).await.map_err(refusal_problem)?;
        let (id, epoch) = (entry.row.id.as_str(), entry.row.epoch);
        tracing::info!(target: "wharf::sources", id, source = entry.row.name, epoch, "source changed");
        Ok(json_response(StatusCode::OK, show(&state, id)?))
    };
    run_detached(shared, work).await
}

/// Removes a registered source. Calls in flight finish; new ones are rejected.
pub(in crate::api::rest) async fn remove(
    shared: &Arc<ApiState>,
    id_or_name: &str,
    query: Option<&str>,
) -> HandlerResult {
    Query::read(query, &[])?;
    let (state, id_or_name) = (shared.clone(), id_or_name.to_owned());
    let work = async move {
        let entry = state.registry.remove(&id_or_name).await.map_err(refusal_problem)?;
        let id = entry.row.id.as_str();
        tracing::info!(target: "wharf::sources", id, source = entry.row.name, "source removed");
        // The disabled tools and accepted definitions of the source were deleted with it, so the runtime reloads both.
        let store = state.journal.store();
        let off = disabled_tools(store).await.map_err(|it| refusal_problem(it.into()))?;
        state.handle.set_disabled_tools(off);
        let accepted = accepted_definitions(store).await.map_err(|it| refusal_problem(it.into()))?;
        state.handle.set_accepted_definitions(accepted);
        Ok(no_content())
    };
    run_detached(shared, work).await
}

async fn run_detached(
    shared: &ApiState,
    work: impl Future<Output = HandlerResult> + Send + 'static,
) -> HandlerResult {
    let shutting_down = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "wharf is shutting down");
    shared.detached_tasks.run(work).await.ok_or_else(shutting_down)?
}

fn show(shared: &ApiState, id: &str) -> Result<Value, Problem> {
    let all = SourceView::all(&shared.handle, &shared.registry);
    let found = SourceView::find(&all, id).ok_or_else(|| Problem::not_found("source", id))?;
    Ok(found.show(&shared.handle.catalog(), &shared.registry))
}

/// Parses the epoch in `If-Match`, if present.
fn read_if_match(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let epoch = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')?.parse().ok());
    match (text, epoch) {
        ("*", _) => Ok(None),
        (_, Some(epoch)) => Ok(Some(epoch)),
        _ => Err(body::malformed("`If-Match` has to be the `epoch` of the source, in quotes")),
    }
}

fn read_change(body: &Raw) -> Result<SourceChange, Problem> {
    SourceChange::read(&body.decode_or_default()).map_err(|why| body::malformed(why).hint(SourceChange::HINT))
}

/// Maps a refusal to a problem; nothing else does.
fn refusal_problem(refusal: RegistryError) -> Problem {
    let conflict = |what: &str| Problem::new(StatusCode::CONFLICT, what);
    match refusal {
        RegistryError::Invalid(diagnostics) => diagnostics_problem(&diagnostics),
        RegistryError::Unknown => Problem::new(StatusCode::NOT_FOUND, "there is no such source")
            .hint("GET /api/v1/sources lists all sources"),
        RegistryError::InAgentFile => conflict("this source is defined in the agent file")
            .hint("change it there; wharf applies the change within a second"),
        RegistryError::Taken { by_file: true } => {
            conflict("the agent file has a source of this name").hint("register it under another name")
        }
        RegistryError::Taken { by_file: false } => conflict("a source of this name already exists")
            .hint("remove it first, change it with PATCH, or register this one under another name"),
        RegistryError::Full => {
            conflict("the maximum number of registered sources is reached").hint("remove one first")
        }
        RegistryError::Stale(epoch) => conflict("the source was changed in the meantime")
            .hint(format!("read it again: its epoch is {epoch} now")),
        RegistryError::SecretSealer(error) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()).hint(error.hint())
        }
        RegistryError::Store(error) => {
            tracing::error!(target: "wharf::store", "a source could not be stored: {error}");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the change could not be stored")
                .hint("try again, and check the log of wharf")
        }
    }
}

/// Builds a problem that lists all errors of the request.
fn diagnostics_problem(diagnostics: &Diagnostics) -> Problem {
    let errors = diagnostics.items().iter().filter(|it| it.severity == Severity::Error);
    let first = errors.clone().find(|it| it.code == NO_PROCESSES).or_else(|| errors.clone().next());
    let detail =
        first.map_or_else(|| "the request is not a valid source".to_owned(), |it| it.message.clone());
    let forbidden = first.is_some_and(|it| it.code == NO_PROCESSES);
    let problem = match forbidden {
        true => Problem::new(StatusCode::FORBIDDEN, detail).kind(NO_PROCESSES),
        false => Problem::new(StatusCode::BAD_REQUEST, detail).kind("ConfigError"),
    };
    let problem = match first.and_then(|it| it.hint.clone()) {
        Some(hint) => problem.hint(hint),
        None => problem,
    };
    let shown = |it: &Value| {
        let part = |key: &str| it[key].clone();
        json!({ "code": part("code"), "message": part("message"), "line": part("line"),
            "column": part("column"), "hint": part("hint") })
    };
    let all = diagnostics.to_json();
    let errors = all.as_array().into_iter().flatten().filter(|it| it["severity"] == "error");
    problem.problems(errors.map(shown).collect())
}
