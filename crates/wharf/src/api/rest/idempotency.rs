//! Idempotent calls: a caller that sends an `Idempotency-Key` can safely repeat its request.
//!
//! Such a call continues when the caller disconnects, because the caller is expected to ask again for the result. The
//! key is stored before the call begins, so that not even a restart repeats the call.

use super::{
    HandlerResult,
    call::{self, CompletedCall},
};
use crate::api::{ApiState, document, json_response, problem::Problem};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use sha2::{Digest, Sha256};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::oneshot, task::JoinSet, time};
use wharf_config::Source;
use wharf_mcp::{Raw, Sent, serve::http::Body};
use wharf_runtime::{Call, CallRecord};
use wharf_store::{IdempotencyRecord, KeyClaim, StoreError};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Maximum length of a key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// How long a key is stored.
const KEY_RETENTION: Duration = Duration::from_secs(86_400);

/// Maximum size of a stored answer, in bytes.
const MAX_STORED_BYTES: usize = 1 << 20;

/// How long calls may still take at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// Tasks that continue after their caller has disconnected.
#[derive(Debug, Default)]
pub(in crate::api) struct DetachedTasks(Mutex<JoinSet<()>>);

impl DetachedTasks {
    /// Runs `work` in a task that continues when the caller disconnects.
    pub(in crate::api) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.spawn(async move { _ = sender.send(work.await) });
        receiver.await.ok()
    }

    /// Starts `work` in a task of its own.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Waits for running tasks, for at most [`SHUTDOWN_GRACE`].
    pub(in crate::api) async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = time::timeout(SHUTDOWN_GRACE, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.shutdown().await;
    }
}

/// Reads the `Idempotency-Key` header, if present.
pub(in crate::api) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let Some(first) = given.next() else { return Ok(None) };
    let fits = |it: &&str| (1..=MAX_KEY_BYTES).contains(&it.len());
    let key = first.to_str().ok().filter(fits).filter(|_| given.next().is_none());
    let invalid = || {
        let what =
            format!("`Idempotency-Key` must be given once, with 1 to {MAX_KEY_BYTES} printable characters");
        Problem::new(StatusCode::BAD_REQUEST, what)
    };
    key.map(|it| Some(it.to_owned())).ok_or_else(invalid)
}

/// Builds the record of a key before its call is made. Its fingerprint covers the tool and the body.
pub(in crate::api) fn key_record(principal: &str, key: String, tool: &str, body: &Raw) -> IdempotencyRecord {
    let print = Sha256::new().chain_update(tool).chain_update([0]).chain_update(body.as_bytes()).finalize();
    let fingerprint = print.iter().map(|it| format!("{it:02x}")).collect();
    IdempotencyRecord {
        principal: principal.to_owned(),
        promise_key: key,
        fingerprint,
        ..IdempotencyRecord::default()
    }
}

/// Makes the call, or returns the stored answer if the key was used before.
pub(super) async fn make_call(
    shared: &Arc<ApiState>,
    key_record: IdempotencyRecord,
    call: Call,
    source: Option<Box<Source>>,
) -> HandlerResult {
    let claim = shared
        .journal
        .store()
        .claim_key(&key_record, KEY_RETENTION)
        .await
        .map_err(|it| key_not_stored(&it))?;
    if let KeyClaim::Known(known) = claim {
        return replay(&key_record, known);
    }
    let own = shared.clone();
    let work = async move {
        let made = call::make_call(&own, call, source).await;
        store_result(&own, key_record, made.as_ref().ok()).await;
        made
    };
    let shutting_down = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "wharf is shutting down");
    let made = shared.detached_tasks.run(work).await.ok_or_else(shutting_down)??;
    Ok(json_response(StatusCode::OK, call::report(&made)?))
}

/// Claims a key for work that [`store_answer`] completes, or returns the stored answer.
pub(in crate::api) async fn claim_or_replay(
    shared: &ApiState,
    key_record: &IdempotencyRecord,
) -> Result<Option<Response<Body>>, Problem> {
    let claim = shared.journal.store().claim_key(key_record, KEY_RETENTION).await;
    match claim.map_err(|it| key_not_stored(&it))? {
        KeyClaim::Claimed => Ok(None),
        KeyClaim::Known(known) => replay(key_record, known).map(Some),
    }
}

