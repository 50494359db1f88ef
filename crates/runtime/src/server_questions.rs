//! Remembers what a server asks its client during a call, for a recording.

use crate::consent::{Answerable, Consent, ServerRequest};
use serde_json::{Value, json};
use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wharf_mcp::{Raw, RpcError};

/// Requests of a server during one call, in the order in which it sent them: `method`, `params`, and `answer` or `error`.
#[derive(Debug, Default)]
pub(crate) struct ServerQuestions(Mutex<Vec<Value>>);

/// Answers like another consent, and remembers questions and answers.
pub(crate) struct RememberingConsent {
    pub(crate) consent: Arc<dyn Consent>,
    pub(crate) questions: Arc<ServerQuestions>,
}

impl ServerQuestions {
    /// Returns the questions so far and forgets them.
    pub(crate) fn take(&self) -> Vec<Value> {
        mem::take(&mut *self.all())
    }

    fn add(&self, request: &ServerRequest) -> usize {
        // `_meta` has tokens and ids that differ from call to call.
        let params = request.params.without(&["_meta"]).decode_or_default::<Value>();
        let mut all = self.all();
        all.push(json!({ "method": request.method, "params": params }));
        all.len() - 1
    }

    fn set_answer(&self, at: usize, answer: &Result<Raw, RpcError>) {
        let (key, answer) = match answer {
            Ok(answer) => ("answer", answer.decode_or_default::<Value>()),
            Err(error) => ("error", json!({ "code": error.code, "message": error.message })),
        };
        if let Some(question) = self.all().get_mut(at) {
            question[key] = answer;
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consent for RememberingConsent {
    fn answers(&self) -> Answerable {
        self.consent.answers()
    }

    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        let (questions, at) = (self.questions.clone(), self.questions.add(&request));
        let answer = self.consent.answer(request);
        Box::pin(async move {
            let answer = answer.await;
            questions.set_answer(at, &answer);
            answer
        })
    }
}
