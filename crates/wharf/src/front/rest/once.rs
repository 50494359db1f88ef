//! Calls that are made once: their caller has given them an `Idempotency-Key`, and may ask again without fear.
//!
//! Such a call goes on when its caller's connection breaks, because the caller will come back for what came of it. What is
//! kept of it is on the disk before the call begins, so that not even a restart makes it twice.

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

/// The longest key.
const LONGEST_KEY: usize = 255;

/// How long it is known that a call was made.
const KEPT: Duration = Duration::from_secs(86_400);

/// The longest answer that is kept.
const LONGEST: usize = 1 << 20;

/// How long calls may take to end once everybody has left.
const GRACE: Duration = Duration::from_secs(1);

/// The calls that are out and made once.
#[derive(Debug, Default)]
pub(in crate::front) struct Once(Mutex<JoinSet<()>>);

impl Once {
    /// Does work that goes on when whoever waits for it leaves.
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

    /// Waits for what is still out, but not for ever.
    pub(in crate::front) async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = time::timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.shutdown().await;
    }
}

/// The key of a request, if it has one.
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

/// What is known of a call before it is made.
pub(super) fn promise(principal: &str, key: String, tool: &str, body: &Raw) -> Promise {
    let print = Sha256::new().chain_update(tool).chain_update([0]).chain_update(body.as_bytes()).finalize();
    let fingerprint = print.iter().map(|it| format!("{it:02x}")).collect();
    Promise { principal: principal.to_owned(), promise_key: key, fingerprint, ..Promise::default() }
}

/// Makes a call unless it was made before; then the answer is what it was then.
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

/// Notes how a call ended. One that was never sent may be tried again.
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

/// Without secrets, like everything that is written down.
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
