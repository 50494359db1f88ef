//! Tools that become tasks.

use crate::{
    handler::{SdkHandler, from_json, missing},
    tools::text,
};
use conformance::questions::Answers;
use rmcp::{
    ErrorData,
    model::{CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, InputRequiredResult},
    service::{RequestContext, RoleServer},
    task_manager::{TaskContext, TaskExit, TaskOptions},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// How long a job takes that says nothing about its duration.
const SHORT_JOB: Duration = Duration::from_millis(200);

pub(crate) const JOBS: [&str; 6] = [
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

/// Runs a job as a task, if its client accepts one.
pub(crate) async fn call(
    handler: &SdkHandler,
    name: &str,
    params: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let seconds = params["arguments"]["seconds"].as_f64().unwrap_or_default();
    if !context.client_capabilities().is_some_and(|it| it.supports_tasks()) {
        return match name {
            "slow_compute" => {
                sleep(Duration::from_secs_f64(seconds)).await;
                Ok(text("Computed the job."))
            }
            _ => Err(missing(&json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }))),
        };
    }
    let mut gathered = json!({});
    if name == "test_tool_with_task" {
        match handler.ask(name, params, context).await? {
            Answers::Missing(result) => return from_json::<InputRequiredResult>(result).map(Into::into),
            Answers::Given(given) => gathered = given,
        }
    }
    let name = name.to_owned();
    let task = handler.tasks.spawn(TaskOptions::default(), move |task| {
        Box::pin(async move { run(&name, seconds, &gathered, task).await })
    });
    Ok(CreateTaskResult::new(task).into())
}

async fn run(
    name: &str,
    seconds: f64,
    gathered: &Value,
    task: TaskContext,
) -> Result<CallToolResult, TaskExit> {
    let done = |words: String| Ok(CallToolResult::success(vec![ContentBlock::text(words)]));
    match name {
        "slow_compute" => tokio::select! {
            () = task.cancelled() => Err(TaskExit::Cancelled),
            () = sleep(Duration::from_secs_f64(seconds)) => done("Computed the job.".to_owned()),
        },
        "failing_job" => {
            sleep(SHORT_JOB).await;
            Ok(CallToolResult::error(vec![ContentBlock::text("The job failed.")]))
        }
        "protocol_error_job" => Err(ErrorData::internal_error("the job broke down", None).into()),
        "confirm_delete" => {
            done(format!("The user chose {}.", confirm(&task, "confirm", "Delete it?").await?))
        }
        "multi_input" => {
            let (one, other) =
                tokio::join!(confirm(&task, "one", "First?"), confirm(&task, "other", "Second?"));
            done(format!("The user chose {} and {}.", one?, other?))
        }
        _ => {
            let name = gathered["user_name"]["content"]["name"].as_str().unwrap_or("nobody");
            done(format!("Hello, {name}!"))
        }
    }
}

async fn confirm(task: &TaskContext, key: &str, message: &str) -> Result<Value, TaskExit> {
    let properties = json!({ "confirm": { "type": "boolean" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["confirm"] });
    let params = json!({ "message": message, "requestedSchema": schema });
    let question = from_json(json!({ "method": "elicitation/create", "params": params }))?;
    let answer = task.request_input(key, question).await?;
    Ok(answer["action"].clone())
}
