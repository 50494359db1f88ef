//! The REST API: tools, prompts, calls and sources as plain HTTP and JSON.

mod agent_file;
mod call;
mod call_values;
mod calls;
mod clients;
mod idempotency;
mod import_text;
mod lock;
mod logs;
mod prompts;
mod results;
mod running;
mod session;
mod sources;
mod stats;
mod token_list;
mod tools;
mod why;

use super::{ApiState, json_response, problem::Problem, query::Query, routes::Route, tokens::Principal};
use crate::http_server::RequestBody;
pub(crate) use call::CALL_RECORD;
use http::{Request, Response, StatusCode};
pub(super) use idempotency::{
    DetachedTasks, claim_or_replay, key as idempotency_key, key_record, store_answer,
};
pub(super) use results::read_result;
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
    request: Request<RequestBody>,
) -> HandlerResult {
    let handle = &shared.handle;
    let query = request.uri().query();
    let needs_database = matches!(
        route,
        Route::Definitions | Route::Calls | Route::Call | Route::SwitchTool | Route::LockItems
    );
    if needs_database
        || matches!(
            route,
            Route::AcceptDefinition
                | Route::WithdrawDefinition
                | Route::Register
                | Route::ChangeSource
                | Route::RemoveSource
        )
    {
        shared.require_database()?;
    }
    match route {
        Route::OpenSession => session::open(shared, &request).await,
        Route::Session => session::get(shared, &request),
        Route::EndSession => session::end(shared, &request).await,
        Route::IssueTicket => session::issue_ticket(shared, &request).await,
        Route::Tools => tools::list(&*shared.settled().await, shared.registry.inventory(), query),
        Route::Tool => tools::get(&*shared.settled().await, shared.registry.inventory(), segment, query),
        Route::Definitions => tools::definitions(shared, segment, query).await,
        Route::LockItems => lock::list(shared, query).await,
        Route::LockFile => lock::file(shared, query).await,
        Route::AcceptDefinition => lock::accept(shared, request).await,
        Route::WithdrawDefinition => lock::withdraw(shared, segment, query).await,
        Route::WhyTool => why::why(shared, segment, &request).await,
        Route::SwitchTool => tools::switch(shared, segment, request).await,
        Route::CallTool => call::run(shared, segment, request).await,
        Route::Calls => calls::list(shared.journal.calls().await, query).await,
        Route::Call => calls::get(shared.journal.calls().await, segment, query).await,
        Route::Results | Route::Result | Route::QueryResult | Route::DeleteResult => {
            results::respond(shared, route, segment, request).await
        }
        Route::Stats => stats::get(shared.journal.stats(), query),
        Route::Logs => logs::list(query),
        Route::Clients => clients::list(shared.service.handler().clients(), query),
        Route::Running => running::list(handle, query),
        Route::CancelCall => running::cancel(handle, segment, query),
        Route::Connections => sources::connections(handle, query),
        Route::Restart => acknowledge(query, handle.restart(segment)),
        Route::Breakers => sources::breakers(shared, query),
        Route::Reset => sources::reset_breaker(shared, segment, query),
        Route::Prompts => prompts::list(&*shared.settled().await, query),
        Route::FillIn => prompts::fill_in(shared, segment, request).await,
        Route::Sources => sources::list(shared, query),
        Route::Source => sources::get(shared, segment, query).await,
        Route::Register => sources::register(shared, request).await,
        Route::ChangeSource => sources::change(shared, segment, request).await,
        Route::RemoveSource => sources::remove(shared, segment, query).await,
        Route::ExplainSource => sources::explain(shared, segment, query),
        Route::AgentFile => agent_file::get(shared, query),
        Route::CheckAgentFile => agent_file::check(shared, request).await,
        Route::Import => import_text::run(shared, request).await,
        Route::Tokens => token_list::list(shared, query).await,
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
pub(super) fn principal(request: &Request<RequestBody>) -> Arc<str> {
    request.extensions().get::<Arc<Principal>>().map_or_else(|| "".into(), |it| it.name.clone())
}
