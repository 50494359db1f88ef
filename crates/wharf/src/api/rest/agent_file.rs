//! REST endpoints for the agent file: shows it, and checks another text.

use super::HandlerResult;
use crate::http_server::RequestBody;
use crate::{
    agent_input,
    api::{ApiState, body, json_response, problem::Problem, query::Query},
};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};
use wharf_config::{Diagnostics, Env, NoFiles, load};
use wharf_runtime::time_format::rfc3339;

/// Maximum size of a text to check, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Name of the checked text in diagnostics.
const TEXT_NAME: &str = "agent.yaml";

/// Codes of errors about variables and files, which a check of a text does not read.
const UNREAD_CODES: [&str; 3] = ["V-09", "V-11", "A-02"];

/// Shows the agent file as it is now, without secrets, and what the loader says about it.
pub(super) fn get(shared: &ApiState, query: Option<&str>) -> HandlerResult {
    Query::read(query, &[])?;
    let (registry, registered) = (&shared.registry, shared.registry.registered());
    let path = registry.agent_file();
    let exists = agent_input::is_standard_input(path) || registry.environment().folder.join(path).exists();
    let diagnostics = exists.then(|| load_again(shared, path));
    let body = json!({
        "file": exists.then(|| agent_input::display_name(path)),
        "text": diagnostics.as_ref().map(Diagnostics::masked_source).unwrap_or_default(),
        "applied_at": rfc3339(registered.applied_at),
        "diagnostics": diagnostics.map_or_else(|| json!([]), |it| it.to_json()),
    });
    Ok(json_response(StatusCode::OK, body))
}

fn load_again(shared: &ApiState, path: &Path) -> Diagnostics {
    let env = shared.registry.environment().env_for(path, shared.registry.registered().grants.clone());
    match agent_input::read(path) {
        Ok(text) => load(text, &env).1,
        Err(diagnostics) => diagnostics,
    }
}

/// Checks a text as `wharf check` does, but reads no file and no variable: they are notes.
pub(super) async fn check(shared: &ApiState, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let body = body::read_object(request).await?;
    body::reject_unknown_keys(&body, &["text", "strict"])?;
    let text: Option<String> = body.member("text").and_then(|it| it.decode().ok());
    let text = text.filter(|it| it.len() <= MAX_TEXT_BYTES);
    let text = text.ok_or_else(|| body::malformed("`text` has to be a string of at most 1 MiB"))?;
    let strict = match body.member("strict") {
        Some(strict) => strict.decode().map_err(|_| body::malformed("`strict` has to be true or false"))?,
        None => false,
    };
    let report = report(shared, &text, strict)?;
    Ok(json_response(StatusCode::OK, report))
}

fn report(shared: &ApiState, text: &str, strict: bool) -> Result<Value, Problem> {
    let grants = shared.registry.registered().grants.clone();
    let env = Env { file: TEXT_NAME.to_owned(), grants, files: Arc::new(NoFiles), ..Env::bare() };
    let (_, mut diagnostics) = load(text, &env);
    if strict {
        diagnostics.raise_missing_descriptions();
    }
    let mut items = diagnostics.to_json();
    let mut ok = true;
    for item in items.as_array_mut().into_iter().flatten() {
        let is_unread = UNREAD_CODES.iter().any(|it| item["code"] == *it);
        let is_malformed = item["message"].as_str().is_some_and(|it| it.contains("invalid variable"));
        if is_unread && !is_malformed {
            item["severity"] = json!("note");
        }
        ok &= item["severity"] != "error";
    }
    Ok(json!({ "ok": ok, "diagnostics": items }))
}
