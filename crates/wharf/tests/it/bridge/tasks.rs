//! Tests tasks through the gateway: plain clients get the result, clients that handle tasks get a task that only they
//! can use, in front of servers of either era.

use super::{
    task_server::TaskServer,
    test_client::{Gateway, TestClient, Transport},
};
use serde_json::{Value, json};
use std::{fs, process::Command, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::{task::JoinSet, time};
use wharf_mcp::{
    Host, Raw, Request,
    serve::Eras,
    session::{Era, HostFuture, TaskMode, TaskOperation},
    tasks::{EXTENSION, TaskSupport},
};

const ERAS: [(Era, Eras); 4] = [
    (Era::Modern, Eras::ModernOnly),
    (Era::Modern, Eras::LegacyOnly),
    (Era::Legacy, Eras::ModernOnly),
    (Era::Legacy, Eras::LegacyOnly),
];

/// Declares tasks and answers forms.
struct TasksHost;

impl Host for TasksHost {
    fn capabilities(&self) -> Raw {
        json!({ "elicitation": { "form": {} }, "extensions": { EXTENSION: {} } }).into()
    }

    fn answer(&self, _method: &str, _params: Option<Raw>) -> HostFuture {
        Box::pin(async { Ok(json!({ "action": "accept", "content": { "name": "Tess" } }).into()) })
    }
}

impl Gateway {
    async fn connect_for_tasks(&self, era: Era) -> TestClient {
        self.connect_with(Transport::Http, era, "Tess", Arc::new(TasksHost)).await
    }
}

/// Calls a tool as a task.
fn as_task(tool: &str, arguments: Value) -> Request {
    let request = Request::call_tool(tool, Some(&arguments.into()));
    request.tasks(TaskMode::Return).task_support(TaskSupport::Required)
}

/// Creates a task and returns its id.
async fn create(client: &TestClient, tool: &str, arguments: Value) -> String {
    let created = client.result(as_task(tool, arguments)).await;
    assert_eq!(created["resultType"], "task", "{created}");
    assert_eq!(created["status"], "working", "{created}");
    created["taskId"].as_str().expect("an id").to_owned()
}

/// Polls a task until it is over.
async fn finished(client: &TestClient, id: &str) -> Value {
    let polling = async {
        loop {
            let task = client.result(Request::task(TaskOperation::Get, id)).await;
            assert_eq!(task["taskId"], id);
            if ["completed", "failed", "cancelled"].contains(&task["status"].as_str().unwrap_or_default()) {
                return task;
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    time::timeout(Duration::from_secs(20), polling).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_clients_get_the_result_of_a_task() {
    for (era, eras) in ERAS {
        let server = TaskServer::start(eras).await;
        let gateway = server.gateway();
        let client = gateway.connect(Transport::Http, era, "Ada").await;
        for tool in ["either", "plain"] {
            assert_eq!(client.call(tool, json!({ "nonce": 7 })).await, "7", "{era:?} {eras:?} {tool}");
        }
        let arguments: Raw = json!({ "nonce": 7, "wait": 100 }).into();
        let job = || Request::call_tool("job", Some(&arguments));
        if (era, eras) == (Era::Modern, Eras::ModernOnly) {
            // This client can declare tasks, so it learns from the server that it has to.
            let said = client.ask(job().tasks(TaskMode::WaitUndeclared)).await;
            assert!(said.starts_with("-32021 "), "{said}");
        }
        assert_eq!(client.ask(job()).await, "7", "{era:?} {eras:?}");
        if eras == Eras::ModernOnly {
            assert_eq!(client.call("insist", json!({ "nonce": 8, "wait": 100 })).await, "8", "{era:?}");
        }
        let (status, rest) =
            gateway.rest("POST /api/v1/tools/island:job/call", r#"{"arguments":{"nonce":9}}"#);
        assert!(status == 200 && rest.to_string().contains(r#""9""#), "{eras:?}: {rest}");
        assert_eq!(server.cancelled(), 0);
    }
}

#[tokio::test]
async fn clients_that_handle_tasks_get_them_from_servers_of_either_era() {
    for (era, eras) in ERAS {
        let server = TaskServer::start(eras).await;
        let gateway = server.gateway();
        let client = gateway.connect_for_tasks(era).await;
        let id = create(&client, "job", json!({ "nonce": 7, "wait": 100 })).await;
        let task = finished(&client, &id).await;
        assert_eq!(task["status"], "completed", "{era:?} {eras:?}: {task}");
        assert_eq!(task["result"]["content"][0]["text"], "7", "{era:?} {eras:?}: {task}");
        let result = client.ask(Request::task(TaskOperation::Result, &id)).await;
        assert_eq!(result, "7", "{era:?} {eras:?}");

        let id = create(&client, "fail", json!({})).await;
        let task = finished(&client, &id).await;
        assert_eq!((&task["status"], &task["error"]["code"]), (&json!("failed"), &json!(-32055)), "{task}");

        let id = create(&client, "job", json!({ "wait": 60_000 })).await;
        client.result(Request::task(TaskOperation::Cancel, &id)).await;
        assert_eq!(finished(&client, &id).await["status"], "cancelled", "{era:?} {eras:?}");
        assert_eq!(server.cancelled(), 1, "{era:?} {eras:?}");

        let forged = client.ask(Request::task(TaskOperation::Get, "W10.AAAA")).await;
        assert!(forged.starts_with("-32602 "), "{forged}");
    }
}

#[tokio::test]
async fn questions_of_a_task_reach_its_client() {
    for (era, eras) in ERAS {
        let server = TaskServer::start(eras).await;
        let gateway = server.gateway();
        let client = gateway.connect_for_tasks(era).await;
        // The client waits for its own task, and answers meanwhile.
        let request = as_task("ask", json!({})).tasks(TaskMode::Wait);
        assert_eq!(client.ask(request).await, r#""Tess""#, "{era:?} {eras:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_leave_the_breaker_closed() {
    let server = TaskServer::start(Eras::ModernOnly).await;
    let gateway = server.gateway();
    let (tasks, plain) = tokio::join!(
        gateway.connect_for_tasks(Era::Modern),
        gateway.connect(Transport::Http, Era::Legacy, "Ada")
    );
    let tasks = Arc::new(tasks);
    let mut calls = JoinSet::new();
    for nonce in 0..20 {
        let tasks = tasks.clone();
        calls.spawn(async move {
            let id = create(&tasks, "job", json!({ "nonce": nonce, "wait": 50 })).await;
            let task = finished(&tasks, &id).await;
            assert_eq!(task["result"]["content"][0]["text"], nonce.to_string());
        });
    }
    let plain_call = plain.call("job", json!({ "nonce": 99, "wait": 50 }));
    let (_, plain_answer) = tokio::join!(calls.join_all(), plain_call);
    assert_eq!(plain_answer, "99");
    // Tasks that fail, and tasks that do not exist, say nothing about the server either.
    for _ in 0..6 {
        let id = create(&tasks, "fail", json!({})).await;
        assert_eq!(finished(&tasks, &id).await["status"], "failed");
        assert!(plain.call("fail", json!({})).await.starts_with("-32055 "));
    }
    let (_, connections) = gateway.rest("GET /api/v1/connections", "");
    // `degraded` would mean that the breaker is not closed.
    let connection = &connections["items"][0];
    assert_eq!(
        (&connection["connection_state"], &connection["health"]),
        (&json!("connected"), &json!("healthy"))
    );
}

#[tokio::test]
async fn a_plain_client_that_leaves_cancels_its_task() {
    for eras in [Eras::ModernOnly, Eras::LegacyOnly] {
        let server = TaskServer::start(eras).await;
        let gateway = server.gateway();
        let client = gateway.connect(Transport::Http, Era::Legacy, "Ada").await;
        let call = client.call("job", json!({ "wait": 60_000 }));
        assert!(time::timeout(Duration::from_secs(2), call).await.is_err());
        let cancelled = async {
            while server.cancelled() == 0 {
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        time::timeout(Duration::from_secs(20), cancelled).await.expect("the task is cancelled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_waits_or_comes_back_for_a_task() {
    for eras in [Eras::ModernOnly, Eras::LegacyOnly] {
        let server = TaskServer::start(eras).await;
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("agent.yaml"), server.agent_file()).expect("the file can be written");
        let wharf = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
            command.args(args).current_dir(folder.path()).env("WHARF_HOME", folder.path().join("home"));
            let output = command.output().expect("the program runs");
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            (output.status.code(), said, String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let waited = wharf(&["call", "job", "nonce:=7"]);
        assert_eq!((waited.0, waited.1.as_str()), (Some(0), "7"), "{eras:?}: {}", waited.2);
        let (code, id, _) = wharf(&["call", "job", "nonce:=8", "--no-wait"]);
        assert!(code == Some(0) && id.starts_with("island:"), "{eras:?}: {id}");
        let fetched = || {
            let (code, said, _) = wharf(&["tasks", "get", &id]);
            assert_eq!(code, Some(0));
            said
        };
        while fetched().starts_with("working") {}
        assert_eq!(fetched(), "8", "{eras:?}");
        let (_, said, _) = wharf(&["call", "job", "wait:=60000", "--no-wait", "--json"]);
        let created: Value = serde_json::from_str(&said).expect("JSON");
        let id = created["task"]["id"].as_str().expect("an id");
        assert_eq!(wharf(&["tasks", "cancel", id]).1, "cancelled: cancelled by the client");
        assert_eq!(server.cancelled(), 1, "{eras:?}");
        let (_, said, _) = wharf(&["tasks", "get", id, "--json"]);
        let task: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((&task["task"]["status"], &task["result"]), (&json!("cancelled"), &Value::Null), "{said}");
        assert_eq!(wharf(&["tasks", "get", "island:nothing"]).0, Some(66));
        assert_eq!(wharf(&["tasks", "get", "elsewhere:1"]).0, Some(66));
    }
}
