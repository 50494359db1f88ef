//! Registers, changes and removes sources.
//!
//! The work continues when its caller disconnects, so that the table and the running sources stay consistent.

use super::{
    Answer, View,
    refreshing::{Before, discovered},
};
use crate::{
    front::{Shared, body, document, json_response, problem::Problem, query::Query},
    registry::{Change, Refusal, State, switched_off},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::sync::Arc;
use wharf_config::{Diagnostics, Severity};
use wharf_mcp::{Raw, serve::http::Body};

/// Code of the diagnostic for a stdio source where registering processes is not allowed.
const NO_PROCESSES: &str = "stdio_registration_disabled";

/// Registers a source and returns it with its inventory.
pub(in crate::front::rest) async fn register(shared: &Arc<Shared>, request: Request<Incoming>) -> Answer {
    Query::read(request.uri().query(), &[])?;
    let body = body::object(request).await?;
    let own = shared.clone();
    to_its_end(shared, async move { registered(&own, &body).await }).await
}

async fn registered(shared: &Shared, body: &Raw) -> Answer {
    let registration = shared.registry.read(body.as_str()).map_err(refused)?;
    let before = Before::of(&registration.name, shared).await?;
    let entry = shared.registry.register(registration).await.map_err(refused)?;
    let (id, name) = (entry.row.id.as_str(), entry.row.name.as_str());
    tracing::info!(target: "wharf::sources", id, source = name, state = entry.state.as_str(), "a source was registered");
    let mut inventory = Value::Null;
    if matches!(entry.state, State::Ready(_))
        && let Ok(catalog) = discovered(name, shared).await
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
pub(in crate::front::rest) async fn change(
    shared: &Arc<Shared>,
    word: &str,
    request: Request<Incoming>,
) -> Answer {
    Query::read(request.uri().query(), &[])?;
    let wanted = if_match(request.headers())?;
    let mut change = read_change(&body::object(request).await?)?;
    change.epoch = change.epoch.or(wanted);
    let (own, word) = (shared.clone(), word.to_owned());
    let work = async move {
        let entry = own.registry.change(&word, change).await.map_err(refused)?;
        let (id, epoch) = (entry.row.id.as_str(), entry.row.epoch);
        tracing::info!(target: "wharf::sources", id, source = entry.row.name, epoch, "a source was changed");
        Ok(json_response(StatusCode::OK, show(&own, id)?))
    };
    to_its_end(shared, work).await
}

/// Removes a registered source. Calls in flight finish; new ones are rejected.
pub(in crate::front::rest) async fn remove(shared: &Arc<Shared>, word: &str, query: Option<&str>) -> Answer {
    Query::read(query, &[])?;
    let (own, word) = (shared.clone(), word.to_owned());
    let work = async move {
        let entry = own.registry.remove(&word).await.map_err(refused)?;
        let id = entry.row.id.as_str();
        tracing::info!(target: "wharf::sources", id, source = entry.row.name, "a source was removed");
        // The disabled tools of the source were deleted with it, so the runtime reloads the list.
        let off = switched_off(own.journal.store()).await.map_err(|it| refused(it.into()))?;
        own.handle.switch_off(off);
        let mut response: Response<Body> = document(StatusCode::NO_CONTENT, "", Bytes::new());
        response.headers_mut().remove(header::CONTENT_TYPE);
        Ok(response)
    };
    to_its_end(shared, work).await
}

async fn to_its_end(shared: &Shared, work: impl Future<Output = Answer> + Send + 'static) -> Answer {
    let leaving = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "wharf is shutting down");
    shared.once.run(work).await.ok_or_else(leaving)?
}

fn show(shared: &Shared, id: &str) -> Result<Value, Problem> {
    let all = View::all(&shared.handle, &shared.registry);
    let found = View::find(&all, id).ok_or_else(|| Problem::not_found("source", id))?;
    Ok(found.show(&shared.handle.catalog(), &shared.registry))
}

/// Parses the epoch in `If-Match`, if present.
fn if_match(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let epoch = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')?.parse().ok());
    match (text, epoch) {
        ("*", _) => Ok(None),
        (_, Some(epoch)) => Ok(Some(epoch)),
        _ => Err(body::malformed("`If-Match` has to be the `epoch` of the source, in quotes")),
    }
}

fn read_change(body: &Raw) -> Result<Change, Problem> {
    Change::read(&body.decode_or_default()).map_err(|why| body::malformed(why).hint(Change::HINT))
}

/// Maps a refusal to a problem; nothing else does.
fn refused(refusal: Refusal) -> Problem {
    let conflict = |what: &str| Problem::new(StatusCode::CONFLICT, what);
    match refusal {
        Refusal::Wrong(diagnostics) => wrong(&diagnostics),
        Refusal::Unknown => Problem::new(StatusCode::NOT_FOUND, "there is no such source")
            .hint("GET /api/v1/sources lists what there is"),
        Refusal::OfFile => conflict("this source is of the agent file")
            .hint("change it there: what is written is applied within a second"),
        Refusal::Taken { by_file: true } => {
            conflict("the agent file has a source of this name").hint("register it under another name")
        }
        Refusal::Taken { by_file: false } => conflict("there is a source of this name already")
            .hint("remove it first, change it with PATCH, or register this one under another name"),
        Refusal::Full => conflict("there are as many sources as may be").hint("remove one first"),
        Refusal::Stale(epoch) => conflict("somebody else has changed this source in the meantime")
            .hint(format!("read it again: its epoch is {epoch} now")),
        Refusal::Vault(error) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()).hint(error.hint())
        }
        Refusal::Store(error) => {
            tracing::error!(target: "wharf::store", "a source could not be kept: {error}");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this cannot be remembered at the moment")
                .hint("try again, and look at the log of wharf")
        }
    }
}

/// Builds a problem that lists all errors of the request.
fn wrong(diagnostics: &Diagnostics) -> Problem {
    let errors = diagnostics.items().iter().filter(|it| it.severity == Severity::Error);
    let first = errors.clone().find(|it| it.code == NO_PROCESSES).or_else(|| errors.clone().next());
    let detail = first.map_or_else(|| "this is no source".to_owned(), |it| it.message.clone());
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
