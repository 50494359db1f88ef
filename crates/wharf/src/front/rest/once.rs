//! Idempotent calls: a caller that sends an `Idempotency-Key` can safely repeat its request.
//!
//! Such a call continues when the caller disconnects, because the caller is expected to ask again for the result. The
//! key is stored before the call begins, so that not even a restart repeats the call.

use super::{
    Answer,
    call::{self, MadeCall},
};
use crate::front::{Shared, document, json_response, problem::Problem};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha256};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::oneshot, task::JoinSet, time};
use wharf_mcp::{Raw, Sent, serve::http::Body};
use wharf_runtime::{Call, CallRecord};
use wharf_store::{Claim, Promise, StoreError};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Maximum length of a key, in bytes.
const LONGEST_KEY: usize = 255;

/// How long a key is remembered.
const KEPT: Duration = Duration::from_secs(86_400);

/// Maximum size of a stored answer, in bytes.
const LONGEST: usize = 1 << 20;

/// How long calls may still take at shutdown.
const GRACE: Duration = Duration::from_secs(1);

/// Tasks that continue after their caller has disconnected.
#[derive(Debug, Default)]
pub(in crate::front) struct Once(Mutex<JoinSet<()>>);

impl Once {
    /// Runs `work` in a task that continues when the caller disconnects.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = oneshot::channel();
        {
            let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            while tasks.try_join_next().is_some() {}
            tasks.spawn(async move { _ = tell.send(work.await) });
        }
        told.await.ok()
    }

    /// Waits for running tasks, for at most [`GRACE`].
    pub(in crate::front) async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = time::timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.shutdown().await;
    }
}

/// Reads the `Idempotency-Key` header, if present.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(&KEY).iter();
    let Some(first) = given.next() else { return Ok(None) };
    let fits = |it: &&str| (1..=LONGEST_KEY).contains(&it.len());
    let key = first.to_str().ok().filter(fits).filter(|_| given.next().is_none());
    let wrong = || {
        let what = format!("`Idempotency-Key` is given once and has 1 to {LONGEST_KEY} printable characters");
        Problem::new(StatusCode::BAD_REQUEST, what)
    };
    key.map(|it| Some(it.to_owned())).ok_or_else(wrong)
}

/// Builds the record of a key before its call is made. Its fingerprint covers the tool and the body.
pub(super) fn promise(principal: &str, key: String, tool: &str, body: &Raw) -> Promise {
    let print = Sha256::new().chain_update(tool).chain_update([0]).chain_update(body.as_bytes()).finalize();
    let fingerprint = print.iter().map(|it| format!("{it:02x}")).collect();
    Promise { principal: principal.to_owned(), promise_key: key, fingerprint, ..Promise::default() }
}

/// Makes the call, or returns the stored answer if the key was used before.
pub(super) async fn make(shared: &Arc<Shared>, promise: Promise, call: Call) -> Answer {
    let claim = shared.journal.store().claim(&promise, KEPT).await.map_err(|it| unkept(&it))?;
    if let Claim::Known(known) = claim {
        return repeat(&promise, known);
    }
    let own = shared.clone();
    let work = async move {
        let made = call::make(&own, call).await;
        settle(&own, promise, made.as_ref().ok()).await;
        made
    };
    let gone = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "wharf is shutting down");
    let made = shared.once.run(work).await.ok_or_else(gone)??;
    Ok(json_response(StatusCode::OK, call::report(&made)?))
}

/// Stores the result of a call. If the request was never sent to the server, releases the key, so that it can be
/// retried.
async fn settle(shared: &Shared, promise: Promise, made: Option<&MadeCall>) {
    let store = shared.journal.store();
    let unsent = |it: &CallRecord| it.fault().is_some_and(|it| it.sent == Sent::No);
    let kept = match made {
        Some(made) if !unsent(&made.record) => store.fulfil(&kept(promise, made)).await,
        _ => store.give_back(&promise).await,
    };
    if let Err(error) = kept {
        tracing::error!(target: "wharf::journal", "how a call with a key ended could not be kept: {error}");
    }
}

/// Builds the record of a completed call. Secrets are redacted, as in everything that is stored.
fn kept(promise: Promise, made: &MadeCall) -> Promise {
    let record = &made.record;
    let (status, answer) = match call::report(made) {
        Ok(report) => (StatusCode::OK, report),
        Err(problem) => (problem.status(), problem.body().into()),
    };
    let answer = record.redacted(&answer).as_str().to_owned();
    Promise {
        request_id: Some(record.request_id.to_string()),
        status: Some(i64::from(status.as_u16())),
        answer: Some(answer).filter(|it| it.len() <= LONGEST),
        ..promise
    }
}

fn repeat(promise: &Promise, known: Promise) -> Answer {
    if known.fingerprint != promise.fingerprint {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "this key belongs to another call")
            .hint("a key stands for one tool with one body; give the new call a key of its own"));
    }
    let Some(status) = known.status.and_then(|it| StatusCode::from_u16(u16::try_from(it).ok()?).ok()) else {
        return Err(Problem::new(StatusCode::CONFLICT, "the call with this key is not over")
            .hint("wait for it; if wharf was ended in the middle of it, nobody knows whether it was done"));
    };
    let Some(answer) = known.answer else {
        let id = known.request_id.unwrap_or_default();
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the call was made, and what came of it was too long to keep",
        )
        .hint(format!("the journal has it at /api/v1/calls/{id}")));
    };
    Ok(replayed(status, answer))
}

fn replayed(status: StatusCode, answer: String) -> Response<Body> {
    let kind = if status.is_success() { "application/json" } else { "application/problem+json" };
    let mut response = document(status, kind, answer);
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn unkept(error: &StoreError) -> Problem {
    tracing::error!(target: "wharf::journal", "a call with a key could not be begun: {error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the key cannot be kept at the moment")
        .hint("nothing was called; try again, and look at the log of wharf")
}
