//! Questions of runs under way to people. They are in memory only, because the run holds a call or a client's request
//! open until they are answered; the questions of runs that wait without a task are in the database.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};
use wharf_agent::{
    ApprovalAnswer, ApprovalDecisions, ApprovalQuestion, Approver, InputAnswer, InputAnswerer, InputFuture,
    InputQuestion,
};
use wharf_runtime::Redactor;

/// Maximum number of open questions. Further ones are declined.
const MAX_QUESTIONS: usize = 1_000;

/// Open questions, by id.
#[derive(Default)]
pub(crate) struct LiveQuestions(Mutex<BTreeMap<String, LiveQuestion>>);

struct LiveQuestion {
    /// Principal of the run, which may answer.
    principal: Arc<str>,
    /// The question, as clients see it.
    shown: Value,
    reply: oneshot::Sender<LiveAnswer>,
}

/// Answer of a person.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LiveAnswer {
    /// Decision about a call.
    Decision(ApprovalAnswer),
    /// Answer to a server.
    Input(InputAnswer),
}

/// A question until it is answered. Dropping it withdraws the question.
struct OpenQuestion {
    questions: Arc<LiveQuestions>,
    id: String,
    answer: oneshot::Receiver<LiveAnswer>,
}

impl LiveQuestions {
    /// Returns the open questions, as clients see them. With `owner`, only those of that principal's runs.
    pub(crate) fn list(&self, owner: Option<&str>) -> Vec<Value> {
        let is_visible = |it: &&LiveQuestion| owner.is_none_or(|owner| *owner == *it.principal);
        self.questions().values().filter(is_visible).map(|it| it.shown.clone()).collect()
    }

    /// Returns an open question, as clients see it.
    pub(crate) fn find(&self, id: &str, owner: Option<&str>) -> Option<Value> {
        let questions = self.questions();
        let found = questions.get(id).filter(|it| owner.is_none_or(|owner| *owner == *it.principal))?;
        Some(found.shown.clone())
    }

    /// Answers a question. Returns whether it was still open.
    pub(crate) fn answer(&self, id: &str, answer: LiveAnswer) -> bool {
        let found = self.questions().remove(id);
        found.is_some_and(|it| it.reply.send(answer).is_ok())
    }

    /// Adds a question. `None` if there are too many.
    fn ask(self: &Arc<LiveQuestions>, id: &str, principal: &Arc<str>, shown: Value) -> Option<OpenQuestion> {
        let (reply, answer) = oneshot::channel();
        let mut questions = self.questions();
        if questions.len() >= MAX_QUESTIONS {
            return None;
        }
        questions.insert(id.to_owned(), LiveQuestion { principal: principal.clone(), shown, reply });
        drop(questions);
        Some(OpenQuestion { questions: self.clone(), id: id.to_owned(), answer })
    }

    fn questions(&self) -> MutexGuard<'_, BTreeMap<String, LiveQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenQuestion {
    /// Waits for the answer. `None` if nobody answers in time.
    async fn answered_until(mut self, until: Option<Instant>) -> Option<LiveAnswer> {
        match until {
            Some(until) => timeout_at(until, &mut self.answer).await.ok()?.ok(),
            None => (&mut self.answer).await.ok(),
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.questions.questions().remove(&self.id);
    }
}

/// Asks people over the routes for approvals.
pub(super) struct LivePeople {
    pub(super) questions: Arc<LiveQuestions>,
    pub(super) principal: Arc<str>,
    pub(super) conversation_id: String,
    pub(super) run_id: String,
    pub(super) redactor: Arc<Redactor>,
    /// How long people may take, if that is less than the limit of the run.
    pub(super) wait: Duration,
}

impl LivePeople {
    /// Adds a question, in the form in which clients see all questions.
    fn ask(&self, id: &str, mut question: Value) -> Option<OpenQuestion> {
        question["conversation_id"] = self.conversation_id.as_str().into();
        question["run_id"] = self.run_id.as_str().into();
        if question["digest"].is_null() {
            let digest = Sha256::digest(question.to_string());
            question["digest"] = digest.iter().map(|it| format!("{it:02x}")).collect::<String>().into();
        }
        for key in ["decision", "scope", "decided_by"] {
            question[key] = Value::Null;
        }
        self.questions.ask(id, &self.principal, question)
    }

    fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.wait)
    }
}

impl InputAnswerer for LivePeople {
    fn answer(&self, question: InputQuestion) -> InputFuture<'_> {
        Box::pin(async move {
            let open = self.ask(&question.input_id, question.to_json());
            let Some(open) = open else { return InputAnswer::Decline };
            match open.answered_until(self.until()).await {
                Some(LiveAnswer::Input(answer)) => answer,
                _ => InputAnswer::Decline,
            }
        })
    }
}

impl Approver for LivePeople {
    fn decide(&self, questions: Vec<ApprovalQuestion>) -> ApprovalDecisions<'_> {
        Box::pin(async move {
            let ask = |question: ApprovalQuestion| {
                let shown = self.redactor.redact(&question.to_json().to_string());
                let mut shown: Value = serde_json::from_str(&shown).ok()?;
                shown["kind"] = "call".into();
                let open = self.ask(&question.approval_id, shown)?;
                Some((question.call_id, open))
            };
            let open: Vec<(String, OpenQuestion)> = questions.into_iter().filter_map(ask).collect();
            let until = self.until();
            let mut decisions = Vec::new();
            for (call_id, open) in open {
                if let Some(LiveAnswer::Decision(answer)) = open.answered_until(until).await {
                    decisions.push((call_id, answer));
                }
            }
            decisions
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_question_is_answered_once_and_withdrawn_when_dropped() {
        let (questions, ann) = (Arc::new(LiveQuestions::default()), Arc::from("ann"));
        let open = questions.ask("q1", &ann, json!({ "approval_id": "q1" })).expect("room");
        assert_eq!(questions.list(Some("ann")).len(), 1);
        assert_eq!((questions.list(Some("bob")), questions.find("q1", Some("bob"))), (Vec::new(), None));
        let yes = LiveAnswer::Input(InputAnswer::Decline);
        assert!(questions.answer("q1", yes.clone()));
        assert!(!questions.answer("q1", yes.clone()), "a question has one answer");
        assert_eq!(open.answered_until(None).await, Some(yes));
        let dropped = questions.ask("q2", &ann, json!({})).expect("room");
        drop(dropped);
        assert_eq!(questions.list(None), Vec::<Value>::new());
    }
}
