//! Tools that become tasks.

use crate::{
    fixtures::{FixtureData, invalid},
    questions::ask,
};
use conformance::questions::Answers;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;
use wharf_mcp::{
    Raw, RpcError,
    serve::{Client, Incoming, TaskHandle, TaskStore},
};

/// How long a job takes that says nothing about its duration.
const SHORT_JOB: Duration = Duration::from_millis(200);

const JOBS: [&str; 6] = [
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

/// Returns whether a tool call is a job.
pub(crate) fn is_job(request: &Incoming) -> bool {
    request.method == "tools/call" && JOBS.contains(&name_of(request).as_str())
}

/// Runs a job as a task, if its client accepts one.
pub(crate) async fn call(data: &FixtureData, request: &Incoming, client: &Client) -> Result<Raw, RpcError> {
    let name = name_of(request);
    let params: Value = request.params.as_ref().map(Raw::decode_or_default).unwrap_or_default();
    let arguments = params["arguments"].clone();
    if !TaskStore::accepts(request, client) {
        return match name.as_str() {
            "slow_compute" => compute(&arguments).await,
            _ => Err(TaskStore::required(client)),
        };
    }
    let mut gathered = json!({});
    if name == "test_tool_with_task" {
        let script = data.suite.questions.of(&name);
        let script = script.ok_or_else(|| invalid("the tool is unknown", json!({})))?;
        match ask(script, &name, &params, client).await? {
            Answers::Missing(result) => return Ok(result.into()),
            Answers::Given(given) => gathered = given,
        }
    }
    data.tasks.start(request, client, |task| async move { run(&name, &arguments, &gathered, task).await })
}

async fn run(name: &str, arguments: &Value, gathered: &Value, task: TaskHandle) -> Result<Raw, RpcError> {
    task.report("at work");
    match name {
        "slow_compute" => compute(arguments).await,
        "failing_job" => {
            sleep(SHORT_JOB).await;
            Ok(json!({ "content": text("The job failed."), "isError": true }).into())
        }
        "protocol_error_job" => Err(RpcError::new(RpcError::INTERNAL, "the job broke down")),
        "confirm_delete" => {
            let answer = confirm(&task, "Delete it?").await?;
            Ok(json!({ "content": text(&format!("The user chose {answer}.")) }).into())
        }
        "multi_input" => {
            let (one, other) = tokio::join!(confirm(&task, "First?"), confirm(&task, "Second?"));
            Ok(json!({ "content": text(&format!("The user chose {} and {}.", one?, other?)) }).into())
        }
        _ => {
            let name = gathered["user_name"]["content"]["name"].as_str().unwrap_or("nobody");
            Ok(json!({ "content": text(&format!("Hello, {name}!")) }).into())
        }
    }
}

async fn compute(arguments: &Value) -> Result<Raw, RpcError> {
    sleep(Duration::from_secs_f64(arguments["seconds"].as_f64().unwrap_or_default())).await;
    let label = arguments["label"].as_str().unwrap_or("the job");
    Ok(json!({ "content": text(&format!("Computed {label}.")) }).into())
}

async fn confirm(task: &TaskHandle, message: &str) -> Result<Value, RpcError> {
    let properties = json!({ "confirm": { "type": "boolean" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["confirm"] });
    let params = json!({ "message": message, "requestedSchema": schema });
    let answer: Value = task.ask("elicitation/create", params.into()).await?.decode_or_default();
    Ok(answer["action"].clone())
}

fn name_of(request: &Incoming) -> String {
    request.members.name.as_ref().map(Raw::decode_or_default).unwrap_or_default()
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}
