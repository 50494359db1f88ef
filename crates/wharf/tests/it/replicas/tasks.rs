//! Tests that a task that a client creates at one gateway can be polled and cancelled at another, by that client only.

use super::{Cluster, OTHER_TOKEN, PROPAGATION_TIMEOUT, STEP_TIMEOUT, until};
use crate::kills::gateway::TOKEN;
use http::{HeaderValue, header::AUTHORIZATION};
use serde_json::{Value, json};
use std::{sync::Arc, sync::atomic::Ordering};
use wharf_mcp::{
    Host, Raw, Request, Session, SessionTask,
    http::{HttpClient, HttpEndpoint},
    session::{ClientInfo, Connected, Era, EraHint, HostFuture, NoHost, Options, TaskMode, TaskOperation},
    tasks::EXTENSION,
};

struct TasksHost;

impl Host for TasksHost {
    fn capabilities(&self) -> Raw {
        json!({ "extensions": { EXTENSION: {} } }).into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        NoHost.answer(method, params)
    }
}

async fn connect(gateway: &str, token: &str) -> (Session, SessionTask) {
    let url = format!("http://{gateway}/mcp").parse().expect("a URL");
    let mut endpoint = HttpEndpoint::new(url, HttpClient::new(STEP_TIMEOUT).expect("a client"));
    let token = HeaderValue::from_str(&format!("Bearer {token}")).expect("a header");
    endpoint.headers.insert(AUTHORIZATION, token);
    let client = ClientInfo { name: "a client that moves".into(), version: "1".into() };
    let era = EraHint::Only(Era::Modern);
    let options = Options { host: Arc::new(TasksHost), era, ..Options::new(client) };
    let Connected { session, task, .. } = Session::connect(&endpoint, &options).await.expect("a session");
    (session, task)
}

async fn create(session: &Session, millis: u64) -> String {
    let request = Request::call_tool("puppet__echo", Some(&json!({ "millis": millis }).into()));
    let created = session.request(request.tasks(TaskMode::Return)).await.expect("a task");
    let created: Value = created.decode_or_default();
    assert_eq!(created["resultType"], "task", "{created}");
    created["taskId"].as_str().expect("an id").to_owned()
}

async fn get(session: &Session, id: &str) -> Result<Value, String> {
    let task = session.request(Request::task(TaskOperation::Get, id)).await;
    task.map(|it| it.decode_or_default()).map_err(|it| it.to_string())
}

#[tokio::test]
async fn a_task_is_polled_and_cancelled_at_another_replica() {
    let cluster = Cluster::new().await;
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    let (at_home, _one) = connect(&here.address, TOKEN).await;
    let (away, _two) = connect(&there.address, TOKEN).await;
    let (other, _three) = connect(&there.address, OTHER_TOKEN).await;

    let id = create(&at_home, 100).await;
    let is_done = async || get(&away, &id).await.expect("the task is known")["status"] == "completed";
    until("the task ends", STEP_TIMEOUT, is_done).await;
    let task = get(&away, &id).await.expect("the task is known");
    assert_eq!(task["result"]["content"][0]["text"], "done");
    let refused = get(&other, &id).await.expect_err("it is not theirs");
    assert!(refused.contains("unknown task"), "{refused}");

    let id = create(&at_home, 600_000).await;
    let refused = other.request(Request::task(TaskOperation::Cancel, &id)).await;
    refused.expect_err("it is not theirs");
    assert_eq!(cluster.puppet.controls.cancelled.load(Ordering::SeqCst), 0);
    away.request(Request::task(TaskOperation::Cancel, &id)).await.expect("it is cancelled");
    let is_cancelled = async || cluster.puppet.controls.cancelled.load(Ordering::SeqCst) == 1;
    until("the server drops the work", PROPAGATION_TIMEOUT, is_cancelled).await;
    assert_eq!(get(&at_home, &id).await.expect("the task is known")["status"], "cancelled");
}
