//! Tasks of servers: `tasks/get`, `tasks/result`, `tasks/update` and `tasks/cancel`, for clients of either era in front
//! of servers of either era.

use super::{
    Gateway,
    client_request::PrincipalName,
    error::rpc_error,
    invalid,
    questions::{self, QuestionReceiver},
    routing,
    task_ids::SourceTask,
};
use serde_json::json;
use wharf_mcp::{
    Raw, RpcError,
    serve::{Client, Incoming},
    session::{Era, TaskMode, TaskOperation},
    tasks::{self, TaskStatus, TaskSupport},
};
use wharf_runtime::{Caller, Catalog};

/// Form in which a client gets a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskForm {
    /// 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl TaskForm {
    /// Returns the form for a client that handles tasks itself.
    pub(super) fn of(caller: &Caller) -> Option<TaskForm> {
        let form = if caller.task_params.is_some() { TaskForm::Legacy } else { TaskForm::Modern };
        (caller.tasks == TaskMode::Return).then_some(form)
    }
}

/// Rejects `params.task` for a tool that cannot be called as a task, as 2025-11-25 wants it.
pub(super) fn check_support(catalog: &Catalog, name: &str) -> Result<(), RpcError> {
    let support = catalog.tool(name).and_then(|it| it.tool.as_ref()).map(|it| it.task_support);
    match support {
        // The call itself reports an unknown tool.
        None | Some(TaskSupport::Optional | TaskSupport::Required) => Ok(()),
        Some(TaskSupport::Forbidden) => {
            let why = format!("the tool `{name}` cannot be called as a task");
            Err(RpcError::new(RpcError::METHOD_NOT_FOUND, why))
        }
    }
}

/// A client's operation on one of its tasks.
struct TaskRequest<'a> {
    gateway: &'a Gateway,
    caller: Caller,
    task: SourceTask,
    /// Id that the client knows.
    id: String,
}

impl Gateway {
    pub(super) async fn operate_task(&self, request: Incoming, client: Client) -> Result<Raw, RpcError> {
        let Incoming { method, members, http, .. } = &request;
        let (era, method) = (client.terms().era, method.as_str());
        let is_known = match era {
            Era::Modern => matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel"),
            Era::Legacy => matches!(method, "tasks/get" | "tasks/result" | "tasks/cancel"),
        };
        if !is_known {
            return Err(RpcError::method_not_found(method));
        }
        if era == Era::Modern && !tasks::is_declared(&client.terms().capabilities) {
            return Err(tasks::missing_capability());
        }
        let id: Option<String> = members.task_id.as_ref().and_then(|it| it.decode().ok());
        let id = id.ok_or_else(|| invalid("`taskId` is missing"))?;
        let principal = PrincipalName::of(http.as_deref());
        let task = self.task_ids.open(principal.0.as_deref(), &id).ok_or_else(tasks::unknown_task)?;
        let (consent, receiver) = questions::open(&client, &self.elicitations).unzip();
        // As for the call that created the task: it decides the session.
        let takes_requests = consent.is_some() && era == Era::Legacy;
        let caller = Caller { consent, takes_requests, ..routing::caller(&client) };
        let task = TaskRequest { gateway: self, caller, task, id };
        match (method, era) {
            ("tasks/get", Era::Modern) => task.get(receiver).await,
            ("tasks/get", Era::Legacy) => task.status().await,
            ("tasks/update", _) => {
                let responses = members.input_responses.clone().filter(Raw::is_object);
                let responses = responses.ok_or_else(|| invalid("`inputResponses` is missing"))?;
                match self.task_questions.answer(&task.id, &responses) {
                    true => Ok(Raw::empty_object()),
                    false => task.run(TaskOperation::Update(responses)).await,
                }
            }
            ("tasks/cancel", Era::Modern) => task.run(TaskOperation::Cancel).await,
            ("tasks/cancel", Era::Legacy) => task.cancel_and_show().await,
            // The receiver lives until the result is there: without it, the server's questions are rejected.
            _ => task.result(receiver).await,
        }
    }
}

impl TaskRequest<'_> {
    async fn run(&self, operation: TaskOperation) -> Result<Raw, RpcError> {
        let SourceTask { source, id } = &self.task;
        let done = self.gateway.handle.task(source, operation, id, Some(&self.caller)).await;
        done.map_err(|it| rpc_error(&it))
    }

    async fn get(self, receiver: Option<QuestionReceiver>) -> Result<Raw, RpcError> {
        let task = tasks::with_id(&self.run(TaskOperation::Get).await?, &self.id);
        let lacks_questions = TaskStatus::of(&task) == Some(TaskStatus::InputRequired)
            && task.member("inputRequests").is_none();
        if !lacks_questions {
            return Ok(task);
        }
        // A server of 2025-11-25 asks while its client waits for the result.
        let TaskRequest { gateway, caller, task: SourceTask { source, id: source_id }, id } = self;
        let handle = gateway.handle.clone();
        let result = async move {
            // The client gets the outcome from `tasks/get`.
            let _ = handle.task(&source, TaskOperation::Result, &source_id, Some(&caller)).await;
        };
        Ok(match gateway.task_questions.open(&id, result, receiver).await? {
            Some(questions) => task.with("inputRequests", &questions.into()),
            None => task.with("status", &json!(TaskStatus::Working.name()).into()),
        })
    }

    async fn status(&self) -> Result<Raw, RpcError> {
        let task = self.run(TaskOperation::GetStatus).await?;
        Ok(tasks::with_id(&tasks::to_legacy(&task), &self.id))
    }

    async fn result(&self, _receiver: Option<QuestionReceiver>) -> Result<Raw, RpcError> {
        Ok(tasks::with_related_task(&self.run(TaskOperation::Result).await?, &self.id))
    }

    /// Cancels a task as in 2025-11-25, where a task that is over cannot be cancelled and the task is the result.
    async fn cancel_and_show(&self) -> Result<Raw, RpcError> {
        if TaskStatus::of(&self.status().await?).is_some_and(TaskStatus::is_terminal) {
            return Err(invalid("the task is already over"));
        }
        self.run(TaskOperation::Cancel).await?;
        self.status().await
    }
}
