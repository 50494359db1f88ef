//! `wharf tasks`: shows or cancels a task that `wharf call --no-wait` left at a server.

use super::call::print_result;
use crate::{
    app::{App, Connections},
    cli::TasksCommand,
    command_error::CommandError,
    content::printable,
    exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use wharf_mcp::{
    Raw, RpcError,
    model::CallResult,
    session::{List, TaskOperation},
    tasks::TaskStatus,
};

pub(super) async fn run(app: App, command: TasksCommand) -> Exit {
    let output = app.output;
    let (TasksCommand::Get { id } | TasksCommand::Cancel { id }) = &command;
    let is_source = |name: &str| app.plan.sources.iter().any(|it| it.name.expose() == name);
    let Some((source, task)) = id.split_once(':').filter(|(source, _)| is_source(source)) else {
        let complaint = format!(
            "'{id}' is not the id of a task\nhelp: it is `SERVER:ID`, as `wharf call --no-wait` prints it"
        );
        return output.fail(&CommandError::new("MCPError", &complaint, Exit::NotFound));
    };
    let connections = app.connect(|it| it.name.expose() == source, &[List::Tools]).await;
    let cancel = matches!(command, TasksCommand::Cancel { .. });
    let exit = match operate(&connections, source, task, cancel).await {
        Ok(task) => print_task(&task, id, output),
        Err(error) => output.fail(&error),
    };
    connections.close().await;
    exit
}

/// Cancels the task if that is wanted, and returns it.
async fn operate(
    connections: &Connections,
    source: &str,
    task: &str,
    cancel: bool,
) -> Result<Raw, CommandError> {
    let run = async |operation| {
        let done = connections.handle.task(source, operation, task, None).await;
        done.map_err(|fault| {
            let is_unknown = fault.rpc.as_ref().is_some_and(|it| it.code == RpcError::INVALID_PARAMS);
            let mut error = CommandError::from(&*fault);
            if is_unknown {
                error.exit = Exit::NotFound;
            }
            error
        })
    };
    if cancel {
        run(TaskOperation::Cancel).await?;
    }
    run(TaskOperation::Get).await
}

/// Prints a task with its result, if it has one.
fn print_task(task: &Raw, id: &str, output: Output) -> Exit {
    let status = TaskStatus::of(task).unwrap_or(TaskStatus::Working);
    let (result, error) = (task.member("result"), task.member("error"));
    let exit = match (&result, &error) {
        (Some(result), _) if CallResult::read(result).is_error => Exit::ToolError,
        (None, Some(_)) => Exit::Protocol,
        _ => Exit::Success,
    };
    if output.json {
        let (result, error) = (result.into(), error.into());
        output.raw_json(&Raw::object([
            ("task", view(task, id).into()),
            ("result", result),
            ("error", error),
        ]));
        return exit;
    }
    match (result, error.and_then(|it| RpcError::read(&it))) {
        (Some(result), _) => print_result(&result, None, output),
        (None, Some(error)) => {
            output.print_error(&format!("error: the task failed: {}", printable(&error.message)))
        }
        (None, None) => {
            let message: Option<String> = task.member("statusMessage").and_then(|it| it.decode().ok());
            let message = message.map(|it| format!(": {}", printable(&it))).unwrap_or_default();
            output.data(&format!("{}{message}\n", status.name()));
        }
    }
    exit
}

/// Prints the id of a task that a call has created.
pub(super) fn print_created(task: &Raw, source: &str, output: Output) -> Exit {
    let id = wharf_mcp::tasks::id_of(task).unwrap_or_default();
    let id = format!("{source}:{}", printable(&id));
    if output.json {
        output.json(&json!({ "task": view(task, &id) }));
    } else {
        output.data(&format!("{id}\n"));
        output.print_info(&format!("`wharf tasks get {id}` shows it, `wharf tasks cancel {id}` ends it"));
    }
    Exit::Success
}

/// Builds the JSON of a task.
fn view(task: &Raw, id: &str) -> Value {
    let member =
        |name: &str| -> Value { task.member(name).map(|it| it.decode_or_default()).unwrap_or_default() };
    json!({
        "id": id,
        "status": member("status"),
        "message": member("statusMessage"),
        "created_at": member("createdAt"),
        "ttl_ms": member("ttlMs"),
        "poll_interval_ms": member("pollIntervalMs"),
    })
}
