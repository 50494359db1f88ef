//! REST: the same tools, for programs that speak plain HTTP.

mod call;
mod calls;
mod tools;

use super::{json_response, problem::Problem};
use crate::journal::Journal;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use wharf_mcp::serve::http::Body;
use wharf_runtime::{Handle, project};

/// What a handler comes to.
type Answer = Result<Response<Body>, Problem>;

pub(super) async fn respond(handle: &Handle, journal: &Journal, request: Request<Incoming>) -> Answer {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let words = words(&path)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match (&method, &words[..]) {
        (&Method::GET, ["tools"]) => Ok(tools::list(handle, request.uri().query())),
        (&Method::GET, ["tools", id]) => tools::get(handle, id),
        (&Method::POST, ["tools", id, "call"]) => call::run(handle, journal, id, request).await,
        (&Method::GET, ["calls"]) => calls::list(journal.store(), request.uri().query()).await,
        (&Method::GET, ["calls", id]) => calls::get(journal.store(), id).await,
        (&Method::GET, ["connections"]) => Ok(connections(handle)),
        (&Method::POST, ["connections", name, "restart"]) => done(handle.restart(name)),
        (&Method::GET, ["breakers"]) => Ok(breakers(handle)),
        (&Method::POST, ["breakers", name, "reset"]) => done(handle.reset(name)),
        (&Method::GET, ["prompts"]) => Ok(prompts(handle)),
        (&Method::POST, ["prompts", name]) => prompt(handle, name, request).await,
        (_, ["tools" | "connections" | "breakers" | "prompts" | "calls"] | ["tools" | "calls", _]) => {
            Err(Problem::not_allowed("GET"))
        }
        (
            _,
            ["tools", _, "call"] | ["connections", _, "restart"] | ["breakers", _, "reset"] | ["prompts", _],
        ) => Err(Problem::not_allowed("POST")),
        _ => Err(Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at `{path}`"))),
    }
}

/// The words of a path behind `/api/v1/`, each as it is meant.
fn words(path: &str) -> Result<Vec<String>, Problem> {
    let rest = path.strip_prefix("/api/v1/").unwrap_or_default();
    let word = |it: &str| percent_decode_str(it).decode_utf8().map(|it| it.into_owned());
    let words: Result<Vec<String>, _> = rest.split('/').map(word).collect();
    words.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the path is not UTF-8"))
}

/// A list in the form that all lists have.
fn items(items: Vec<Value>) -> Response<Body> {
    json_response(StatusCode::OK, &json!({ "items": items, "next_cursor": null }))
}

fn connections(handle: &Handle) -> Response<Body> {
    let catalog = handle.catalog();
    let sources = handle.sources();
    let all = sources.iter().map(|it| {
        let tools = catalog.tools.iter().filter(|tool| tool.source == it.source.name.expose());
        project::connection(it, tools.map(|it| &**it))
    });
    items(all.collect())
}

fn breakers(handle: &Handle) -> Response<Body> {
    items(handle.sources().iter().map(|it| project::breaker(it.source.name.shown(), &it.gate)).collect())
}

fn prompts(handle: &Handle) -> Response<Body> {
    let catalog = handle.catalog();
    let all = catalog.prompts.iter().map(|it| {
        let mut prompt: Value = it.prompt.raw.decode_or_default();
        (prompt["name"], prompt["wire_name"]) = (json!(it.name), json!(it.prompt.name));
        prompt["source"] = json!(it.source);
        prompt
    });
    items(all.collect())
}

async fn prompt(handle: &Handle, name: &str, request: Request<Incoming>) -> Answer {
    let body = call::body(request).await?;
    let arguments = body.member("arguments");
    let result = handle.prompt(name, arguments.as_ref()).await;
    let result = result.map_err(|fault| Problem::of(&fault, None))?;
    Ok(json_response(StatusCode::OK, &result.decode_or_default()))
}

fn done(result: Result<(), std::sync::Arc<wharf_runtime::Fault>>) -> Answer {
    result.map_err(|fault| Problem::of(&fault, None))?;
    Ok(json_response(StatusCode::OK, &json!({ "ok": true })))
}
