//! OpenAI's protocol: `POST /v1/chat/completions` and `GET /v1/models`. The model is the agent, which calls the tools of
//! its servers itself. The history is the client's; nothing is kept.

mod chunks;
mod completion_request;
mod completion_runs;
mod error;

use super::{
    ApiState, body,
    chat::retry_after,
    document,
    problem::Problem,
    projection::{self, Projection},
    query::Query,
    rest,
    routes::Route,
};
use crate::http_server::RequestBody;
use crate::{
    agent_activity::{describe_activity, is_sent_call},
    agent_runs::{NewRun, RunEvents, StartError},
};
use chunks::{ChunkWriter, CompletionHead};
use completion_request::CompletionRequest;
pub(super) use completion_runs::CompletionRuns;
use completion_runs::{CompletionKey, StartedCompletion};
use error::OpenAiError;
pub(super) use error::problem_response;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;
use wharf_agent::{AgentEvent, RunReport};
use wharf_mcp::serve::http::Body;

/// Prefix of the paths of this protocol. Errors below it have OpenAI's form.
pub(super) const PREFIX: &str = "/v1/";
/// Name of the model that is always there.
const MODEL_NAME: &str = "wharf";
/// How long a stream waits for its first chunk, so that an error can still be a status.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the run of a client that repeats requests by itself continues without it.
const RETRY_GRACE: Duration = Duration::from_secs(10);
/// Tells OpenAI's official clients whether to repeat a request.
const SHOULD_RETRY: &str = "x-should-retry";
/// Counts the tries of OpenAI's official clients, from 0.
const RETRY_COUNT: &str = "x-stainless-retry-count";

/// Answers requests below `/v1/`. `segment` is the variable segment of the path.
pub(super) async fn respond(
    shared: &Arc<ApiState>,
    route: Route,
    segment: &str,
    request: Request<RequestBody>,
) -> Result<Response<Body>, Problem> {
    Query::read(request.uri().query(), &[])?;
    let names = model_names(shared);
    match route {
        Route::Models => {
            let models: Vec<Value> = names.iter().map(|it| describe_model(it)).collect();
            Ok(json_document(StatusCode::OK, &json!({ "object": "list", "data": models })))
        }
        Route::Model if names.iter().any(|it| it == segment) => {
            Ok(json_document(StatusCode::OK, &describe_model(segment)))
        }
        Route::Model => Ok(OpenAiError::unknown_model(segment, &names.join(", ")).into_response()),
        _ => complete(shared, &names, request).await,
    }
}

async fn complete(
    shared: &Arc<ApiState>,
    names: &[String],
    request: Request<RequestBody>,
) -> Result<Response<Body>, Problem> {
    let principal = rest::principal(&request);
    let client = ClientHeaders::of(request.headers());
    let chat_body = body::read_chat_object(request).await?;
    let raw = &chat_body.raw;
    let completion = match CompletionRequest::read(&raw.decode_or_default()) {
        Ok(completion) if names.contains(&completion.model) => completion,
        Ok(completion) if names.is_empty() => {
            // The agent has no model, and the error of the start says what to add.
            shared.agent_runs.start(&principal, completion.into_new_run())?;
            return Err(StartError::ShuttingDown.into());
        }
        Ok(completion) => {
            return Ok(OpenAiError::unknown_model(&completion.model, &names.join(", ")).into_response());
        }
        Err(error) => return Ok(error.into_response()),
    };
    let (wants_stream, wants_usage) = (completion.wants_stream, completion.wants_usage);
    let key = CompletionKey::of(&principal, raw.as_bytes());
    let joined = if client.retries > 0 { shared.completion_runs.join(&key) } else { None };
    let StartedCompletion { events, head } = match joined {
        Some(joined) => joined,
        None => {
            let head =
                CompletionHead { id: String::new(), created: unix_time(), model: completion.model.clone() };
            let grace = client.repeats_requests && !wants_stream;
            let unread_grace = if grace { RETRY_GRACE } else { Duration::ZERO };
            let new_run = NewRun { unread_grace, ..completion.into_new_run() };
            let events = shared.agent_runs.start(&principal, new_run)?;
            let head = CompletionHead { id: format!("chatcmpl-{}", events.run_id), ..head };
            shared.completion_runs.add(key, &events, &head, shared.agent_runs.run_timeout());
            StartedCompletion { events, head }
        }
    };
    match wants_stream {
        true => stream(events, ChunkWriter::new(head, wants_usage, client.shows_activity)).await,
        false => answer(events, &head, client.shows_activity).await,
    }
}

