//! Tasks of the server: waiting for a result, and single operations, for servers of both eras.

use super::{
    Era, Host, MetaKey, OnProgress, Progress, Request, Session, TaskMode, TaskOperation, meta,
    request::LogSettings,
    rounds::{answer_questions, share_callback},
};
use crate::{
    Class, Failure, Phase, Raw, RpcError, Sent,
    json::Members,
    tasks::{self, TaskStatus, TaskSupport},
};
use serde_json::json;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{self, Instant};

/// Polling interval if the server suggests none, and the limits for its suggestions.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// If the next poll would be after the deadline, the task is polled once more this long before it.
const LAST_POLL: Duration = Duration::from_millis(500);

/// One task of the server.
pub(super) struct TaskClient<'a> {
    session: &'a Session,
    id: String,
    deadline: Instant,
    idle_timeout: Option<Duration>,
    /// `_meta` of the client on whose behalf the task runs.
    meta: Option<Raw>,
    logs: Option<LogSettings>,
    host: Option<Arc<dyn Host>>,
    on_progress: Option<Arc<Mutex<OnProgress>>>,
}

/// Cancels the task at the server when dropped while armed: its caller left, or its deadline passed.
struct CancelOnDrop<'a> {
    task: &'a TaskClient<'a>,
    armed: bool,
}

/// Returns whether a tool call of a 2025-11-25 server becomes a task: the caller expects one, or the tool needs it.
pub(super) fn becomes_task(session: &Session, request: &Request) -> bool {
    let wanted = match request.task_support {
        TaskSupport::Forbidden => false,
        TaskSupport::Optional => request.tasks == TaskMode::Return,
        TaskSupport::Required => true,
    };
    let calls =
        || session.terms.capabilities.member("tasks")?.member("requests")?.member("tools")?.member("call");
    wanted && calls().is_some()
}

/// Calls a tool of a 2025-11-25 server as a task, and waits for the result unless the caller does.
pub(super) async fn call_as_task(session: &Session, mut request: Request) -> Result<Raw, Failure> {
    let deadline = session.deadline(&request);
    let (mode, on_progress) = (request.tasks, request.on_progress.take());
    let on_progress = on_progress.map(|it| Arc::new(Mutex::new(it)));
    let params = request.params.take().unwrap_or_else(Raw::empty_object);
    let task = request.task_params.take().unwrap_or_else(Raw::empty_object);
    let create = Request {
        params: Some(params.with("task", &task)),
        deadline: Some(deadline),
        idle_timeout: request.idle_timeout,
        on_progress: on_progress.as_ref().map(share_callback),
        name: request.name.clone(),
        meta: request.meta.clone(),
        logs: request.logs.clone(),
        host: request.host.clone(),
        ..Request::new(request.method.clone())
    };
    let result = session.exchange(create).await?;
    // A server may answer at once, as if it had not been asked for a task.
    let Some(created) = tasks::created_from_legacy(&result) else { return Ok(result) };
    match mode {
        TaskMode::Return => Ok(created),
        TaskMode::Wait | TaskMode::WaitUndeclared => {
            TaskClient::of(session, &created, deadline, request, on_progress)?.wait(&created).await
        }
    }
}

/// Runs an operation on a task. Tasks have the form of 2026-07-28, whatever the era of the server.
pub(super) async fn operate(session: &Session, mut request: Request) -> Result<Raw, Failure> {
    let deadline = session.deadline(&request);
    let (operation, id) = (request.task_operation.take(), request.name.take().unwrap_or_default());
    let on_progress = request.on_progress.take().map(|it| Arc::new(Mutex::new(it)));
    let task = TaskClient::new(session, id, deadline, request, on_progress);
    match operation {
        Some(TaskOperation::Get) => task.get().await,
        Some(TaskOperation::GetStatus) | None => task.status().await,
        Some(TaskOperation::Result) => task.result().await,
        Some(TaskOperation::Update(responses)) => task.update(&responses).await,
        Some(TaskOperation::Cancel) => task.cancel().await,
    }
}

