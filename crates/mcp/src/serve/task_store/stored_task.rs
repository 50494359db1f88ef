//! One task: its status, its questions to the client, and its outcome.

use super::{Client, Instant, TaskOwner, TaskStatus, tasks};
use crate::{Raw, RpcError, time_format::rfc3339};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::{
    sync::{Semaphore, oneshot, watch},
    task::AbortHandle,
};

/// A task of a [`super::TaskStore`].
#[derive(Debug)]
pub(super) struct StoredTask {
    id: String,
    owner: TaskOwner,
    created: SystemTime,
    /// Time of creation, for ordering and expiry.
    started: Instant,
    ttl: Duration,
    poll_interval: Duration,
    progress: watch::Sender<TaskProgress>,
    questions: Mutex<OpenQuestions>,
    /// Held by the `tasks/result` request that asks the client the task's questions.
    asking: Semaphore,
    abort: OnceLock<AbortHandle>,
}

/// Status of a task and what belongs to it.
#[derive(Clone, Debug)]
struct TaskProgress {
    status: TaskStatus,
    message: Option<String>,
    updated: SystemTime,
    outcome: Option<Result<Raw, RpcError>>,
}

/// Questions that the client has not answered yet, by key. A key is never used twice.
#[derive(Debug, Default)]
struct OpenQuestions {
    asked: u64,
    open: BTreeMap<String, TaskQuestion>,
}

#[derive(Debug)]
struct TaskQuestion {
    method: &'static str,
    params: Raw,
    reply: oneshot::Sender<Result<Raw, RpcError>>,
}

/// The handle that the work of a task uses to report and to ask.
#[derive(Clone, Debug)]
pub struct TaskHandle(pub(super) std::sync::Arc<StoredTask>);

impl TaskHandle {
    /// Sets the message that describes the current step.
    pub fn report(&self, message: impl Into<String>) {
        let message = message.into();
        self.0.change(|progress| progress.message = Some(message));
    }

    /// Asks the client, for example `elicitation/create`, and waits for its answer.
    pub async fn ask(&self, method: &'static str, params: Raw) -> Result<Raw, RpcError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut questions = self.0.questions.lock().unwrap_or_else(PoisonError::into_inner);
            questions.asked += 1;
            let key = format!("input{}", questions.asked);
            questions.open.insert(key, TaskQuestion { method, params, reply });
        }
        self.0.change(|progress| progress.status = TaskStatus::InputRequired);
        answer.await.unwrap_or_else(|_| Err(RpcError::new(RpcError::INTERNAL, "the task is over")))
    }
}

