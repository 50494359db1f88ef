//! Tasks of a server: runs tool calls in the background and answers `tasks/*` in both eras.
//!
//! A [`TaskStore`] is bounded: a task lives for its TTL, and the oldest finished task makes room for a new one. Tasks are
//! in memory, so they end with the process.

mod stored_task;

use super::{
    Client, Incoming,
    client::Peer,
    http::{Owner, random_id},
};
use crate::{
    Raw, RpcError,
    session::Era,
    tasks::{self, TaskStatus},
};
use serde_json::json;
use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use stored_task::StoredTask;
pub use stored_task::TaskHandle;
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

/// Maximum number of tasks in one page of `tasks/list`.
const PAGE: usize = 100;

/// Limits of a [`TaskStore`].
#[derive(Clone, Copy, Debug)]
pub struct TaskLimits {
    /// Lifetime of a task from its creation, unless the client asks for a shorter one.
    pub ttl: Duration,
    /// Interval at which clients should poll.
    pub poll_interval: Duration,
    /// Maximum number of tasks.
    pub max_tasks: usize,
}

/// Tasks of one server. Clones share them.
#[derive(Clone, Debug)]
pub struct TaskStore(Arc<TaskStoreInner>);

#[derive(Debug)]
struct TaskStoreInner {
    limits: TaskLimits,
    stored: Mutex<HashMap<String, Arc<StoredTask>>>,
    running: Mutex<JoinSet<()>>,
}

/// Client that created a task. Only this client can use the task.
#[derive(Clone, Debug)]
pub(super) struct TaskOwner {
    principal: Option<Arc<str>>,
    /// Session of a client without a principal; it limits what `tasks/list` shows.
    session: Weak<Peer>,
}

impl Default for TaskLimits {
    fn default() -> TaskLimits {
        TaskLimits { ttl: Duration::from_secs(600), poll_interval: Duration::from_secs(1), max_tasks: 1_000 }
    }
}

impl Default for TaskStore {
    fn default() -> TaskStore {
        TaskStore::new(TaskLimits::default())
    }
}

impl TaskStore {
    /// Creates an empty store.
    pub fn new(limits: TaskLimits) -> TaskStore {
        let (stored, running) = (Mutex::default(), Mutex::default());
        TaskStore(Arc::new(TaskStoreInner { limits, stored, running }))
    }

    /// Returns whether a tool call may become a task: its client declares tasks, or asks for one.
    pub fn accepts(request: &Incoming, client: &Client) -> bool {
        match client.terms().era {
            Era::Modern => tasks::is_declared(&client.terms().capabilities),
            Era::Legacy => request.members.task.is_some(),
        }
    }

    /// Returns the error for a tool call that has to become a task, from a client that does not accept one.
    pub fn required(client: &Client) -> RpcError {
        match client.terms().era {
            Era::Modern => tasks::missing_capability(),
            Era::Legacy => {
                RpcError::new(RpcError::METHOD_NOT_FOUND, "this tool can only be called as a task")
            }
        }
    }

    /// Runs `work` as a task and returns the result that tells the client about it.
    pub fn start<F>(
        &self,
        request: &Incoming,
        client: &Client,
        work: impl FnOnce(TaskHandle) -> F,
    ) -> Result<Raw, RpcError>
    where
        F: Future<Output = Result<Raw, RpcError>> + Send + 'static,
    {
        let TaskLimits { ttl, poll_interval, .. } = self.0.limits;
        let asked: Option<u64> = request.members.task.as_ref().and_then(|it| it.member("ttl")?.decode().ok());
        let ttl = asked.map_or(ttl, |asked| ttl.min(Duration::from_millis(asked)));
        let no_randomness = || RpcError::new(RpcError::INTERNAL, "no randomness for a task id");
        let id = random_id().ok_or_else(no_randomness)?;
        let task = Arc::new(StoredTask::new(id, TaskOwner::of(request, client), ttl, poll_interval));
        self.insert(&task)?;
        let (work, running_task) = (work(TaskHandle(task.clone())), task.clone());
        let mut running = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        let abort = running.spawn(async move {
            let outcome = time::timeout(ttl, work).await;
            let expired =
                || RpcError::new(RpcError::INTERNAL, "the task was not finished within its lifetime");
            running_task.finish(outcome.unwrap_or_else(|_| Err(expired())));
        });
        drop(running);
        task.set_abort(abort);
        let created = task.show(false).with("resultType", &json!("task").into());
        Ok(match client.terms().era {
            Era::Modern => created,
            Era::Legacy => tasks::created_to_legacy(&created),
        })
    }

