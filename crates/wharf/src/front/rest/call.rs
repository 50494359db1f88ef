//! `POST /api/v1/tools/{tool_id}/call`.

use super::{Answer, once, principal};
use crate::{
    exit::Exit,
    front::{Shared, body, document, json_response, problem::Problem, query::Query},
    telemetry,
};
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use wharf_mcp::{Raw, model::CallResult};
use wharf_runtime::{Call, CallRecord, Caller, Outcome, project};

/// Maximum timeout that a caller may set.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Media type of a complete call record. `wharf call` asks for it, so that its output is the same with and without a
/// gateway.
pub(crate) const CALL_RECORD: &str = "application/vnd.wharf.call+json";

/// Maximum length of a `request_id` or `thread_id`, in characters.
const LONGEST_NAME: usize = 256;

pub(super) async fn run(shared: &Arc<Shared>, id: &str, request: Request<Incoming>) -> Answer {
    let request_span = shared.journal.telemetry().start_rest(request.headers(), id);
    let work = answer(shared, id, request);
    match request_span {
        None => work.await,
        Some(request_span) => {
            request_span
                .run_rest(work, |it| it.as_ref().map_or_else(|it| it.status(), Response::status))
                .await
        }
    }
}

async fn answer(shared: &Arc<Shared>, id: &str, request: Request<Incoming>) -> Answer {
    Query::read(request.uri().query(), &[])?;
    let key = once::key(request.headers())?;
    let principal = principal(&request);
    let is_whole = request.headers().get(header::ACCEPT).is_some_and(|it| it == CALL_RECORD);
    let body = body::object(request).await?;
    let call = Call { principal: Some(principal.clone()), ..call(id, &body)? };
    shared.is_free()?;
    if key.is_some() || call.request_id.is_some() {
        shared.has_database()?;
    }
    match key {
        Some(key) => once::make(shared, once::promise(&principal, key, id, &body), call).await,
        None if is_whole => {
            let whole = whole(&make(shared, call).await?);
            Ok(document(StatusCode::OK, CALL_RECORD, whole.into_bytes()))
        }
        None => Ok(json_response(StatusCode::OK, report(&make(shared, call).await?)?)),
    }
}

/// A completed call.
pub(super) struct MadeCall {
    pub(super) record: Arc<CallRecord>,
    /// Whether the call is in the journal.
    is_recorded: bool,
}

/// Makes a call and records it in the journal before it returns.
pub(super) async fn make(shared: &Shared, call: Call) -> Result<MadeCall, Problem> {
    let _named = shared.ids.take(call.request_id.as_deref(), &shared.journal).await?;
    let record = shared.handle.call(call).await;
    let is_recorded = shared.journal.keep(&record, "rest").await;
    Ok(MadeCall { record, is_recorded })
}

fn call(id: &str, body: &Raw) -> Result<Call, Problem> {
    body::only(body, &["arguments", "timeout", "thread_id", "request_id"])?;
    let arguments = body.member("arguments");
    if arguments.as_ref().is_some_and(|it| !it.is_object()) {
        return Err(body::malformed("`arguments` is no object"));
    }
    let timeout = body.member("timeout").map(|it| seconds(&it)).transpose()?;
    let thread_id = body::text(body, "thread_id", LONGEST_NAME)?;
    let request_id = body::text(body, "request_id", LONGEST_NAME)?;
    if request_id.as_ref().is_some_and(String::is_empty) {
        return Err(body::malformed("`request_id` is empty"));
    }
    let (trace, caller) = (telemetry::child_trace(), Some(Caller::nobody()));
    let tool = id.to_owned();
    Ok(Call { tool, arguments, timeout, thread_id, request_id, trace, caller, ..Call::default() })
}

fn seconds(raw: &Raw) -> Result<Duration, Problem> {
    let seconds = raw.decode::<f64>().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    let fits = seconds.filter(|it| !it.is_zero() && *it <= LONGEST_TIMEOUT);
    fits.ok_or_else(|| body::malformed("`timeout` is a number of seconds above 0, at most 86400"))
}

/// Builds the complete record: the document that `wharf call --json` prints, the raw result, and the exit code.
fn whole(MadeCall { record, is_recorded }: &MadeCall) -> Raw {
    Raw::object([
        ("document", project::tool_result(record)),
        ("result", record.result().into()),
        ("exit_code", json!(Exit::from(&record.outcome).code()).into()),
        ("recorded", json!(is_recorded).into()),
    ])
}

/// Builds the response to a call, or a problem if the call failed.
pub(super) fn report(MadeCall { record, is_recorded }: &MadeCall) -> Result<Raw, Problem> {
    if let Outcome::Failed(fault) = &record.outcome {
        let problem = Problem::of(fault, Some(&record.request_id));
        return Err(if *is_recorded { problem } else { problem.unrecorded() });
    }
    let result = record.result().map(|it| CallResult::read(&it));
    let content = result.as_ref().map_or_else(|| Raw::list([]), |it| project::content_blocks(&it.content));
    let success = matches!(record.outcome, Outcome::Answered(_));
    let tool_id = record.source.as_deref().zip(record.wire_name.as_ref());
    let recorded = (!is_recorded).then(|| ("recorded", json!(false).into()));
    let members = [
        ("request_id", json!(&*record.request_id).into()),
        ("tool_id", json!(tool_id.map(|(source, name)| format!("{source}:{name}"))).into()),
        ("status", json!(record.status().as_str()).into()),
        ("success", json!(success).into()),
        ("is_error", json!(!success).into()),
        ("content", content),
        ("structured_content", result.and_then(|it| it.structured).into()),
        ("error", json!(record.error_text()).into()),
        ("execution_time_ms", json!(record.took.as_secs_f64() * 1_000.0).into()),
    ];
    Ok(Raw::object(members.into_iter().chain(recorded)))
}
