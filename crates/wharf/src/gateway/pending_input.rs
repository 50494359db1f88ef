//! Calls that are suspended until their client sends input, in the modern era, where a server cannot send requests to
//! a client.
//!
//! The client receives an `input_required` result with the questions and a `requestState`. It repeats its request
//! with the answers and that state, and the call resumes. Meanwhile the call keeps everything that it holds at its
//! server.

use super::{
    client_request::{ClientRequest, PrincipalName, RequestKind},
    invalid,
    questions::{Question, QuestionReceiver},
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
const RESUME_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum number of suspended calls.
const MAX_SUSPENDED_CALLS: usize = 1_000;

/// A running call: its future, its questions to the client, and its reports.
pub(super) struct RunningCall {
    pub(super) identity: CallIdentity,
    pub(super) work: Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>,
    pub(super) question_receiver: Option<QuestionReceiver>,
    pub(super) reports: Reports,
}

/// Identifies a call by request and principal. Only a request that matches it may resume the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallIdentity {
    kind: RequestKind,
    name: String,
    principal: PrincipalName,
}

/// A call that is suspended until its questions are answered.
struct SuspendedCall {
    call: RunningCall,
    /// Open questions by the keys sent to the client.
    questions: BTreeMap<String, Question>,
    expiry: AbortHandle,
}

/// Classifies a request by its `requestState`.
pub(super) enum ResumeRequest {
    /// A new call, or one whose `requestState` belongs to the server rather than to this gateway.
    New,
    /// Resumes this call; all its questions are answered.
    Resume(RunningCall),
    /// Resumes a call, but answers are missing: the result that asks for them again.
    MissingInput(Raw),
}

/// All suspended calls.
pub(super) struct PendingInput {
    suspended: Mutex<HashMap<String, SuspendedCall>>,
    /// Timers that drop calls whose client does not resume them.
    expiries: Mutex<JoinSet<()>>,
    /// Prefix of every `requestState` issued here. It distinguishes them from those of servers, some of which may be
    /// gateways too.
    state_prefix: String,
}

impl CallIdentity {
    pub(super) fn of(client_request: &ClientRequest) -> CallIdentity {
        CallIdentity {
            kind: client_request.kind,
            name: client_request.name.clone(),
            principal: client_request.principal.clone(),
        }
    }

    pub(super) fn kind(&self) -> RequestKind {
        self.kind
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Default for PendingInput {
    fn default() -> PendingInput {
        let state_prefix = format!("wharf.{}.", Uuid::new_v4().simple());
        PendingInput { suspended: Mutex::default(), expiries: Mutex::default(), state_prefix }
    }
}

impl PendingInput {
    /// Suspends a call and returns the result that asks its client for input.
    pub(super) fn suspend(
        self: &Arc<PendingInput>,
        call: RunningCall,
        questions: Vec<Question>,
    ) -> Result<Raw, RpcError> {
        let state = format!("{}{}", self.state_prefix, Uuid::new_v4().simple());
        let keys = (1..).map(|number| format!("question{number}"));
        let questions: BTreeMap<String, Question> = keys.zip(questions).collect();
        let input_required = input_required(&questions, &state);
        let mut suspended = self.suspended();
        if suspended.len() >= MAX_SUSPENDED_CALLS {
            return Err(RpcError::new(RpcError::INTERNAL, "too many calls are waiting for client input"));
        }
        let expiry = self.start_expiry(state.clone());
        suspended.insert(state, SuspendedCall { call, questions, expiry });
        Ok(input_required)
    }

    /// Resumes the call that this request refers to and passes on its answers, or classifies the request otherwise.
    pub(super) fn resume(&self, client_request: &ClientRequest) -> Result<ResumeRequest, RpcError> {
        let Some(Input { responses, state: Some(state) }) = &client_request.input else {
            return Ok(ResumeRequest::New);
        };
        let state: String = state.decode_or_default();
        if !state.starts_with(&self.state_prefix) {
            return Ok(ResumeRequest::New);
        }
        let mut suspended = self.suspended();
        let mut waiting = match suspended.remove(&state) {
            Some(waiting) if waiting.call.identity == CallIdentity::of(client_request) => waiting,
            // The state belongs to another request or principal. The call stays suspended, and the error does not
            // reveal it.
            Some(waiting) => {
                suspended.insert(state, waiting);
                return Err(invalid("the call of this `requestState` has ended"));
            }
            None => return Err(invalid("the call of this `requestState` has ended")),
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
            return Ok(ResumeRequest::Resume(waiting.call));
        }
        let input_required = input_required(&waiting.questions, &state);
        suspended.insert(state, waiting);
        Ok(ResumeRequest::MissingInput(input_required))
    }

    /// Drops all suspended calls, because clients cannot resume them any more.
    pub(super) fn clear(&self) {
        let suspended = std::mem::take(&mut *self.suspended());
        suspended.values().for_each(|it| it.expiry.abort());
    }

    /// Starts a timer that drops a call if its client does not resume it in time.
    fn start_expiry(self: &Arc<PendingInput>, state: String) -> AbortHandle {
        let pending_input: Weak<PendingInput> = Arc::downgrade(self);
        let mut expiries = self.expiries.lock().unwrap_or_else(PoisonError::into_inner);
        while expiries.try_join_next().is_some() {}
        expiries.spawn(async move {
            time::sleep(RESUME_TIMEOUT).await;
            let expired =
                pending_input.upgrade().and_then(|pending_input| pending_input.suspended().remove(&state));
            drop(expired);
        })
    }

    fn suspended(&self) -> MutexGuard<'_, HashMap<String, SuspendedCall>> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the `input_required` result for these questions.
fn input_required(questions: &BTreeMap<String, Question>, state: &str) -> Raw {
    let asked = |it: &Question| json!({ "method": it.method, "params": it.params });
    let asks: Map<String, Value> = questions.iter().map(|(key, it)| (key.clone(), asked(it))).collect();
    json!({ "resultType": "input_required", "inputRequests": asks, "requestState": state }).into()
}

impl std::fmt::Debug for PendingInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PendingInput({} calls)", self.suspended().len())
    }
}

#[cfg(test)]
mod tests;
