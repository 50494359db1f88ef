//! REST endpoint that explains whether a tool can be called.

use super::HandlerResult;
use crate::http_server::RequestBody;
use crate::{
    api::{ApiState, json_response, problem::Problem, query::Query, tokens::Principal},
    recent_calls::add_recent_calls,
    registry::RegistrationState,
    why_layers::{ask_layer, limit_layer, note_deferred, role_layer},
};
use http::{Request, StatusCode};
use std::sync::Arc;
use wharf_config::Role;
use wharf_runtime::{
    time_format::rfc3339,
    why::{Audience, ToolExplanation, explain_tool},
};
use wharf_store::ToolRow;

/// Explains whether a tool can be called.
pub(super) async fn why(shared: &ApiState, id: &str, request: &Request<RequestBody>) -> HandlerResult {
    let query = Query::read(request.uri().query(), &["for", "principal"])?;
    let audience = query.choice("for", &[("client", Audience::Client), ("agent", Audience::Agent)])?;
    let asking = request.extensions().get::<Arc<Principal>>().cloned().ok_or_else(Problem::unauthorized)?;
    let principal = match query.text("principal").filter(|it| **it != *asking.name) {
        None => query.text("principal").map(|_| asking.clone()),
        Some(name) => {
            asking.require_role(Role::Operator)?;
            let found = shared.tokens.find(|it| *it.name == *name);
            Some(found.ok_or_else(|| Problem::not_found("principal", name))?)
        }
    };
    let audience = audience.unwrap_or_default();
    let mut explanation = explain_tool(&shared.handle, id, audience);
    note_history(shared, &mut explanation).await;
    if explanation.is_unknown {
        return Err(Problem::not_found("tool", id));
    }
    let caller = principal.as_ref().unwrap_or(&asking);
    add_layers(shared, &mut explanation, audience, &caller.name);
    if let Some(principal) = &principal {
        explanation.add_layer("override", role_layer(&principal.name, principal.role));
    }
    if !shared.journal.status().is_away() {
        add_recent_calls(&mut explanation, shared.journal.calls().await, &shared.handle).await;
    }
    Ok(json_response(StatusCode::OK, explanation.to_json()))
}

/// Adds what the gateway decides about a tool.
fn add_layers(shared: &ApiState, explanation: &mut ToolExplanation, audience: Audience, principal: &str) {
    let catalog = shared.handle.catalog();
    let Some(tool) = catalog.tool(&explanation.tool_id) else { return };
    let is_deferred = match audience {
        Audience::Client => {
            shared.tool_mode.is_search_for(principal, &catalog) && !shared.tool_mode.is_pinned(tool)
        }
        Audience::Agent => shared.agent_runs.is_deferred(tool, &catalog),
    };
    if is_deferred {
        note_deferred(explanation);
    }
    if let Some(limit) = shared.limits.max_calls {
        explanation.add_layer("switch", limit_layer(shared.handle.in_flight(), limit));
    }
    if audience == Audience::Agent {
        explanation.add_layer("switch", ask_layer(shared.agent_runs.rules().explain(tool)));
    }
}

/// Explains what only the gateway's tables know: a source that is disabled, a tool that was listed before, and who
/// disabled a tool.
async fn note_history(shared: &ApiState, explanation: &mut ToolExplanation) {
    let Some((source, name)) = explanation.tool_id.split_once(':') else { return };
    let registered = shared.registry.registered();
    let is_disabled =
        registered.entry(source).is_some_and(|it| matches!(it.state, RegistrationState::Disabled));
    let Some(layer) = explanation.layers.iter_mut().find(|it| !it.is_ok) else { return };
    match (layer.name, layer.code) {
        ("registration", Some(_)) if is_disabled => layer.code = Some("disabled"),
        ("listing", Some("not_listed" | "vanished")) => {
            let Some(row) = stored_tool(shared, source, name).await else { return };
            layer.code = Some("vanished");
            layer.detail = describe_vanished(&row);
            explanation.is_unknown = false;
        }
        ("switch", Some("switched_off")) => {
            let Some(row) = stored_tool(shared, source, name).await else { return };
            layer.detail = describe_switch(&row);
        }
        _ => {}
    }
}

/// Reads what the database knows about a tool.
async fn stored_tool(shared: &ApiState, source: &str, wire_name: &str) -> Option<ToolRow> {
    if shared.journal.status().is_away() {
        return None;
    }
    let rows = shared.journal.store().tools(source).await.unwrap_or_default();
    rows.into_iter().find(|it| it.wire_name == wire_name)
}

fn describe_vanished(row: &ToolRow) -> String {
    let time = |micros: i64| rfc3339(super::tools::time(micros));
    let gone = match row.vanished_at {
        Some(since) => format!("the server has not listed the tool since {}", time(since)),
        None => "the server no longer lists the tool".to_owned(),
    };
    format!("{gone}; it listed it first at {}", time(row.first_seen))
}

fn describe_switch(row: &ToolRow) -> String {
    let who = row.disabled_by.as_deref().map_or_else(|| "an operator".to_owned(), |it| format!("`{it}`"));
    let at = row.disabled_at.map(|it| format!(" at {}", rfc3339(super::tools::time(it))));
    let why = row.reason.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("{who} disabled the tool{}{why}", at.unwrap_or_default())
}
