//! An in-process test server whose tools are tasks.

use super::{test_client::Gateway, test_server::listen};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinSet, time::sleep};
use wharf_mcp::{
    Raw, RpcError,
    serve::{
        About, Client, Eras, Handler, HandlerFuture, Incoming, OfferedTasks, Service, TaskHandle, TaskLimits,
        TaskStore,
    },
};

/// A running server, stopped on drop.
pub(super) struct TaskServer {
    pub(super) url: String,
    cancelled: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

struct TaskHandler {
    eras: Eras,
    tasks: TaskStore,
    cancelled: Arc<AtomicUsize>,
}

/// Counts work that is dropped before its end.
struct CountCancelled {
    cancelled: Arc<AtomicUsize>,
    done: bool,
}

impl TaskServer {
    pub(super) async fn start(eras: Eras) -> TaskServer {
        let cancelled = Arc::<AtomicUsize>::default();
        let limits = TaskLimits { poll_interval: Duration::from_millis(50), ..TaskLimits::default() };
        let handler = TaskHandler { eras, tasks: TaskStore::new(limits), cancelled: cancelled.clone() };
        let (url, serving) = listen(Service::new(handler)).await;
        TaskServer { url, cancelled, _serving: serving }
    }

    /// Starts a gateway in front of the server.
    pub(super) fn gateway(&self) -> Gateway {
        Gateway::start_with(&self.agent_file(), "")
    }

    /// Returns an agent file with this server.
    pub(super) fn agent_file(&self) -> String {
        let entry = "name: island, type: mcp, server: i, description: d, prefix: \"\", transport: http";
        format!("tools:\n  - {{ {entry}, url: \"{}\" }}\n", self.url)
    }

    /// Returns the number of tasks that were cancelled while they ran.
    pub(super) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

impl Handler for TaskHandler {
    fn about(&self) -> About {
        let about = About::new("tasks", "1", json!({ "tools": {} }).into());
        About { eras: self.eras, tasks: OfferedTasks::Listed, ..about }
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let answer = self.answer(&request, &client);
        Box::pin(async move { answer })
    }

    fn tasks(&self) -> Option<&TaskStore> {
        Some(&self.tasks)
    }
}

impl TaskHandler {
    fn answer(&self, request: &Incoming, client: &Client) -> Result<Raw, RpcError> {
        let tool = |name: &str, support: &str| json!({ "name": name, "inputSchema": { "type": "object" }, "execution": { "taskSupport": support } });
        match request.method.as_str() {
            "tools/list" => {
                let tools = ["job", "ask", "fail"].map(|it| tool(it, "required"));
                let others =
                    [tool("either", "optional"), tool("insist", "optional"), tool("plain", "forbidden")];
                let tools = [&tools[..], &others].concat();
                Ok(json!({ "tools": tools }).into())
            }
            "tools/call" => self.call(request, client),
            unknown => Err(RpcError::method_not_found(unknown)),
        }
    }

    fn call(&self, request: &Incoming, client: &Client) -> Result<Raw, RpcError> {
        let name: String = request.members.name.as_ref().map(Raw::decode_or_default).unwrap_or_default();
        let arguments: Value =
            request.members.arguments.as_ref().map(Raw::decode_or_default).unwrap_or_default();
        let accepted = TaskStore::accepts(request, client);
        let text = json!({ "content": [{ "type": "text", "text": arguments["nonce"].to_string() }] });
        match name.as_str() {
            "plain" => return Ok(text.into()),
            "either" if !accepted => return Ok(text.into()),
            // Answers with a task whatever the client declares, which a server must not do.
            "insist" => {}
            _ if !accepted => return Err(TaskStore::required(client)),
            _ => {}
        }
        let cancelled = self.cancelled.clone();
        self.tasks.start(request, client, move |task| async move {
            let mut count = CountCancelled { cancelled, done: false };
            let outcome = work(&name, &arguments, text, task).await;
            count.done = true;
            outcome
        })
    }
}

async fn work(name: &str, arguments: &Value, text: Value, task: TaskHandle) -> Result<Raw, RpcError> {
    task.report("at work");
    sleep(Duration::from_millis(arguments["wait"].as_u64().unwrap_or_default())).await;
    match name {
        "ask" => {
            let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
            let answer: Value = task.ask("elicitation/create", form.into()).await?.decode_or_default();
            let text = answer["content"]["name"].to_string();
            Ok(json!({ "content": [{ "type": "text", "text": text }] }).into())
        }
        "fail" => Err(RpcError::new(-32055, "out of order")),
        _ => Ok(text.into()),
    }
}

impl Drop for CountCancelled {
    fn drop(&mut self) {
        if !self.done {
            self.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}
