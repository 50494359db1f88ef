//! `POST /api/v1/chat`: sends a message to the agent, and answers with the events of its run or with its end.

pub(super) mod ag_ui;
mod chat_request;
mod client_message;
mod event_stream;
mod message_input;
#[cfg(test)]
mod model_matrix;
pub(super) mod ui_stream;

use super::{ApiState, body, json_response, problem::Problem, query::Query, rest};
use crate::http_server::RequestBody;
use crate::{
    agent_runs::{ConversationName, DecideError, RunEvents, StartError},
    message_context::UserMessage,
};
use chat_request::ChatRequest;
pub(super) use chat_request::check_format;
pub(super) use client_message::read_data_url;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use std::{sync::Arc, time::Duration};
use wharf_agent::{AgentEvent, RunError, RunReport, model::trouble::Trouble};
use wharf_mcp::serve::http::Body;
use wharf_store::{BeginError, IdempotencyRecord};

pub(super) async fn respond(
    shared: &Arc<ApiState>,
    request: Request<RequestBody>,
) -> Result<Response<Body>, Problem> {
    Query::read(request.uri().query(), &[])?;
    shared.require_database()?;
    let (principal, key) = (rest::principal(&request), rest::idempotency_key(request.headers())?);
    let body = body::read_object(request).await?;
    let chat_request = ChatRequest::read(&body)?;
    match key {
        None => run(shared, &principal, chat_request).await,
        Some(key) => {
            let key_record = rest::key_record(&principal, key, "chat", &body);
            let work = run_once(shared.clone(), principal, chat_request, key_record);
            shared.detached_tasks.run(work).await.unwrap_or_else(|| Err(StartError::ShuttingDown.into()))
        }
    }
}

async fn run(
    shared: &Arc<ApiState>,
    principal: &Arc<str>,
    chat_request: ChatRequest,
) -> Result<Response<Body>, Problem> {
    let (wants_stream, accumulate) = (chat_request.wants_stream, chat_request.accumulate);
    let request_id = chat_request.request_id.clone();
    let events = start(shared, principal, chat_request).await?;
    match wants_stream {
        true => Ok(stream(events, request_id, accumulate)),
        false => answer(events, request_id).await,
    }
}

async fn start(
    shared: &ApiState,
    principal: &Arc<str>,
    mut chat_request: ChatRequest,
) -> Result<RunEvents, Problem> {
    let message = match chat_request.message.take() {
        Some(message) => message.resolve(shared, principal).await?,
        None => UserMessage::default(),
    };
    let (runs, is_kept) = (&shared.agent_runs, chat_request.is_kept);
    let conversation = chat_request.conversation_id.clone();
    let decisions = chat_request.decisions.clone();
    let new_run = chat_request.into_new_run(message);
    let started = match (conversation, is_kept) {
        (Some(id), true) if !decisions.is_empty() => {
            let continued = runs.continue_decided(principal, &id, &decisions, new_run).await;
            continued.map(|it| it.events)
        }
        (Some(id), true) => runs.start_kept(principal, ConversationName::Id(id), new_run).await,
        (None, true) => runs.start_kept(principal, ConversationName::New, new_run).await,
        (_, false) => runs.start(principal, new_run),
    };
    started.map_err(Problem::from)
}

/// Makes a run once for an idempotency key. The answer is that of the event `done`, for the first request and for
/// every other one.
async fn run_once(
    shared: Arc<ApiState>,
    principal: Arc<str>,
    chat_request: ChatRequest,
    key_record: IdempotencyRecord,
) -> Result<Response<Body>, Problem> {
    if let Some(replayed) = rest::claim_or_replay(&shared, &key_record).await? {
        return Ok(replayed);
    }
    let request_id = chat_request.request_id.clone();
    let made = match start(&shared, &principal, chat_request).await {
        Ok(events) => answer(events, request_id).await,
        Err(problem) => Err(problem),
    };
    rest::store_answer(&shared, key_record, made).await
}

/// Answers with the events of a run.
pub(super) fn stream(events: RunEvents, request_id: Option<String>, accumulate: bool) -> Response<Body> {
    let ids = id_headers(&events);
    let mut response =
        Response::new(event_stream::create_body(events, request_id, accumulate).boxed_unsync());
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    headers.extend(ids);
    response
}

pub(super) fn id_headers(events: &RunEvents) -> HeaderMap {
    let ids = [("x-conversation-id", &events.conversation_id), ("x-run-id", &events.run_id)];
    let header = |(name, id): (&'static str, &String)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(id).ok()?))
    };
    ids.into_iter().filter_map(header).collect()
}

