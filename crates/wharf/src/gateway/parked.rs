//! Calls that wait for their client's answer, in the era in which a server cannot ask but only say what it needs.
//!
//! The client gets a result that says what is wanted, and a word by which the call is found again when the client
//! comes back with the answers. The call itself stays as it is, with everything that it holds at its server.

use super::questions::Question;
use serde_json::json;
use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use uuid::Uuid;
use wharf_mcp::{Raw, RpcError};

/// How long a client may take to come back.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many calls may wait.
const MOST: usize = 1_000;

/// The key of the one question that a call asks at a time.
const QUESTION: &str = "question";

/// A call under way, and what it asks.
pub(super) struct Call {
    pub(super) work: Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>,
    pub(super) asked: mpsc::Receiver<Question>,
}

/// A call that waits.
struct Parked {
    tool: String,
    call: Call,
    question: Question,
    since: Instant,
}

/// All calls that wait.
#[derive(Default)]
pub(super) struct Yard(Mutex<HashMap<String, Parked>>);

impl Yard {
    /// Has a call wait, and says to its client what it waits for.
    pub(super) fn park(&self, tool: &str, call: Call, question: Question) -> Result<Raw, RpcError> {
        let mut parked = self.parked();
        parked.retain(|_, it| it.since.elapsed() < PATIENCE);
        if parked.len() >= MOST {
            return Err(RpcError::new(RpcError::INTERNAL, "too many calls wait for answers"));
        }
        let state = Uuid::new_v4().to_string();
        let asks = json!({ QUESTION: { "method": question.method, "params": question.params } });
        parked.insert(state.clone(), Parked { tool: tool.to_owned(), call, question, since: Instant::now() });
        let wanted = json!({ "resultType": "input_required", "inputRequests": asks, "requestState": state });
        Ok(wanted.into())
    }

    /// The call that this request goes on with, its question answered; nothing if it is a new call.
    pub(super) fn resume(&self, tool: &str, params: &Raw) -> Result<Option<Call>, RpcError> {
        let Some(state) = params.member("requestState").and_then(|it| it.decode::<String>().ok()) else {
            return Ok(None);
        };
        let unknown =
            || RpcError::new(RpcError::INVALID_PARAMS, "the call that `requestState` means is over");
        let answer = params.member("inputResponses").and_then(|it| it.member(QUESTION));
        let answer =
            answer.ok_or_else(|| RpcError::new(RpcError::INVALID_PARAMS, "the answer is missing"))?;
        let mut parked = self.parked();
        if parked.get(&state).is_none_or(|it| it.tool != tool || it.since.elapsed() >= PATIENCE) {
            return Err(unknown());
        }
        let Parked { call, question, .. } = parked.remove(&state).ok_or_else(unknown)?;
        question.answer(Ok(answer));
        Ok(Some(call))
    }

    fn parked(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Yard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Yard({} calls)", self.parked().len())
    }
}