impl StoredTask {
    pub(super) fn new(id: String, owner: TaskOwner, ttl: Duration, poll_interval: Duration) -> StoredTask {
        let created = SystemTime::now();
        let progress =
            TaskProgress { status: TaskStatus::Working, message: None, updated: created, outcome: None };
        StoredTask {
            id,
            owner,
            created,
            started: Instant::now(),
            ttl,
            poll_interval,
            progress: watch::Sender::new(progress),
            questions: Mutex::default(),
            asking: Semaphore::new(1),
            abort: OnceLock::new(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn owner(&self) -> &TaskOwner {
        &self.owner
    }

    /// Returns the position among all tasks, oldest first.
    pub(super) fn order(&self) -> (Instant, &str) {
        (self.started, &self.id)
    }

    pub(super) fn has_expired(&self) -> bool {
        self.started.elapsed() >= self.ttl
    }

    pub(super) fn status(&self) -> TaskStatus {
        self.progress.borrow().status
    }

    pub(super) fn set_abort(&self, abort: AbortHandle) {
        let _ = self.abort.set(abort);
    }

    /// Returns the task in the form of 2026-07-28, with its result, error or questions if they are wanted.
    pub(super) fn show(&self, detailed: bool) -> Raw {
        let TaskProgress { status, message, updated, outcome } = self.progress.borrow().clone();
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut task = json!({
            "taskId": self.id,
            "status": status.name(),
            "createdAt": rfc3339(self.created),
            "lastUpdatedAt": rfc3339(updated),
            "ttlMs": millis(self.ttl),
            "pollIntervalMs": millis(self.poll_interval),
        });
        message.into_iter().for_each(|message| task["statusMessage"] = message.into());
        if detailed && status == TaskStatus::InputRequired {
            task["inputRequests"] = self.open_questions();
        }
        let task = Raw::from(task);
        match (status, outcome) {
            (TaskStatus::Completed, Some(Ok(result))) if detailed => task.with("result", &result),
            (TaskStatus::Failed, Some(Err(error))) if detailed => task.with("error", &error.to_raw()),
            _ => task,
        }
    }

    fn open_questions(&self) -> Value {
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = |it: &TaskQuestion| json!({ "method": it.method, "params": it.params });
        questions.open.iter().map(|(key, it)| (key.clone(), shown(it))).collect()
    }

    /// Passes on the answers of a client. Unknown and answered keys are ignored.
    pub(super) fn give_input(&self, responses: &Raw) {
        for (key, response) in responses.members().0 {
            if let Ok(response) = Raw::parse(response.get().to_owned()) {
                self.give_answer(&key, Ok(response));
            }
        }
    }

    fn give_answer(&self, key: &str, answer: Result<Raw, RpcError>) {
        let (question, is_last) = {
            let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
            (questions.open.remove(key), questions.open.is_empty())
        };
        let Some(question) = question else { return };
        if is_last {
            self.change(|progress| progress.status = TaskStatus::Working);
        }
        let _ = question.reply.send(answer);
    }

    pub(super) fn finish(&self, outcome: Result<Raw, RpcError>) {
        let status = if outcome.is_ok() { TaskStatus::Completed } else { TaskStatus::Failed };
        self.change(|progress| (progress.status, progress.outcome) = (status, Some(outcome)));
    }

    /// Cancels the task; returns whether it was still running.
    pub(super) fn cancel(&self) -> bool {
        let changed = self.change(|progress| {
            progress.status = TaskStatus::Cancelled;
            progress.message = Some("cancelled by the client".to_owned());
        });
        self.abort.get().into_iter().for_each(AbortHandle::abort);
        changed
    }

    /// Changes a task that is not over yet; returns whether it did.
    fn change(&self, change: impl FnOnce(&mut TaskProgress)) -> bool {
        self.progress.send_if_modified(|progress| {
            let is_open = !progress.status.is_terminal();
            if is_open {
                change(progress);
                progress.updated = SystemTime::now();
            }
            is_open
        })
    }

    /// Answers `tasks/result` of 2025-11-25: waits until the task is over, and asks the client its questions
    /// meanwhile.
    pub(super) async fn result(&self, client: &Client) -> Result<Raw, RpcError> {
        let mut progress = self.progress.subscribe();
        loop {
            let (status, outcome) = {
                let progress = progress.borrow_and_update();
                (progress.status, progress.outcome.clone())
            };
            match (status, outcome) {
                (_, Some(outcome)) => {
                    return outcome.map(|result| tasks::with_related_task(&result, &self.id));
                }
                (TaskStatus::Cancelled, None) => {
                    return Err(RpcError::new(tasks::CANCELLED, "the task was cancelled"));
                }
                (TaskStatus::InputRequired, None) => {
                    // Another request of the client may be asking already.
                    if let Ok(_asking) = self.asking.try_acquire() {
                        self.ask_client(client).await;
                        continue;
                    }
                }
                _ => {}
            }
            if progress.changed().await.is_err() {
                return Err(RpcError::new(RpcError::INTERNAL, "the task is gone"));
            }
        }
    }

    /// Asks the client all open questions.
    async fn ask_client(&self, client: &Client) {
        let open: Vec<(String, &'static str, Raw)> = {
            let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
            questions.open.iter().map(|(key, it)| (key.clone(), it.method, it.params.clone())).collect()
        };
        let asking = open.into_iter().map(async |(key, method, params)| {
            let params = tasks::with_related_task(&params, &self.id);
            self.give_answer(&key, client.ask(method, Some(params)).await);
        });
        join_all(asking).await;
    }
}