/// Waits for the end of the run, and returns the data of its event `done`.
async fn answer(mut events: RunEvents, request_id: Option<String>) -> Result<Response<Body>, Problem> {
    let ids = id_headers(&events);
    while let Some((_, event)) = events.next().await {
        let AgentEvent::Done(report) = &*event else { continue };
        let mut done = report.to_json();
        done["request_id"] = request_id.into();
        let mut response = json_response(status_of(report), done);
        response.headers_mut().extend(ids);
        if let Some(wait) = retry_after(report) {
            response.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        return Ok(response);
    }
    Err(StartError::ShuttingDown.into())
}

/// Maps the end of a run to an HTTP status; nothing else in the API does.
pub(super) fn status_of(report: &RunReport) -> StatusCode {
    match &report.error {
        None | Some(RunError::Limit(_) | RunError::Refused(_) | RunError::OutputInvalid(_)) => StatusCode::OK,
        Some(RunError::ContextFull(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        Some(RunError::Timeout(_)) => StatusCode::GATEWAY_TIMEOUT,
        Some(RunError::Cancelled) => StatusCode::CONFLICT,
        Some(RunError::Interrupted | RunError::Store(_)) => StatusCode::SERVICE_UNAVAILABLE,
        Some(RunError::Model(trouble)) => match trouble {
            Trouble::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ if trouble.error_type() == "timeout" => StatusCode::GATEWAY_TIMEOUT,
            _ if trouble.error_type() == "rate_limited" => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::BAD_GATEWAY,
        },
    }
}

pub(super) fn retry_after(report: &RunReport) -> Option<HeaderValue> {
    let Some(RunError::Model(trouble)) = &report.error else { return None };
    trouble.retry_after().map(|it| HeaderValue::from(it.as_secs_f64().ceil() as u64))
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Problem {
        let unavailable = |detail: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        match error {
            StartError::NoModel(why) => {
                let (detail, hint) = why.split_once("\nhelp: ").unwrap_or((&why, "see docs/agent.md"));
                unavailable(detail.to_owned()).hint(hint)
            }
            StartError::UnusableModel(why) => {
                Problem::new(StatusCode::BAD_GATEWAY, why).kind("model_api_error").hint("see docs/agent.md")
            }
            StartError::NoPrice(why) => {
                let (detail, hint) = why.split_once("\nhelp: ").unwrap_or((&why, "see docs/agent.md"));
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).hint(hint)
            }
            StartError::BreakerOpen(wait) => {
                let seconds = wait.as_secs_f64().ceil();
                unavailable(format!("the circuit breaker for the model is open; next try in {seconds} s"))
                    .kind("model_unavailable")
                    .retry_after(wait)
            }
            StartError::UnknownOption(name) => Problem::new(
                StatusCode::BAD_REQUEST,
                format!("the model of this agent has no option `{name}`"),
            ),
            StartError::TooMany(limit) => Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("too many concurrent runs (limit {limit})"),
            )
            .retry_after(Duration::from_secs(1)),
            StartError::Conversation(error) => match error {
                BeginError::Unknown => Problem::new(StatusCode::NOT_FOUND, "there is no such conversation"),
                BeginError::Busy(run_id) => Problem::new(
                    StatusCode::CONFLICT,
                    "a run of the conversation is under way or waits for decisions",
                )
                .kind("conversation_busy")
                .hint("wait for its end, decide about its calls, or cancel it")
                .run_id(run_id),
                BeginError::Full => Problem::new(StatusCode::CONFLICT, "the conversation is too long")
                    .kind("conversation_full")
                    .hint("start a new conversation"),
                BeginError::Store(error) => {
                    unavailable(format!("the conversation cannot be written: {error}"))
                        .retry_after(Duration::from_secs(1))
                }
            },
            StartError::Decision(error) => error.into(),
            StartError::Undecided(count) => {
                let calls = if count == 1 { "a decision".to_owned() } else { format!("{count} decisions") };
                Problem::new(StatusCode::CONFLICT, format!("the run waits for {calls} more"))
                    .kind("approval_missing")
                    .hint("GET /api/v1/approvals lists the questions")
            }
            StartError::ShuttingDown => unavailable("wharf is shutting down".to_owned()),
        }
    }
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Problem {
        match error {
            DecideError::Unknown(id) => Problem::not_found("approval", &id),
            DecideError::Stale(why) => Problem::new(StatusCode::CONFLICT, why).kind("approval_stale"),
            DecideError::Store(error) => StartError::from(BeginError::Store(error)).into(),
        }
    }
}
