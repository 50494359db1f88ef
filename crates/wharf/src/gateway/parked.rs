//! Calls that are suspended until their client sends input, in the modern era, where a server cannot send requests to
//! a client.
//!
//! The client receives an `input_required` result with the questions and a `requestState`. It repeats its request
//! with the answers and that state, and the call resumes. Meanwhile the call keeps everything that it holds at its
//! server.

use super::{
    errand::{Errand, Kind, Principal},
    invalid,
    questions::{Asking, Question},
    reports::Reports,
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    task::{AbortHandle, JoinSet},
    time,
};
use uuid::Uuid;
use wharf_mcp::{Raw, RpcError, session::Input};

/// How long a client may take to resume a call.
const PATIENCE: Duration = Duration::from_secs(300);

/// Maximum number of suspended calls.
const MOST: usize = 1_000;

/// A running call: its future, its questions to the client, and its reports.
pub(super) struct Call {
    pub(super) what: What,
    pub(super) work: Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>,
    pub(super) asking: Option<Asking>,
    pub(super) reports: Reports,
}

/// Identifies a call by request and principal. Only a request that matches it may resume the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct What {
    kind: Kind,
    name: String,
    whose: Principal,
}

/// A call that is suspended until its questions are answered.
struct Parked {
    call: Call,
    /// Open questions by the keys sent to the client.
    questions: BTreeMap<String, Question>,
    expiry: AbortHandle,
}

/// Classifies a request by its `requestState`.
pub(super) enum Arrival {
    /// A new call, or one whose `requestState` belongs to the server rather than to this gateway.
    New,
    /// Resumes this call; all its questions are answered.
    Back(Call),
    /// Resumes a call, but answers are missing: the result that asks for them again.
    Lacking(Raw),
}

/// All suspended calls.
pub(super) struct Yard {
    parked: Mutex<HashMap<String, Parked>>,
    /// Timers that drop calls whose client does not resume them.
    expiries: Mutex<JoinSet<()>>,
    /// Prefix of every `requestState` issued here. It distinguishes them from those of servers, some of which may be
    /// gateways too.
    mark: String,
}

impl What {
    pub(super) fn of(errand: &Errand) -> What {
        What { kind: errand.kind, name: errand.name.clone(), whose: errand.whose.clone() }
    }
}

impl Default for Yard {
    fn default() -> Yard {
        let mark = format!("wharf.{}.", Uuid::new_v4().simple());
        Yard { parked: Mutex::default(), expiries: Mutex::default(), mark }
    }
}

impl Yard {
    /// Suspends a call and returns the result that asks its client for input.
    pub(super) fn park(self: &Arc<Yard>, call: Call, questions: Vec<Question>) -> Result<Raw, RpcError> {
        let state = format!("{}{}", self.mark, Uuid::new_v4().simple());
        let keys = (1..).map(|number| format!("question{number}"));
        let questions: BTreeMap<String, Question> = keys.zip(questions).collect();
        let wanted = wanted(&questions, &state);
        let mut parked = self.parked();
        if parked.len() >= MOST {
            return Err(RpcError::new(RpcError::INTERNAL, "too many calls wait for answers"));
        }
        let expiry = self.expire(state.clone());
        parked.insert(state, Parked { call, questions, expiry });
        Ok(wanted)
    }

    /// Resumes the call that this request refers to and passes on its answers, or classifies the request otherwise.
    pub(super) fn arrive(&self, errand: &Errand) -> Result<Arrival, RpcError> {
        let Some(Input { responses, state: Some(state) }) = &errand.input else { return Ok(Arrival::New) };
        let state: String = state.decode_or_default();
        if !state.starts_with(&self.mark) {
            return Ok(Arrival::New);
        }
        let mut parked = self.parked();
        let mut waiting = match parked.remove(&state) {
            Some(waiting) if waiting.call.what == What::of(errand) => waiting,
            // The state belongs to another request or principal. The call stays suspended, and the error does not
            // reveal it.
            Some(waiting) => {
                parked.insert(state, waiting);
                return Err(invalid("the call that `requestState` means is over"));
            }
            None => return Err(invalid("the call that `requestState` means is over")),
        };
        let responses = responses.clone().unwrap_or_else(Raw::empty_object);
        let keys: Vec<String> = waiting.questions.keys().cloned().collect();
        for key in keys {
            if let Some(answer) = responses.member(&key).filter(Raw::is_object)
                && let Some(question) = waiting.questions.remove(&key)
            {
                question.answer(Ok(answer.detached()));
            }
        }
        if waiting.questions.is_empty() {
            waiting.expiry.abort();
            return Ok(Arrival::Back(waiting.call));
        }
        let wanted = wanted(&waiting.questions, &state);
        parked.insert(state, waiting);
        Ok(Arrival::Lacking(wanted))
    }

    /// Drops all suspended calls, because clients cannot resume them any more.
    pub(super) fn clear(&self) {
        let parked = std::mem::take(&mut *self.parked());
        parked.values().for_each(|it| it.expiry.abort());
    }

    /// Starts a timer that drops a call if its client does not resume it in time.
    fn expire(self: &Arc<Yard>, state: String) -> AbortHandle {
        let yard: Weak<Yard> = Arc::downgrade(self);
        let mut expiries = self.expiries.lock().unwrap_or_else(PoisonError::into_inner);
        while expiries.try_join_next().is_some() {}
        expiries.spawn(async move {
            time::sleep(PATIENCE).await;
            let expired = yard.upgrade().and_then(|yard| yard.parked().remove(&state));
            drop(expired);
        })
    }

    fn parked(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the `input_required` result for these questions.
fn wanted(questions: &BTreeMap<String, Question>, state: &str) -> Raw {
    let asked = |it: &Question| json!({ "method": it.method, "params": it.params });
    let asks: Map<String, Value> = questions.iter().map(|(key, it)| (key.clone(), asked(it))).collect();
    json!({ "resultType": "input_required", "inputRequests": asks, "requestState": state }).into()
}

impl std::fmt::Debug for Yard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Yard({} calls)", self.parked().len())
    }
}

#[cfg(test)]
mod tests;