    /// Answers a `tasks/*` request.
    pub(super) async fn answer(&self, request: Incoming, client: Client) -> Result<Raw, RpcError> {
        let (era, method) = (client.terms().era, request.method.as_str());
        let is_known = match era {
            Era::Modern => ["tasks/get", "tasks/update", "tasks/cancel"].contains(&method),
            Era::Legacy => ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"].contains(&method),
        };
        if !is_known {
            return Err(RpcError::method_not_found(method));
        }
        if era == Era::Modern && !tasks::is_declared(&client.terms().capabilities) {
            return Err(tasks::missing_capability());
        }
        let owner = TaskOwner::of(&request, &client);
        if method == "tasks/list" {
            return self.list(&request, &owner);
        }
        let task = self.find(&request, &owner)?;
        match (method, era) {
            ("tasks/get", Era::Modern) => Ok(task.show(true)),
            ("tasks/get", Era::Legacy) => Ok(tasks::to_legacy(&task.show(false))),
            ("tasks/update", _) => {
                let responses = request.members.input_responses.filter(Raw::is_object);
                let missing = || RpcError::new(RpcError::INVALID_PARAMS, "`inputResponses` is missing");
                task.give_input(&responses.ok_or_else(missing)?);
                Ok(Raw::empty_object())
            }
            ("tasks/cancel", Era::Modern) => {
                task.cancel();
                Ok(Raw::empty_object())
            }
            ("tasks/cancel", Era::Legacy) if task.cancel() => Ok(tasks::to_legacy(&task.show(false))),
            ("tasks/cancel", Era::Legacy) => {
                Err(RpcError::new(RpcError::INVALID_PARAMS, "the task is already over"))
            }
            _ => task.result(&client).await,
        }
    }

    fn find(&self, request: &Incoming, owner: &TaskOwner) -> Result<Arc<StoredTask>, RpcError> {
        let id: Option<String> = request.members.task_id.as_ref().and_then(|it| it.decode().ok());
        let missing = || RpcError::new(RpcError::INVALID_PARAMS, "`taskId` is missing");
        let id = id.ok_or_else(missing)?;
        let task = self.stored().get(&id).cloned();
        // The task of another principal is as unknown as one that never existed.
        let task = task.filter(|task| !task.has_expired() && task.owner().principal == owner.principal);
        task.ok_or_else(tasks::unknown_task)
    }

    /// Lists the tasks of a client, oldest first. The cursor is the id of the last task on the page before.
    fn list(&self, request: &Incoming, owner: &TaskOwner) -> Result<Raw, RpcError> {
        let mut own: Vec<Arc<StoredTask>> =
            self.stored().values().filter(|it| !it.has_expired() && it.owner().is(owner)).cloned().collect();
        own.sort_by(|one, other| one.order().cmp(&other.order()));
        let after: Option<String> = request.members.cursor.as_ref().and_then(|it| it.decode().ok());
        let start = match after {
            None => 0,
            Some(after) => {
                let invalid = || RpcError::new(RpcError::INVALID_PARAMS, "invalid `cursor`");
                own.iter().position(|it| it.id() == after).ok_or_else(invalid)? + 1
            }
        };
        let page: Vec<&Arc<StoredTask>> = own.iter().skip(start).take(PAGE).collect();
        let more = start + page.len() < own.len();
        let next = page.last().filter(|_| more).map(|it| ("nextCursor", Raw::from(json!(it.id()))));
        let tasks = Raw::list(page.iter().map(|it| tasks::to_legacy(&it.show(false))));
        Ok(Raw::object([("tasks", tasks)].into_iter().chain(next)))
    }

    /// Stores a task. If the store is full, the oldest finished task makes room.
    fn insert(&self, task: &Arc<StoredTask>) -> Result<(), RpcError> {
        let mut stored = self.stored();
        if stored.len() >= self.0.limits.max_tasks {
            stored.retain(|_, it| !it.has_expired());
        }
        if stored.len() >= self.0.limits.max_tasks {
            let finished = stored.values().filter(|it| it.status().is_terminal()).min_by_key(|it| it.order());
            let finished = finished.map(|it| it.id().to_owned());
            let full = || RpcError::new(RpcError::INTERNAL, "too many tasks are running; try again later");
            stored.remove(&finished.ok_or_else(full)?);
        }
        stored.insert(task.id().to_owned(), task.clone());
        Ok(())
    }

    fn stored(&self) -> MutexGuard<'_, HashMap<String, Arc<StoredTask>>> {
        self.0.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskOwner {
    fn of(request: &Incoming, client: &Client) -> TaskOwner {
        let principal = request.http.as_ref().and_then(|it| it.extensions.get::<Owner>());
        TaskOwner { principal: principal.map(|it| it.0.clone()), session: client.session() }
    }

    /// Returns whether this is the same client. Without a principal, the session identifies it.
    fn is(&self, other: &TaskOwner) -> bool {
        self.principal == other.principal
            && (self.principal.is_some() || Weak::ptr_eq(&self.session, &other.session))
    }
}
