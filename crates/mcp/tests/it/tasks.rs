//! Tests tasks of servers of both eras: who waits for the result, and the operations on a task.

use crate::{
    eras::options,
    fake::{DISCOVERED, Fake, NO_DISCOVERY},
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use wharf_mcp::session::{Connected, HostFuture, MetaKey, TaskMode, TaskOperation};
use wharf_mcp::{Class, Failure, Host, Options, Raw, Request, Sent, Session, tasks::TaskSupport};

const TASKS_INITIALIZED: &str = r#"initialize: result {"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"fake"}}"#;
const CREATED: &str =
    r#"result {"resultType":"task","taskId":"t1","status":"working","ttlMs":null,"pollIntervalMs":5000}"#;
const LEGACY_CREATED: &str = r#"result {"task":{"taskId":"t1","status":"working","ttl":null}}"#;

async fn connect(rules: &[&str], host: impl Host + 'static) -> (Fake, Connected) {
    let fake = Fake::new(&rules.join("\n"));
    let options = Options { host: Arc::new(host), ..options() };
    (fake.clone(), Session::connect(&fake, &options).await.unwrap())
}

/// Builds a modern task with this status and these members.
fn task(status: &str, members: &str) -> String {
    format!(r#"result {{"resultType":"complete","taskId":"t1","status":"{status}","ttlMs":null{members}}}"#)
}

fn call() -> Request {
    Request::call_tool("t", None).deadline(Instant::now() + Duration::from_secs(60))
}

fn text(outcome: Result<Raw, Failure>) -> String {
    match outcome {
        Ok(result) => result.as_str().to_owned(),
        Err(failure) => format!("{:?} {:?}: {failure}", failure.class, failure.sent),
    }
}

struct Answering;

impl Host for Answering {
    fn capabilities(&self) -> Raw {
        json!({ "elicitation": {} }).into()
    }

    fn answer(&self, _method: &str, _params: Option<Raw>) -> HostFuture {
        Box::pin(async { Ok(json!({ "action": "accept" }).into()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_awaited_whatever_its_end() {
    for (end, expected) in [
        (task("completed", r#","result":{"content":[]}"#), r#"{"content":[]}"#),
        (task("completed", ""), "Protocol Unknown: the completed task has no `result`"),
        (
            task("failed", r#","error":{"code":-32001,"message":"broken","data":{"a":1}}"#),
            "Rpc Yes: the server answered with an error: broken (-32001)",
        ),
        (
            task("cancelled", r#","statusMessage":"by an operator""#),
            "Rpc Yes: the server answered with an error: the task was cancelled: by an operator (-32800)",
        ),
        (task("resting", ""), "Protocol Unknown: the task has no known status"),
        ("error -32602".to_owned(), "Rpc Yes: the server answered with an error: no (-32602)"),
        (task("working", ""), "Timeout Yes: the task was not finished in time"),
    ] {
        let rules = [DISCOVERED, &format!("tools/call: {CREATED}"), &format!("tasks/get: {end}")];
        let (fake, connected) = connect(&rules, Answering).await;
        assert_eq!(text(connected.session.request(call()).await), expected);
        tokio::time::sleep(Duration::from_millis(1)).await;
        // Only a task that the server has not ended itself is cancelled.
        let cancels = fake.methods().ends_with("tasks/cancel");
        assert_eq!(
            cancels,
            expected.starts_with("Timeout") || expected.starts_with("Protocol"),
            "{expected}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_polling_interval_of_the_server_is_kept_and_status_messages_are_progress() {
    let rules = [
        DISCOVERED,
        &format!("tools/call: {CREATED}"),
        &format!("tasks/get: {}", task("working", r#","pollIntervalMs":7000,"statusMessage":"half""#)),
    ];
    let (fake, connected) = connect(&rules, Answering).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = seen.clone();
    let request = call().on_progress(move |at| recorder.lock().unwrap().push(at.message.unwrap_or_default()));
    let begun = Instant::now();
    connected.session.request(request).await.unwrap_err();
    assert_eq!(begun.elapsed().as_secs(), 60);
    // After 5, 12, 19, 26, 33, 40, 47, 54 and shortly before 60 seconds.
    assert_eq!(fake.methods().matches("tasks/get").count(), 9);
    assert_eq!(*seen.lock().unwrap(), ["task t1: working", "half"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_wait_cancels_the_task() {
    let rules = [DISCOVERED, &format!("tools/call: {CREATED}"), "tasks/cancel: result {}"];
    let (fake, connected) = connect(&rules, Answering).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), connected.session.request(call())).await.is_err());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(fake.methods().ends_with("tools/call tasks/cancel"), "{}", fake.methods());
    let cancel: Value = serde_json::from_str(fake.received().last().unwrap()).unwrap();
    assert_eq!(cancel["params"]["taskId"], "t1");
    assert_eq!(cancel["params"]["_meta"][MetaKey::VERSION], "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn questions_of_a_task_are_answered_once() {
    let asks =
        task("input_required", r#","inputRequests":{"k":{"method":"elicitation/create","params":{}}}"#);
    let rules = [
        DISCOVERED,
        &format!("tools/call: {CREATED}"),
        &format!("tasks/get: {asks}"),
        "tasks/update: result {}",
    ];
    let (fake, connected) = connect(&rules, Answering).await;
    connected.session.request(call()).await.unwrap_err();
    let updates: Vec<String> =
        fake.received().into_iter().filter(|it| it.contains("\"tasks/update\"")).collect();
    assert_eq!(updates.len(), 1);
    assert!(updates[0].contains(r#""inputResponses":{"k":{"action":"accept"}}"#), "{}", updates[0]);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_declared_only_if_the_server_requires_them_and_we_wait() {
    let required =
        r#"error -32021 {"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    for (mode, calls) in [(TaskMode::Wait, 2), (TaskMode::WaitUndeclared, 1), (TaskMode::Return, 1)] {
        let (fake, connected) = connect(&[DISCOVERED, &format!("tools/call: {required}")], Answering).await;
        let meta = json!({ MetaKey::CAPABILITIES: { "roots": {} } });
        let failure = connected.session.request(call().meta(meta.into()).tasks(mode)).await.unwrap_err();
        assert_eq!(failure.rpc_code(), Some(-32021));
        let calls_sent: Vec<String> =
            fake.received().into_iter().filter(|it| it.contains("\"tools/call\"")).collect();
        assert_eq!(calls_sent.len(), calls, "{mode:?}");
        let last: Value = serde_json::from_str(calls_sent.last().unwrap()).unwrap();
        let declared = &last["params"]["_meta"][MetaKey::CAPABILITIES];
        assert_eq!(declared["extensions"].is_object(), mode == TaskMode::Wait);
        assert!(declared["roots"].is_object());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_server_is_asked_for_a_task_if_its_tool_allows_it() {
    let result = r#"tasks/result: result {"content":[]}"#;
    let done = r#"tasks/get: result {"taskId":"t1","status":"completed","ttl":60000}"#;
    for (support, mode, expected) in [
        (
            TaskSupport::Forbidden,
            TaskMode::Return,
            r#"{"task":{"taskId":"t1","status":"working","ttl":null}}"#,
        ),
        (TaskSupport::Optional, TaskMode::Wait, r#"{"task":{"taskId":"t1","status":"working","ttl":null}}"#),
        (
            TaskSupport::Optional,
            TaskMode::Return,
            r#"{"resultType":"task","taskId":"t1","status":"working","ttlMs":null}"#,
        ),
        (TaskSupport::Required, TaskMode::Wait, r#"{"content":[]}"#),
    ] {
        let rules = [NO_DISCOVERY, TASKS_INITIALIZED, &format!("tools/call: {LEGACY_CREATED}"), done, result];
        let (fake, connected) = connect(&rules, Answering).await;
        let request = call().task_support(support).tasks(mode).task_params(json!({ "ttl": 5 }).into());
        assert_eq!(text(connected.session.request(request).await), expected, "{support:?} {mode:?}");
        let as_task = expected != r#"{"task":{"taskId":"t1","status":"working","ttl":null}}"#;
        let sent = fake.received().iter().any(|it| it.contains(r#""task":{"ttl":5}"#));
        assert_eq!(sent, as_task, "{support:?} {mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn operations_have_one_form_for_both_eras() {
    let operate = async |rules: &[&str], operation| {
        let (fake, connected) = connect(rules, Answering).await;
        let done = text(connected.session.request(Request::task(operation, "t1")).await);
        (
            done,
            fake.methods()
                .split(' ')
                .skip_while(|it| !it.starts_with("tasks/"))
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    let legacy = |get: &'static str, result: &'static str| {
        [NO_DISCOVERY, TASKS_INITIALIZED, get, result, "tasks/cancel: error -32602"]
    };
    let completed = r#"tasks/get: result {"taskId":"t1","status":"failed","ttl":1,"pollInterval":2}"#;
    let working = r#"tasks/get: result {"taskId":"t1","status":"working","ttl":1}"#;
    let is_error = r#"tasks/result: result {"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#;
    let error = "tasks/result: error -32000";
    let modern_get = format!("tasks/get: {}", task("completed", r#","result":{"a":1}"#));
    let modern = [DISCOVERED, &modern_get, "tasks/cancel: result {}", "tasks/update: result {}"];
    for (rules, operation, expected, methods) in [
        (
            &legacy(completed, is_error)[..],
            TaskOperation::Get,
            r#"{"result":{"isError":true},"status":"completed","taskId":"t1","ttlMs":1,"pollIntervalMs":2}"#,
            "tasks/get tasks/result",
        ),
        (
            &legacy(completed, error),
            TaskOperation::Get,
            r#"{"error":{"code":-32000,"message":"no"},"status":"failed","taskId":"t1","ttlMs":1,"pollIntervalMs":2}"#,
            "tasks/get tasks/result",
        ),
        (
            &legacy(completed, error),
            TaskOperation::GetStatus,
            r#"{"taskId":"t1","status":"failed","ttlMs":1,"pollIntervalMs":2}"#,
            "tasks/get",
        ),
        (&legacy(completed, error), TaskOperation::Cancel, "{}", "tasks/cancel tasks/get"),
        (
            &legacy(working, error),
            TaskOperation::Cancel,
            "Rpc Yes: the server answered with an error: no (-32602)",
            "tasks/cancel tasks/get",
        ),
        (&modern, TaskOperation::Result, r#"{"a":1}"#, "tasks/get tasks/get"),
        (&modern, TaskOperation::Cancel, "{}", "tasks/cancel"),
        (&modern, TaskOperation::Update(Raw::empty_object()), "{}", "tasks/update"),
    ] {
        let (done, sent) = operate(rules, operation.clone()).await;
        assert_eq!((done.as_str(), sent.as_str()), (expected, methods), "{operation:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_poll_does_not_allow_a_second_call() {
    let rules = [DISCOVERED, &format!("tools/call: {CREATED} | exit")];
    let (_fake, connected) = connect(&rules, Answering).await;
    let failure = connected.session.request(call()).await.unwrap_err();
    assert_eq!((failure.class, failure.sent), (Class::Closed, Sent::Unknown));
}
