//! Checks our server with the SDK's client.

use super::facts::{self, assert_holds};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData,
    model::{
        CallToolRequestParams, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ErrorCode, GetPromptRequestParams, Implementation,
        ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ServerNotification,
        SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, RoleClient, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Notify;
use wharf_mcp::{session::Era, stdio::Command};

#[derive(Clone, Default)]
struct Theirs {
    seen: Arc<Mutex<Vec<f64>>>,
    changed: Arc<Notify>,
}

type Running = RunningService<RoleClient, Theirs>;

pub(crate) async fn check_process(command: &Command, era: Era) {
    let mut process = tokio::process::Command::new(&command.program);
    process.args(&command.args).env_clear().envs(command.env.iter().cloned());
    let transport = TokioChildProcess::new(process).unwrap();
    check(Theirs::default().serve_with_lifecycle(transport, lifecycle(era)).await.unwrap(), era).await;
}

pub(crate) async fn check_url(url: &str, era: Era) {
    let transport = StreamableHttpClientTransport::from_uri(url);
    check(Theirs::default().serve_with_lifecycle(transport, lifecycle(era)).await.unwrap(), era).await;
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    }
}

impl ClientHandler for Theirs {
    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::from_value(json!({ "elicitation": { "form": {} }, "sampling": {} }));
        ClientConfig::new(capabilities.unwrap(), Implementation::new("theirs", "1"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(serde_json::from_value(facts::user_says()).unwrap())
    }

    async fn create_message(
        &self,
        _request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(serde_json::from_value(facts::model_says()).unwrap())
    }

    async fn on_progress(&self, at: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.seen.lock().unwrap().push(at.progress);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Checks every feature of a server.
async fn check(client: Running, era: Era) {
    lists(&client).await;
    for (tool, expected) in facts::results() {
        assert_holds(&call(&client, tool).await, &expected, tool);
    }
    reads(&client).await;
    let refused = client.call_tool(CallToolRequestParams::new("nothing")).await.unwrap_err();
    let ServiceError::McpError(error) = refused else { panic!("{refused}") };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    progress(&client).await;
    let asked = call(&client, "ask").await;
    assert_holds(&asked, &facts::ask_result(&facts::user_says(), &facts::model_says()), "ask");
    cancellation(&client).await;
    match era {
        Era::Legacy => changes(&client).await,
        Era::Modern => subscription(&client).await,
    }
    client.cancel().await.unwrap();
}

async fn lists(client: &Running) {
    let tools = json!({ "tools": client.list_all_tools().await.unwrap() });
    let prompts = json!({ "prompts": client.list_all_prompts().await.unwrap() });
    let resources = json!({ "resources": client.list_all_resources().await.unwrap() });
    for (got, expected) in
        [(tools, facts::tools()), (prompts, facts::prompts()), (resources, facts::resources())]
    {
        assert_holds(&got, &expected, "list");
    }
}

async fn reads(client: &Running) {
    let mut request = GetPromptRequestParams::new("greet");
    request.arguments = json!({ "whom": "you" }).as_object().cloned();
    let prompt = client.get_prompt(request).await.unwrap();
    assert_holds(&value(prompt), &facts::prompt("you"), "prompt");
    let contents = client.read_resource(ReadResourceRequestParams::new("mem://one")).await.unwrap();
    assert_holds(&value(contents), &facts::contents("mem://one"), "resource");
}

/// Waits for all progress: the SDK's client handles each notification in its own task, so they may arrive late and in
/// any order.
async fn progress(client: &Running) {
    call(client, "steps").await;
    let seen = || client.service().seen.lock().unwrap().clone();
    while seen().len() < facts::STEPS as usize {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut seen = seen();
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, (1..=facts::STEPS).map(f64::from).collect::<Vec<_>>());
}

async fn cancellation(client: &Running) {
    let before = text(client, "cancelled").await;
    let slow = client.call_tool(CallToolRequestParams::new("slow"));
    assert!(tokio::time::timeout(Duration::from_millis(100), slow).await.is_err());
    while text(client, "cancelled").await == before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Repeats the call until the notification arrives, because the GET stream starts asynchronously.
async fn changes(client: &Running) {
    loop {
        call(client, "change").await;
        let changed = client.service().changed.notified();
        if tokio::time::timeout(Duration::from_millis(50), changed).await.is_ok() {
            return;
        }
    }
}

async fn subscription(client: &Running) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.listen(filter).await.unwrap();
    call(client, "change").await;
    let received = subscription.next().await.unwrap();
    assert!(matches!(received, Some(ServerNotification::ToolListChangedNotification(_))), "{received:?}");
    subscription.cancel().await.unwrap();
}

async fn call(client: &Running, tool: &'static str) -> Value {
    value(client.call_tool(CallToolRequestParams::new(tool)).await.unwrap())
}

async fn text(client: &Running, tool: &'static str) -> Value {
    call(client, tool).await["content"][0]["text"].clone()
}

fn value(result: impl Serialize) -> Value {
    serde_json::to_value(result).unwrap()
}
