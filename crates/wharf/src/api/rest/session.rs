//! REST endpoints for signing in to the console.

use super::HandlerResult;
use crate::api::{
    ApiState, json_response, no_content, problem::Problem, query::Query, sign_in::SignedInBy,
    tokens::Principal,
};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use wharf_runtime::time_format::rfc3339;

/// Trades a ticket or a token for a session.
pub(super) async fn open<B>(shared: &ApiState, request: &Request<B>) -> HandlerResult {
    let (principal, _) = signed_in(request)?;
    reject_session(request)?;
    let session = shared.sign_ins.open_session(principal).await?;
    tracing::info!(target: "wharf::console", principal = &*principal.name, "session opened");
    let body = json!({
        "session": session.secret,
        "expires_at": rfc3339(session.expires_at),
        "principal": principal_json(principal),
    });
    Ok(json_response(StatusCode::CREATED, body))
}

/// Shows the principal and what this gateway offers.
pub(super) fn get<B>(shared: &ApiState, request: &Request<B>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let (principal, by) = signed_in(request)?;
    let (via, expires_at) = match by {
        SignedInBy::Nothing => ("open", None),
        SignedInBy::Session { expires_at, .. } => ("session", Some(rfc3339(*expires_at))),
        SignedInBy::Token | SignedInBy::Ticket => ("token", None),
    };
    let registered = shared.registry.registered();
    let database = if shared.journal.store().is_shared() { "postgres" } else { "sqlite" };
    let body = json!({
        "principal": principal_json(principal),
        "via": via,
        "expires_at": expires_at,
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": rfc3339(shared.started_at),
        "features": {
            "chat": registered.file.model.is_some(),
            "processes_over_rest": registered.grants.processes_over_rest,
            "database": database,
        },
        "limits": shared.limits.to_json(),
    });
    Ok(json_response(StatusCode::OK, body))
}

/// Ends the session of the request.
pub(super) async fn end<B>(shared: &ApiState, request: &Request<B>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let (principal, by) = signed_in(request)?;
    let SignedInBy::Session { key, .. } = by else {
        return Err(Problem::new(StatusCode::CONFLICT, "this request has no session that could end")
            .hint("a token is valid until the operator removes it from wharf.toml"));
    };
    shared.sign_ins.end_session(key).await?;
    tracing::info!(target: "wharf::console", principal = &*principal.name, "session ended");
    Ok(no_content())
}

/// Issues a ticket for the principal of the request.
pub(super) async fn issue_ticket<B>(shared: &ApiState, request: &Request<B>) -> HandlerResult {
    let (principal, _) = signed_in(request)?;
    reject_session(request)?;
    let ticket = shared.sign_ins.issue_ticket(principal).await?;
    let body = json!({
        "ticket": ticket.secret,
        "expires_at": rfc3339(ticket.expires_at),
        "path": format!("/#ticket={}", ticket.secret),
    });
    Ok(json_response(StatusCode::CREATED, body))
}

/// Rejects query parameters, and a session as credential: sessions that buy sessions would never end.
fn reject_session<B>(request: &Request<B>) -> Result<(), Problem> {
    Query::read(request.uri().query(), &[])?;
    match signed_in(request)?.1 {
        SignedInBy::Session { .. } => {
            Err(Problem::new(StatusCode::CONFLICT, "a session cannot sign in again")
                .hint("use the token, or run `wharf console`"))
        }
        SignedInBy::Nothing | SignedInBy::Token | SignedInBy::Ticket => Ok(()),
    }
}

fn signed_in<B>(request: &Request<B>) -> Result<(&Arc<Principal>, &SignedInBy), Problem> {
    let extensions = request.extensions();
    extensions.get().zip(extensions.get()).ok_or_else(Problem::unauthorized)
}

fn principal_json(principal: &Principal) -> Value {
    json!({ "name": &*principal.name, "role": principal.role.as_str() })
}