impl<'a> TaskClient<'a> {
    /// Takes over a task that the server has just created for `request`.
    pub(super) fn of(
        session: &'a Session,
        created: &Raw,
        deadline: Instant,
        request: Request,
        on_progress: Option<Arc<Mutex<OnProgress>>>,
    ) -> Result<TaskClient<'a>, Failure> {
        let id = tasks::id_of(created).ok_or_else(|| Failure::protocol("the task has no `taskId`"))?;
        Ok(TaskClient::new(session, id, deadline, request, on_progress))
    }

    fn new(
        session: &'a Session,
        id: String,
        deadline: Instant,
        request: Request,
        on_progress: Option<Arc<Mutex<OnProgress>>>,
    ) -> TaskClient<'a> {
        let Request { idle_timeout, meta, logs, host, .. } = request;
        let meta = match session.terms.era {
            Era::Modern => Some(declaring_tasks(session, meta)),
            Era::Legacy => meta,
        };
        TaskClient { session, id, deadline, idle_timeout, meta, logs, host, on_progress }
    }

    /// Polls the task until it is over and returns its result. Dropping the future cancels the task.
    pub(super) async fn wait(&self, created: &Raw) -> Result<Raw, Failure> {
        let mut guard = CancelOnDrop { task: self, armed: true };
        let result = self.poll(created).await.map_err(Failure::after_sending);
        // The server itself ended the task, or does not know it any more.
        let is_over = |failure: &Failure| failure.class == Class::Rpc || failure.class == Class::Closed;
        guard.armed = result.as_ref().err().is_some_and(|failure| !is_over(failure));
        result
    }

    async fn poll(&self, created: &Raw) -> Result<Raw, Failure> {
        let mut task = created.clone();
        let mut answered = HashSet::new();
        let mut reported = None;
        for polls in 0_u32.. {
            self.report(&task, polls, &mut reported);
            let is_working = TaskStatus::of(&task) == Some(TaskStatus::Working);
            // The result that created the task has neither a result nor questions, whatever its status.
            if is_working || polls > 0 {
                if let Some(result) = self.advance(&task, &mut answered).await? {
                    return Ok(result);
                }
                self.pause(&task).await?;
            }
            task = self.status().await?;
        }
        Err(timed_out())
    }

    /// Returns the result of a task that is over, and answers its questions.
    async fn advance(&self, task: &Raw, answered: &mut HashSet<String>) -> Result<Option<Raw>, Failure> {
        let status = TaskStatus::of(task).ok_or_else(|| Failure::protocol("the task has no known status"))?;
        match (status, self.session.terms.era) {
            (TaskStatus::Working, _) => Ok(None),
            (TaskStatus::Cancelled, _) => Err(cancelled(task)),
            // In 2025-11-25 the questions of a task, too, arrive while its result is awaited.
            (TaskStatus::InputRequired | TaskStatus::Completed | TaskStatus::Failed, Era::Legacy) => {
                self.exchange("tasks/result", None).await.map(Some)
            }
            (TaskStatus::InputRequired, Era::Modern) => self.answer(task, answered).await.map(|()| None),
            (TaskStatus::Completed, Era::Modern) => {
                let missing = || Failure::protocol("the completed task has no `result`");
                task.member("result").ok_or_else(missing).map(Some)
            }
            (TaskStatus::Failed, Era::Modern) => {
                let error = task.member("error").and_then(|it| RpcError::read(&it));
                let error = error.unwrap_or_else(|| RpcError::new(RpcError::INTERNAL, "the task failed"));
                Err(Failure::rpc(error))
            }
        }
    }

    /// Answers the questions of a task, each once.
    async fn answer(&self, task: &Raw, answered: &mut HashSet<String>) -> Result<(), Failure> {
        let Some(questions) = task.member("inputRequests") else { return Ok(()) };
        let mut questions = questions.members().0;
        questions.retain(|(key, _)| answered.insert(key.clone().into_owned()));
        if questions.is_empty() {
            return Ok(());
        }
        let host = self.host.as_ref().unwrap_or(&self.session.settings.host).clone();
        let answers = answer_questions(&*host, Members(questions));
        let answers = time::timeout_at(self.deadline, answers).await.map_err(|_| timed_out())??;
        self.update(&answers).await.map(drop)
    }

    /// Waits until the next poll is due.
    async fn pause(&self, task: &Raw) -> Result<(), Failure> {
        let now = Instant::now();
        if now >= self.deadline {
            return Err(timed_out());
        }
        let suggested = task.member("pollIntervalMs").and_then(|it| it.decode().ok());
        let interval = suggested.map_or(POLL_INTERVAL, Duration::from_millis);
        let next = now + interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        let last = self.deadline.checked_sub(LAST_POLL).filter(|last| *last > now);
        match last {
            Some(last) if next > last => time::sleep_until(last).await,
            None if next > self.deadline => {
                time::sleep_until(self.deadline).await;
                return Err(timed_out());
            }
            _ => time::sleep_until(next).await,
        }
        Ok(())
    }

    /// Reports the status message of a task as progress of the request, whenever it changes.
    fn report(&self, task: &Raw, polls: u32, reported: &mut Option<String>) {
        let Some(on_progress) = &self.on_progress else { return };
        let message: Option<String> = task.member("statusMessage").and_then(|it| it.decode().ok());
        let status = TaskStatus::of(task).map_or("working", TaskStatus::name);
        let message = message.unwrap_or_else(|| format!("task {}: {status}", self.id));
        if reported.as_ref() == Some(&message) {
            return;
        }
        *reported = Some(message.clone());
        let progress = f64::from(polls) + 1.0;
        let raw = json!({ "progress": progress, "message": message }).into();
        let at = Progress { progress, total: None, message: Some(message), raw };
        on_progress.lock().unwrap_or_else(PoisonError::into_inner)(at);
    }

    /// Returns the task. A server of 2026-07-28 includes the result.
    async fn status(&self) -> Result<Raw, Failure> {
        let task = self.exchange("tasks/get", None).await?;
        Ok(match self.session.terms.era {
            Era::Modern => task,
            Era::Legacy => tasks::from_legacy(&task),
        })
    }

    /// Returns the task with its result or its error.
    async fn get(&self) -> Result<Raw, Failure> {
        let task = self.status().await?;
        let is_done = matches!(TaskStatus::of(&task), Some(TaskStatus::Completed | TaskStatus::Failed));
        if self.session.terms.era == Era::Modern || !is_done {
            return Ok(task);
        }
        let with_status = |status: TaskStatus| task.with("status", &json!(status.name()).into());
        match self.exchange("tasks/result", None).await {
            // A tool that reports an error has answered: 2026-07-28 calls that completed.
            Ok(result) => {
                let result = tasks::without_related_task(&result);
                Ok(with_status(TaskStatus::Completed).with("result", &result))
            }
            Err(failure) => match &failure.rpc {
                Some(error) => Ok(with_status(TaskStatus::Failed).with("error", &error.to_raw())),
                None => Err(failure),
            },
        }
    }

    async fn result(&self) -> Result<Raw, Failure> {
        // Polling shows that the server is alive, which a request that waits for hours does not.
        self.poll(&self.status().await?).await
    }

    async fn update(&self, responses: &Raw) -> Result<Raw, Failure> {
        match self.session.terms.era {
            Era::Modern => self.exchange("tasks/update", Some(responses)).await,
            Era::Legacy => {
                let why = "the server of this task asks its questions while `tasks/result` waits";
                Err(Failure::rpc(RpcError::new(RpcError::INVALID_PARAMS, why)))
            }
        }
    }

    async fn cancel(&self) -> Result<Raw, Failure> {
        let outcome = self.exchange("tasks/cancel", None).await;
        match (outcome, self.session.terms.era) {
            (Ok(acknowledged), Era::Modern) => Ok(acknowledged),
            (Ok(_), Era::Legacy) => Ok(Raw::empty_object()),
            // 2025-11-25 rejects this for a task that is over, 2026-07-28 does not.
            (Err(failure), Era::Legacy) if failure.rpc_code() == Some(RpcError::INVALID_PARAMS) => {
                let is_over = TaskStatus::of(&self.status().await?).is_some_and(TaskStatus::is_terminal);
                if is_over { Ok(Raw::empty_object()) } else { Err(failure) }
            }
            (Err(failure), _) => Err(failure),
        }
    }

    async fn exchange(&self, method: &'static str, responses: Option<&Raw>) -> Result<Raw, Failure> {
        let request = Request {
            params: Some(self.params(responses)),
            deadline: Some(self.deadline),
            idle_timeout: self.idle_timeout,
            name: Some(self.id.clone()),
            meta: self.meta.clone(),
            logs: self.logs.clone(),
            host: self.host.clone(),
            ..Request::new(method)
        };
        self.session.exchange(request).await
    }

    fn params(&self, responses: Option<&Raw>) -> Raw {
        let params = meta::named_params("taskId", &self.id, None);
        responses.map_or(params.clone(), |responses| params.with("inputResponses", responses))
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let TaskClient { session, meta, .. } = self.task;
        let can_cancel = session.terms.era == Era::Modern || session.terms.offers("tasks", Some("cancel"));
        if self.armed && can_cancel {
            let params = self.task.params(None);
            session.send_and_forget("tasks/cancel", params, self.task.id.clone(), meta.as_ref());
        }
    }
}

/// Adds tasks to the capabilities that a request declares, because we handle them for its caller.
pub(super) fn declaring_tasks(session: &Session, meta: Option<Raw>) -> Raw {
    let meta = meta.unwrap_or_else(Raw::empty_object);
    let capabilities = meta.member(MetaKey::CAPABILITIES);
    let capabilities = capabilities.unwrap_or_else(|| session.settings.host.capabilities());
    match tasks::is_declared(&capabilities) {
        true if meta.member(MetaKey::CAPABILITIES).is_some() => meta,
        _ => meta.with(MetaKey::CAPABILITIES, &tasks::declare(&capabilities)),
    }
}

fn cancelled(task: &Raw) -> Failure {
    let why: Option<String> = task.member("statusMessage").and_then(|it| it.decode().ok());
    let why = why.map(|it| format!(": {it}")).unwrap_or_default();
    Failure::rpc(RpcError::new(tasks::CANCELLED, format!("the task was cancelled{why}")))
}

/// The server answered every poll, so this says nothing about its health.
fn timed_out() -> Failure {
    Failure::new(Class::Timeout, Phase::Request, Sent::Yes, "the task was not finished in time")
}
