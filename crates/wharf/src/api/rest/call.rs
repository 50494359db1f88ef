//! `POST /api/v1/tools/{tool_id}/call`.

use super::{HandlerResult, call_values, calls::journal_unreadable, idempotency, principal};
use crate::http_server::RequestBody;
use crate::{
    api::{ApiState, body, document, json_response, problem::Problem, query::Query},
    exit::Exit,
    request_ids::{MAX_ID_CHARS, ReserveError},
    telemetry,
};
use http::{Request, Response, StatusCode, header};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use wharf_config::Source;
use wharf_mcp::{Raw, model::CallResult};
use wharf_runtime::{Call, CallRecord, Caller, Outcome, views};

/// Maximum timeout that a caller may set.
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Media type of a complete call record. `wharf call` asks for it, so that its output is the same with and without a
/// gateway.
pub(crate) const CALL_RECORD: &str = "application/vnd.wharf.call+json";

pub(super) async fn run(shared: &Arc<ApiState>, id: &str, request: Request<RequestBody>) -> HandlerResult {
    let request_span = shared.journal.telemetry().start_rest(request.headers(), id);
    let work = respond(shared, id, request);
    match request_span {
        None => work.await,
        Some(request_span) => {
            request_span
                .run_rest(work, |it| it.as_ref().map_or_else(|it| it.status(), Response::status))
                .await
        }
    }
}

async fn respond(shared: &Arc<ApiState>, id: &str, request: Request<RequestBody>) -> HandlerResult {
    Query::read(request.uri().query(), &[])?;
    let key = idempotency::key(request.headers())?;
    let principal = principal(&request);
    let wants_record = request.headers().get(header::ACCEPT).is_some_and(|it| it == CALL_RECORD);
    let body = body::read_object(request).await?;
    let caller = Some(Caller::without_client(principal.clone()));
    let call = Call { principal: Some(principal.clone()), caller, via: "rest", ..call(id, &body)? };
    let source = call_values::source(shared, id, &body)?;
    shared.check_call_limit()?;
    if key.is_some() || call.request_id.is_some() {
        shared.require_database()?;
    }
    match key {
        Some(key) => {
            let key_record = idempotency::key_record(&principal, key, id, &body);
            idempotency::make_call(shared, key_record, call, source).await
        }
        None if wants_record => {
            let record_document = record_document(&make_call(shared, call, source).await?);
            Ok(document(StatusCode::OK, CALL_RECORD, record_document.into_bytes()))
        }
        None => Ok(json_response(StatusCode::OK, report(&make_call(shared, call, source).await?)?)),
    }
}

/// A completed call.
pub(super) struct CompletedCall {
    pub(super) record: Arc<CallRecord>,
    /// Whether the call is in the journal.
    is_recorded: bool,
}

/// Makes a call and records it in the journal before it returns. `source` is started for this call only, if given.
pub(super) async fn make_call(
    shared: &Arc<ApiState>,
    call: Call,
    source: Option<Box<Source>>,
) -> Result<CompletedCall, Problem> {
    let id = call.request_id.as_deref();
    let _reserved = shared.request_ids.reserve(id, &shared.journal).await.map_err(|it| id_problem(it, id))?;
    match source {
        Some(source) => Box::pin(call_values::run(shared, *source, call)).await,
        None => {
            let record = shared.handle.call(call).await;
            Ok(CompletedCall::record(shared, record).await)
        }
    }
}

fn id_problem(error: ReserveError, id: Option<&str>) -> Problem {
    match error {
        ReserveError::InUse => {
            let id = id.unwrap_or_default();
            Problem::new(StatusCode::CONFLICT, format!("the `request_id` '{id}' is already in use"))
                .hint("use another `request_id`, or omit it and wharf generates one")
        }
        ReserveError::Unreadable(error) => journal_unreadable(&error),
    }
}

impl CompletedCall {
    /// Records a call in the journal.
    pub(super) async fn record(shared: &ApiState, record: Arc<CallRecord>) -> CompletedCall {
        let is_recorded = shared.journal.record_with_others(&record, "rest", &shared.handle).await;
        CompletedCall { record, is_recorded }
    }
}

fn call(id: &str, body: &Raw) -> Result<Call, Problem> {
    body::reject_unknown_keys(body, &["arguments", "timeout", "thread_id", "request_id", "env"])?;
    let arguments = body.member("arguments");
    if arguments.as_ref().is_some_and(|it| !it.is_object()) {
        return Err(body::malformed("`arguments` is not an object"));
    }
    let timeout = body.member("timeout").map(|it| seconds(&it)).transpose()?;
    let thread_id = body::read_text(body, "thread_id", MAX_ID_CHARS)?;
    let request_id = body::read_text(body, "request_id", MAX_ID_CHARS)?;
    if request_id.as_ref().is_some_and(String::is_empty) {
        return Err(body::malformed("`request_id` is empty"));
    }
    let (tool, trace) = (id.to_owned(), telemetry::child_trace());
    Ok(Call { tool, arguments, timeout, thread_id, request_id, trace, ..Call::default() })
}

fn seconds(raw: &Raw) -> Result<Duration, Problem> {
    let seconds = raw.decode::<f64>().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    let fits = seconds.filter(|it| !it.is_zero() && *it <= MAX_TIMEOUT);
    fits.ok_or_else(|| body::malformed("`timeout` is a number of seconds above 0, at most 86400"))
}

/// Builds the complete record: the document that `wharf call --json` prints, the raw result, and the exit code.
fn record_document(CompletedCall { record, is_recorded }: &CompletedCall) -> Raw {
    Raw::object([
        ("document", views::tool_result(record)),
        ("result", record.result().into()),
        ("exit_code", json!(Exit::from(&record.outcome).code()).into()),
        ("recorded", json!(is_recorded).into()),
    ])
}

/// Builds the response to a call, or a problem if the call failed.
pub(super) fn report(CompletedCall { record, is_recorded }: &CompletedCall) -> Result<Raw, Problem> {
    if let Outcome::Failed(fault) = &record.outcome {
        let problem = Problem::of(fault, Some(&record.request_id));
        return Err(if *is_recorded { problem } else { problem.unrecorded() });
    }
    let result = record.result().map(|it| CallResult::read(&it));
    let content = result.as_ref().map_or_else(|| Raw::list([]), |it| views::content_blocks(&it.content));
    let success = matches!(record.outcome, Outcome::Answered(_));
    let recorded = (!is_recorded).then(|| ("recorded", json!(false).into()));
    let members = [
        ("request_id", json!(&*record.request_id).into()),
        ("tool_id", json!(record.tool_id()).into()),
        ("status", json!(record.status().as_str()).into()),
        ("success", json!(success).into()),
        ("is_error", json!(!success).into()),
        ("content", content),
        ("structured_content", result.and_then(|it| it.structured).into()),
        ("error", json!(record.error_text()).into()),
        ("execution_time_ms", json!(record.took.as_secs_f64() * 1_000.0).into()),
    ];
    let handle = record.handle.as_ref().and_then(|it| it.stored.as_ref()).map(|stored| {
        let handle = json!({ "id": stored.short_id(), "uri": stored.uri(), "bytes": stored.bytes });
        ("result_handle", handle.into())
    });
    Ok(Raw::object(members.into_iter().chain(handle).chain(recorded)))
}
