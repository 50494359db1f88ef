//! The REST API: tools, prompts, calls and sources as plain HTTP and JSON.

mod call;
mod calls;
mod ids;
mod once;
mod prompts;
mod sources;
mod tools;

use super::{Shared, json_response, keys::Principal, problem::Problem, query::Query, routes::Route};
pub(crate) use call::CALL_RECORD;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
pub(super) use ids::Ids;
pub(super) use once::Once;
use serde_json::json;
use std::sync::Arc;
use wharf_mcp::serve::http::Body;

/// The result of a handler.
type Answer = Result<Response<Body>, Problem>;

/// Answers requests below `/api/v1/`. `word` is the variable segment of the path.
pub(super) async fn respond(
    shared: &Arc<Shared>,
    route: Route,
    word: &str,
    request: Request<Incoming>,
) -> Answer {
    let handle = &shared.handle;
    let query = request.uri().query();
    let remembered = matches!(route, Route::Calls | Route::Call | Route::SwitchTool);
    if remembered || matches!(route, Route::Register | Route::ChangeSource | Route::RemoveSource) {
        shared.has_database()?;
    }
    match route {
        Route::Tools => tools::list(&*shared.settled().await, query),
        Route::Tool => tools::get(&*shared.settled().await, word, query),
        Route::SwitchTool => tools::switch(shared, word, request).await,
        Route::CallTool => call::run(shared, word, request).await,
        Route::Calls => calls::list(shared.journal.calls().await, query).await,
        Route::Call => calls::get(shared.journal.calls().await, word, query).await,
        Route::Connections => sources::connections(handle, query),
        Route::Restart => done(query, handle.restart(word)),
        Route::Breakers => sources::breakers(handle, query),
        Route::Reset => done(query, handle.reset(word)),
        Route::Prompts => prompts::list(&*shared.settled().await, query),
        Route::FillIn => prompts::fill_in(shared, word, request).await,
        Route::Sources => sources::list(shared, query),
        Route::Source => sources::get(shared, word, query).await,
        Route::Register => sources::register(shared, request).await,
        Route::ChangeSource => sources::change(shared, word, request).await,
        Route::RemoveSource => sources::remove(shared, word, query).await,
        Route::RefreshSource => sources::refresh(shared, word, query).await,
        _ => Err(Problem::new(StatusCode::NOT_FOUND, "there is nothing here")),
    }
}

fn done(query: Option<&str>, result: Result<(), Arc<wharf_runtime::Fault>>) -> Answer {
    Query::read(query, &[])?;
    result.map_err(|fault| Problem::of(&fault, None))?;
    Ok(json_response(StatusCode::OK, json!({ "ok": true })))
}

/// Returns the name of the authenticated principal.
fn principal(request: &Request<Incoming>) -> Arc<str> {
    request.extensions().get::<Arc<Principal>>().map_or_else(|| "".into(), |it| it.name.clone())
}