/// Responds with a stream. An error before its first chunk is a status.
async fn stream(mut events: RunEvents, mut writer: ChunkWriter) -> Result<Response<Body>, Problem> {
    let (mut begun, mut has_called) = (String::new(), false);
    while begun.is_empty() {
        let Ok(next) = timeout(HEAD_TIMEOUT, events.next()).await else { break };
        let Some((_, event)) = next else { return Ok(aborted(has_called)) };
        has_called |= is_sent_call(&event);
        if let AgentEvent::Done(report) = &*event
            && let Err(error) = writer.head.completion(report, "")
        {
            return Ok(error_response(error, report, has_called));
        }
        writer.write(&event, &mut begun);
        if matches!(*event, AgentEvent::Done(_)) {
            return Ok(projection::whole(begun));
        }
    }
    Ok(projection::stream(events, writer, begun))
}

/// Waits for the end of the run, and responds with one document.
async fn answer(
    mut events: RunEvents,
    head: &CompletionHead,
    shows_activity: bool,
) -> Result<Response<Body>, Problem> {
    let (mut reasoning, mut has_called) = (String::new(), false);
    while let Some((_, event)) = events.next().await {
        has_called |= is_sent_call(&event);
        match &*event {
            AgentEvent::Thinking(text) => reasoning.push_str(text),
            AgentEvent::Done(report) => {
                return Ok(match head.completion(report, reasoning.trim_end()) {
                    Ok(completion) => json_document(StatusCode::OK, &completion),
                    Err(error) => error_response(error, report, has_called),
                });
            }
            event => {
                let line = describe_activity(event).filter(|_| shows_activity);
                reasoning.extend(line.map(|it| format!("{it}\n")));
            }
        }
    }
    Ok(aborted(has_called))
}

/// Responds for a run that was aborted, because the program stops.
fn aborted(has_called: bool) -> Response<Body> {
    let mut response = problem_response(StartError::ShuttingDown.into());
    if has_called {
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// Responds with an error. After a call the official clients must not repeat the request.
fn error_response(
    (status, error): (StatusCode, Value),
    report: &RunReport,
    has_called: bool,
) -> Response<Body> {
    let mut response = json_document(status, &json!({ "error": error }));
    let headers = response.headers_mut();
    if has_called {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    if let Some(wait) = retry_after(report) {
        headers.insert(header::RETRY_AFTER, wait);
    }
    response
}

/// Returns the names under which the agent can be asked. Without a model there are none.
fn model_names(shared: &ApiState) -> Vec<String> {
    let (name, has_model) = shared.agent_runs.agent_name();
    let name = name.filter(|it| it != MODEL_NAME);
    if has_model { name.into_iter().chain([MODEL_NAME.to_owned()]).collect() } else { Vec::new() }
}

fn describe_model(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "wharf" })
}

/// Facts about a client, from its headers.
struct ClientHeaders {
    /// Whether the client repeats requests by itself.
    repeats_requests: bool,
    /// Number of earlier tries of this request.
    retries: u64,
    /// Whether the client is told what tools do.
    shows_activity: bool,
}

impl ClientHeaders {
    fn of(headers: &HeaderMap) -> ClientHeaders {
        let retries = headers.get(RETRY_COUNT).and_then(|it| it.to_str().ok()?.parse().ok());
        ClientHeaders {
            repeats_requests: retries.is_some(),
            retries: retries.unwrap_or(0),
            shows_activity: headers.get("x-wharf-activity").is_none_or(|it| it != "none"),
        }
    }
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

fn json_document(status: StatusCode, value: &Value) -> Response<Body> {
    document(status, "application/json", value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aborted_run_is_not_repeated_after_a_call() {
        for (has_called, expected) in [(true, Some("false")), (false, None)] {
            let response = aborted(has_called);
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers().get(SHOULD_RETRY).and_then(|it| it.to_str().ok()), expected);
        }
    }
}
