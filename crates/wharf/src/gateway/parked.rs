//! Calls that wait for their client's answers, in the era in which a server cannot ask but only say what it needs.
//!
//! The client gets a result that says what is wanted, and a word by which the call is found again when the client
//! comes back with the answers. The call itself stays as it is, with everything that it holds at its server.

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

/// How long a client may take to come back.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many calls may wait.
const MOST: usize = 1_000;

/// A call under way: its work, what it asks and what it says meanwhile.
pub(super) struct Call {
    pub(super) what: What,
    pub(super) work: Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>,
    pub(super) asking: Option<Asking>,
    pub(super) reports: Reports,
}

/// What a call is about, and whose it is: only the same comes back to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct What {
    kind: Kind,
    name: String,
    whose: Principal,
}

/// A call that waits for the answers to its questions.
struct Parked {
    call: Call,
    /// By the keys that the client knows them by.
    questions: BTreeMap<String, Question>,
    expiry: AbortHandle,
}

/// What a request turns out to be.
pub(super) enum Arrival {
    /// Something new, or something that is its server's business.
    New,
    /// Somebody coming back to this call.
    Back(Call),
    /// Somebody coming back without all the answers: what is still wanted.
    Lacking(Raw),
}

/// All calls that wait.
pub(super) struct Yard {
    parked: Mutex<HashMap<String, Parked>>,
    /// Ends the wait of those who do not come back.
    expiries: Mutex<JoinSet<()>>,
    /// Before every word of ours, so that we know them from those of servers, of which some may be gateways too.
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
    /// Has a call wait, and says to its client what it waits for.
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

    /// The call that this request goes on with, its questions answered; or whatever else it is.
    pub(super) fn arrive(&self, errand: &Errand) -> Result<Arrival, RpcError> {
        let Some(Input { responses, state: Some(state) }) = &errand.input else { return Ok(Arrival::New) };
        let state: String = state.decode_or_default();
        if !state.starts_with(&self.mark) {
            return Ok(Arrival::New);
        }
        let mut parked = self.parked();
        let mut waiting = match parked.remove(&state) {
            Some(waiting) if waiting.call.what == What::of(errand) => waiting,
            // Somebody else's: it goes on waiting, and whoever asks hears nothing about it.
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

    /// Lets every call go: nobody can come back any more.
    pub(super) fn clear(&self) {
        let parked = std::mem::take(&mut *self.parked());
        parked.values().for_each(|it| it.expiry.abort());
    }

    /// Lets a call go when its client has not come back in time.
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

/// The result that says what a call waits for.
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