/// Stores an answer, so that the same request gets it again. A problem releases the key.
pub(in crate::api) async fn store_answer(
    shared: &ApiState,
    key_record: IdempotencyRecord,
    made: HandlerResult,
) -> HandlerResult {
    let store = shared.journal.store();
    let response = match made {
        Ok(response) => response,
        Err(problem) => {
            if let Err(error) = store.release_key(&key_record).await {
                tracing::error!(target: "wharf::journal", "an idempotency key could not be released: {error}");
            }
            return Err(problem);
        }
    };
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    let answer = String::from_utf8_lossy(&bytes).into_owned();
    let stored = IdempotencyRecord {
        status: Some(i64::from(head.status.as_u16())),
        answer: Some(answer).filter(|it| it.len() <= MAX_STORED_BYTES),
        ..key_record
    };
    if let Err(error) = store.complete_key(&stored).await {
        tracing::error!(target: "wharf::journal", "the result of an idempotent run could not be stored: {error}");
    }
    Ok(Response::from_parts(head, Full::new(bytes).boxed_unsync()))
}

/// Stores the result of a call. If the request was never sent to the server, releases the key, so that it can be
/// retried.
async fn store_result(shared: &ApiState, key_record: IdempotencyRecord, made: Option<&CompletedCall>) {
    let store = shared.journal.store();
    let unsent = |it: &CallRecord| it.fault().is_some_and(|it| it.sent == Sent::No);
    let stored = match made {
        Some(made) if !unsent(&made.record) => store.complete_key(&stored(key_record, made)).await,
        _ => store.release_key(&key_record).await,
    };
    if let Err(error) = stored {
        tracing::error!(target: "wharf::journal", "the result of an idempotent call could not be stored: {error}");
    }
}

/// Builds the record of a completed call. Secrets are redacted, as in everything that is stored.
fn stored(key_record: IdempotencyRecord, made: &CompletedCall) -> IdempotencyRecord {
    let record = &made.record;
    let (status, answer) = match call::report(made) {
        Ok(report) => (StatusCode::OK, report),
        Err(problem) => (problem.status(), problem.body().into()),
    };
    let answer = record.redacted(&answer).as_str().to_owned();
    IdempotencyRecord {
        request_id: Some(record.request_id.to_string()),
        status: Some(i64::from(status.as_u16())),
        answer: Some(answer).filter(|it| it.len() <= MAX_STORED_BYTES),
        ..key_record
    }
}

fn replay(key_record: &IdempotencyRecord, known: IdempotencyRecord) -> HandlerResult {
    if known.fingerprint != key_record.fingerprint {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this `Idempotency-Key` belongs to another call",
        )
        .hint("a key identifies one tool and one body; use a new key for the new call"));
    }
    let Some(status) = known.status.and_then(|it| StatusCode::from_u16(u16::try_from(it).ok()?).ok()) else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the call with this `Idempotency-Key` is still running",
        )
        .hint("wait for it; if wharf stopped during the call, its outcome is unknown"));
    };
    let Some(answer) = known.answer else {
        let id = known.request_id.unwrap_or_default();
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the call was made, but its result was too long to store",
        )
        .hint(format!("see /api/v1/calls/{id}")));
    };
    Ok(replayed_response(status, answer))
}

fn replayed_response(status: StatusCode, answer: String) -> Response<Body> {
    // The end of a run has the status of its error too, but is no problem document.
    let is_problem = || Raw::parse(answer.clone()).is_ok_and(|it| it.member("title").is_some());
    let kind = match status.is_success() || !is_problem() {
        true => "application/json",
        false => "application/problem+json",
    };
    let mut response = document(status, kind, answer);
    response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    response
}

fn key_not_stored(error: &StoreError) -> Problem {
    tracing::error!(target: "wharf::journal", "an `Idempotency-Key` could not be stored: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the `Idempotency-Key` could not be stored")
        .hint("the tool was not called; try again, and check the log of wharf")
}
