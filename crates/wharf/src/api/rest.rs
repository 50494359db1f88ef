//! The REST API: tools, prompts, calls and sources as plain HTTP and JSON.

mod call;
mod call_values;
mod calls;
mod idempotency;
mod prompts;
mod request_ids;
mod sources;
mod tools;

use super::{ApiState, json_response, problem::Problem, query::Query, routes::Route, tokens::Principal};
pub(crate) use call::CALL_RECORD;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
pub(super) use idempotency::DetachedTasks;
pub(super) use request_ids::RequestIds;
use serde_json::json;
use std::sync::Arc;
use wharf_mcp::serve::http::Body;

/// The result of a handler.
type HandlerResult = Result<Response<Body>, Problem>;

/// Answers requests below `/api/v1/`. `segment` is the variable segment of the path.
pub(super) async fn respond(
    shared: &Arc<ApiState>,
    route: Route,
    segment: &str,
    request: Request<Incoming>,
) -> HandlerResult {
    let handle = &shared.handle;
    let query = request.uri().query();
    let needs_database = matches!(route, Route::Calls | Route::Call | Route::SwitchTool);
    if needs_database || matches!(route, Route::Register | Route::ChangeSource | Route::RemoveSource) {
        shared.require_database()?;
    }
    match route {
        Route::Tools => tools::list(&*shared.settled().await, query),
        Route::Tool => tools::get(&*shared.settled().await, segment, query),
        Route::SwitchTool => tools::switch(shared, segment, request).await,
        Route::CallTool => call::run(shared, segment, request).await,
        Route::Calls => calls::list(shared.journal.calls().await, query).await,
        Route::Call => calls::get(shared.journal.calls().await, segment, query).await,
        Route::Connections => sources::connections(handle, query),
        Route::Restart => acknowledge(query, handle.restart(segment)),
        Route::Breakers => sources::breakers(handle, query),
        Route::Reset => acknowledge(query, handle.reset_breaker(segment)),
        Route::Prompts => prompts::list(&*shared.settled().await, query),
        Route::FillIn => prompts::fill_in(shared, segment, request).await,
        Route::Sources => sources::list(shared, query),
        Route::Source => sources::get(shared, segment, query).await,
        Route::Register => sources::register(shared, request).await,
        Route::ChangeSource => sources::change(shared, segment, request).await,
        Route::RemoveSource => sources::remove(shared, segment, query).await,
        Route::RefreshSource => sources::refresh(shared, segment, query).await,
        _ => Err(Problem::new(StatusCode::NOT_FOUND, "there is no such route")),
    }
}

fn acknowledge(query: Option<&str>, result: Result<(), Arc<wharf_runtime::Fault>>) -> HandlerResult {
    Query::read(query, &[])?;
    result.map_err(|fault| Problem::of(&fault, None))?;
    Ok(json_response(StatusCode::OK, json!({ "ok": true })))
}

/// Returns the name of the authenticated principal.
fn principal(request: &Request<Incoming>) -> Arc<str> {
    request.extensions().get::<Arc<Principal>>().map_or_else(|| "".into(), |it| it.name.clone())
}
