//! Questions of tasks at servers of 2025-11-25, for clients of 2026-07-28.
//!
//! Such a server sends its questions while `tasks/result` waits. Such a client finds them in `tasks/get` and answers with
//! `tasks/update`. So the gateway waits for the result in the background and keeps the questions meanwhile.

use super::{
    next_question,
    questions::{Question, QuestionReceiver},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::Notify, task::JoinSet, time};
use wharf_mcp::{Raw, RpcError};

/// Maximum number of tasks whose questions are kept.
const MAX_WAITING_TASKS: usize = 1_000;

/// How long `tasks/get` waits for the first question of a task that needs input.
const FIRST_QUESTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Tasks that wait for the client's input, by the id that the client knows.
#[derive(Default)]
pub(super) struct TaskQuestions {
    waiting: Mutex<HashMap<String, Arc<WaitingTask>>>,
    results: Mutex<JoinSet<()>>,
}

/// One task that waits for the client's input.
#[derive(Debug, Default)]
struct WaitingTask {
    questions: Mutex<KeyedQuestions>,
    asked: Notify,
}

/// Open questions by key. A key is never used twice.
#[derive(Debug, Default)]
struct KeyedQuestions {
    count: u64,
    open: BTreeMap<String, Question>,
}

impl TaskQuestions {
    /// Returns the open questions of a task as `inputRequests`, or `None` if there are none at the moment. The first
    /// call begins to wait for the result, with `result` and the questions that arrive meanwhile.
    pub(super) async fn open<F>(
        self: &Arc<TaskQuestions>,
        id: &str,
        result: F,
        receiver: Option<QuestionReceiver>,
    ) -> Result<Option<Value>, RpcError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = self.find_or_wait(id, result, receiver)?;
        let asked = task.asked.notified();
        if task.shown().is_none() {
            let _ = time::timeout(FIRST_QUESTION_TIMEOUT, asked).await;
        }
        Ok(task.shown())
    }

    /// Passes on the client's answers. Returns whether the questions of this task are kept here.
    pub(super) fn answer(&self, id: &str, responses: &Raw) -> bool {
        let Some(task) = self.waiting().get(id).cloned() else { return false };
        for (key, response) in responses.members().0 {
            let question = task.questions().open.remove(&*key);
            if let (Some(question), Ok(response)) = (question, Raw::parse(response.get().to_owned())) {
                question.answer(Ok(response));
            }
        }
        true
    }

    /// Stops waiting, because no client can answer any more.
    pub(super) fn clear(&self) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        self.waiting().clear();
    }

    fn find_or_wait<F>(
        self: &Arc<TaskQuestions>,
        id: &str,
        result: F,
        mut receiver: Option<QuestionReceiver>,
    ) -> Result<Arc<WaitingTask>, RpcError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut waiting = self.waiting();
        if let Some(task) = waiting.get(id) {
            return Ok(task.clone());
        }
        if waiting.len() >= MAX_WAITING_TASKS {
            return Err(RpcError::new(RpcError::INTERNAL, "too many tasks are waiting for client input"));
        }
        let task = Arc::<WaitingTask>::default();
        waiting.insert(id.to_owned(), task.clone());
        drop(waiting);
        let (weak, id, keeper): (Weak<TaskQuestions>, _, _) =
            (Arc::downgrade(self), id.to_owned(), task.clone());
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        while results.try_join_next().is_some() {}
        results.spawn(async move {
            let mut result = std::pin::pin!(result);
            loop {
                tokio::select! {
                    () = &mut result => break,
                    Some(question) = next_question(&mut receiver) => keeper.add(question),
                }
            }
            if let Some(all) = weak.upgrade() {
                all.waiting().remove(&id);
            }
        });
        Ok(task)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Arc<WaitingTask>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingTask {
    fn add(&self, question: Question) {
        let mut questions = self.questions();
        questions.count += 1;
        let key = format!("question{}", questions.count);
        questions.open.insert(key, question);
        drop(questions);
        self.asked.notify_waiters();
    }

    /// Returns the open questions as `inputRequests`, if there are any.
    fn shown(&self) -> Option<Value> {
        let questions = self.questions();
        let shown = |it: &Question| json!({ "method": it.method, "params": it.params });
        let shown = questions.open.iter().map(|(key, it)| (key.clone(), shown(it)));
        (!questions.open.is_empty()).then(|| shown.collect())
    }

    fn questions(&self) -> MutexGuard<'_, KeyedQuestions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for TaskQuestions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskQuestions({} tasks)", self.waiting().len())
    }
}
