//! REST endpoints that list prompts and fill them in.

use super::{HandlerResult, principal};
use crate::api::{ApiState, body, json_response, problem::Problem, query::Query};
use crate::http_server::RequestBody;
use http::{Request, StatusCode};
use serde_json::json;
use wharf_mcp::Raw;
use wharf_runtime::{Caller, Catalog, catalog::PromptEntry};

pub(super) fn list(catalog: &Catalog, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "q", "limit", "cursor"])?;
    let fits = |it: &&PromptEntry| {
        let text = || format!("{} {}", it.name, it.prompt.raw.as_str());
        query.matches("source", &it.source) && (query.text("q").is_none() || query.matches_search(&text()))
    };
    let prompts: Vec<&PromptEntry> = catalog.prompts.iter().filter(fits).collect();
    query.page(&prompts, |it| it.name.clone(), |it| prompt(it))
}

pub(super) async fn fill_in(shared: &ApiState, name: &str, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let caller = Caller::without_client(principal(&request));
    let body = body::read_object(request).await?;
    body::reject_unknown_keys(&body, &["arguments"])?;
    let arguments = body.member("arguments");
    if arguments.as_ref().is_some_and(|it| !it.is_object()) {
        return Err(body::malformed("`arguments` is not an object"));
    }
    shared.check_call_limit()?;
    let result = shared.handle.prompt(name, arguments.as_ref(), Some(&caller)).await;
    let result = result.map_err(|fault| Problem::of(&fault, None))?;
    Ok(json_response(StatusCode::OK, result))
}

fn prompt(entry: &PromptEntry) -> Raw {
    let raw = &entry.prompt.raw;
    let added = [("source", &entry.source), ("wire_name", &entry.prompt.name), ("name", &entry.name)];
    added.into_iter().fold(raw.clone(), |raw, (key, text)| raw.with(key, &json!(text).into()))
}
