//! Tests the tasks of our own servers: limits, lifetime and ownership.

use crate::{eras::options, serving::Pipes};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time;
use wharf_mcp::{
    Host, Options, Raw, Request, Session,
    serve::{About, Client, Handler, HandlerFuture, Incoming, OfferedTasks, Service, TaskLimits, TaskStore},
    session::{Connected, Era, EraHint, HostFuture, NoHost, TaskMode, TaskOperation},
    tasks::{EXTENSION, TaskSupport},
};

struct Jobs(TaskStore);

impl Handler for Jobs {
    fn about(&self) -> About {
        About { tasks: OfferedTasks::Listed, ..About::new("jobs", "1", json!({ "tools": {} }).into()) }
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let arguments: Value =
            request.members.arguments.as_ref().map(Raw::decode_or_default).unwrap_or_default();
        let seconds = arguments["seconds"].as_u64().unwrap_or_default();
        let started = self.0.start(&request, &client, move |_| async move {
            time::sleep(Duration::from_secs(seconds)).await;
            Ok(json!({ "content": [] }).into())
        });
        Box::pin(async move { started })
    }

    fn tasks(&self) -> Option<&TaskStore> {
        Some(&self.0)
    }
}

struct TasksHost;

impl Host for TasksHost {
    fn capabilities(&self) -> Raw {
        json!({ "extensions": { EXTENSION: {} } }).into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        NoHost.answer(method, params)
    }
}

fn serve(ttl: u64, max_tasks: usize) -> Pipes<Jobs> {
    let limits = TaskLimits { ttl: Duration::from_secs(ttl), max_tasks, ..TaskLimits::default() };
    Pipes(Service::new(Jobs(TaskStore::new(limits))))
}

async fn connect(pipes: &Pipes<Jobs>, era: Era) -> Connected {
    let options = Options { host: Arc::new(TasksHost), era: EraHint::Only(era), ..options() };
    Session::connect(pipes, &options).await.unwrap()
}

async fn create(session: &Session, seconds: u64) -> Result<String, i64> {
    let request = Request::call_tool("job", Some(&json!({ "seconds": seconds }).into()));
    let request = request.tasks(TaskMode::Return).task_support(TaskSupport::Required);
    let created = session.request(request).await.map_err(|failure| failure.rpc_code().unwrap())?;
    Ok(created.member("taskId").unwrap().decode().unwrap())
}

async fn operate(session: &Session, operation: TaskOperation, id: &str) -> Result<Value, i64> {
    let done = session.request(Request::task(operation, id)).await;
    done.map(|raw| raw.decode_or_default()).map_err(|failure| failure.rpc_code().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_full_store_forgets_finished_tasks_and_no_others() {
    for era in [Era::Modern, Era::Legacy] {
        let pipes = serve(600, 2);
        let connected = connect(&pipes, era).await;
        let session = &connected.session;
        let short = create(session, 1).await.unwrap();
        let long = create(session, 60).await.unwrap();
        assert_eq!(create(session, 1).await, Err(-32603), "both are running");
        time::sleep(Duration::from_secs(2)).await;
        create(session, 60).await.unwrap();
        assert_eq!(operate(session, TaskOperation::Get, &short).await, Err(-32602));
        assert_eq!(operate(session, TaskOperation::Get, &long).await.unwrap()["status"], "working");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_lifetime() {
    for era in [Era::Modern, Era::Legacy] {
        let pipes = serve(10, 10);
        let connected = connect(&pipes, era).await;
        let id = create(&connected.session, 60).await.unwrap();
        time::sleep(Duration::from_secs(9)).await;
        let task = operate(&connected.session, TaskOperation::Get, &id).await.unwrap();
        assert_eq!((&task["status"], &task["ttlMs"]), (&json!("working"), &json!(10_000)));
        time::sleep(Duration::from_secs(2)).await;
        assert_eq!(operate(&connected.session, TaskOperation::Get, &id).await, Err(-32602));
    }
}

#[tokio::test(start_paused = true)]
async fn clients_of_2025_11_25_list_their_own_tasks_in_pages() {
    let pipes = serve(600, 1_000);
    let (one, other) = (connect(&pipes, Era::Legacy).await, connect(&pipes, Era::Legacy).await);
    let mut created = Vec::new();
    for _ in 0..150 {
        created.push(create(&one.session, 60).await.unwrap());
    }
    create(&other.session, 60).await.unwrap();
    let list = async |params: Value| -> Value {
        one.session
            .request(Request::new("tasks/list").params(params.into()))
            .await
            .unwrap()
            .decode_or_default()
    };
    let first = list(json!({})).await;
    let second = list(json!({ "cursor": first["nextCursor"] })).await;
    let ids = |page: &Value| -> Vec<String> {
        page["tasks"].as_array().unwrap().iter().map(|it| it["taskId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((ids(&first).len(), ids(&second).len()), (100, 50));
    let (mut listed, mut expected) = ([ids(&first), ids(&second)].concat(), created);
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    assert_eq!((&second["nextCursor"], &first["tasks"][0]["ttl"]), (&Value::Null, &json!(600_000)));
}

#[tokio::test(start_paused = true)]
async fn each_era_has_its_own_methods_and_cancels_in_its_own_way() {
    let pipes = serve(600, 10);
    for (era, missing) in
        [(Era::Modern, ["tasks/list", "tasks/result"]), (Era::Legacy, ["tasks/update", "tasks/x"])]
    {
        let connected = connect(&pipes, era).await;
        let session = &connected.session;
        let id = create(session, 60).await.unwrap();
        for method in missing {
            let failure = session.request(Request::new(method).params(json!({ "taskId": id }).into())).await;
            assert_eq!(failure.unwrap_err().rpc_code(), Some(-32601), "{method}");
        }
        let cancel = async || {
            let cancelled =
                session.exchange(Request::new("tasks/cancel").params(json!({ "taskId": id }).into()));
            cancelled.await.map_err(|failure| failure.rpc_code().unwrap())
        };
        let cancelled: Value = cancel().await.unwrap().decode_or_default();
        assert_eq!(cancelled["status"] == "cancelled", era == Era::Legacy, "{cancelled}");
        assert_eq!(cancel().await.err(), (era == Era::Legacy).then_some(-32602));
        assert_eq!(operate(session, TaskOperation::Get, &id).await.unwrap()["status"], "cancelled");
    }
}
