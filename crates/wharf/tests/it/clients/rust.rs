//! The official Rust client, running in the test process.

#![expect(deprecated, reason = "servers still request sampling")]

use super::{
    Transport,
    steps::{Step, StepRunner},
    test_gateway::{TOKEN, Target},
};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData,
    model::{
        CallToolRequestParams, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        GetPromptRequestParams, Implementation, ListRootsResult, ProgressNotificationParam, ProtocolVersion,
        ReadResourceRequestParams,
    },
    service::{NotificationContext, RequestContext, RoleClient, RunningService, ServiceError},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Maximum delay of a progress notification after the response: the client handles each in a separate task.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

const RUN_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Default)]
struct SdkClient(Arc<Mutex<Vec<f64>>>);

type Running = RunningService<RoleClient, SdkClient>;

impl ClientHandler for SdkClient {
    fn get_info(&self) -> ClientConfig {
        let capabilities = read(json!({ "sampling": {}, "roots": {} }));
        ClientConfig::new(capabilities, Implementation::new("rust", "1"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_message(
        &self,
        _request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let content = json!({ "type": "text", "text": "I think so" });
        Ok(read(json!({ "model": "none", "role": "assistant", "content": content })))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(read(json!({ "roots": [{ "uri": "file:///", "name": "harbour" }] })))
    }

    async fn on_progress(&self, at: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.0.lock().expect("nobody panicked").push(at.progress);
    }
}

pub(super) fn run_steps<'a>(target: &'a Target, era: &'a str) -> Box<StepRunner<'a>> {
    Box::new(move |steps| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let work = async { tokio::time::timeout(RUN_TIMEOUT, run_all_steps(target, era, steps)).await };
        runtime.expect("a runtime").block_on(work).expect("it comes to an end")
    })
}

async fn run_all_steps(target: &Target, era: &str, steps: &[Step]) -> Vec<Value> {
    let client = connect(target, era).await;
    let mut answers = Vec::new();
    for step in steps {
        client.service().0.lock().expect("nobody panicked").clear();
        let answer = match repeat_step(&client, step).await {
            Ok(result) => json!({ "result": result, "progress": progress(&client, step).await }),
            Err(ServiceError::McpError(error)) => json!({ "error": { "code": error.code } }),
            Err(error) => panic!("{}: {error}", step.method),
        };
        answers.push(answer);
    }
    client.cancel().await.expect("it ends");
    answers
}

async fn connect(target: &Target, era: &str) -> Running {
    let lifecycle = match era {
        "legacy" => ClientLifecycleMode::Initialize,
        _ => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    };
    let client = SdkClient::default();
    let connected = match target.transport {
        Transport::Stdio => {
            let mut command = target.client(&target.words[0]);
            command.args(&target.words[1..]);
            let process = TokioChildProcess::new(tokio::process::Command::from(command));
            client.serve_with_lifecycle(process.expect("wharf starts"), lifecycle).await
        }
        _ => {
            let config = StreamableHttpClientTransportConfig::with_uri(&*target.words[0]).auth_header(TOKEN);
            let transport = StreamableHttpClientTransport::from_config(config);
            client.serve_with_lifecycle(transport, lifecycle).await
        }
    };
    connected.expect("it connects")
}

async fn repeat_step(client: &Running, step: &Step) -> Result<Value, ServiceError> {
    loop {
        let result = run_step(client, step).await?;
        if result.to_string().contains(step.until) {
            return Ok(result);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn run_step(client: &Running, step: &Step) -> Result<Value, ServiceError> {
    let params = &step.params;
    Ok(match step.method {
        "tools/list" => json!({ "tools": client.list_all_tools().await? }),
        "tools/call" => written(client.call_tool(read::<CallToolRequestParams>(params.clone())).await?),
        "prompts/list" => json!({ "prompts": client.list_all_prompts().await? }),
        "prompts/get" => written(client.get_prompt(read::<GetPromptRequestParams>(params.clone())).await?),
        "resources/list" => json!({ "resources": client.list_all_resources().await? }),
        "resources/templates/list" => {
            json!({ "resourceTemplates": client.list_all_resource_templates().await? })
        }
        _ => written(client.read_resource(read::<ReadResourceRequestParams>(params.clone())).await?),
    })
}

/// Returns the progress notifications; waits for all of them if the operation has a number of steps.
async fn progress(client: &Running, step: &Step) -> Vec<f64> {
    let steps = step.params["arguments"]["steps"].as_u64().unwrap_or_default();
    let heard = || client.service().0.lock().expect("nobody panicked").clone();
    let all = async {
        while (heard().len() as u64) < steps {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    _ = tokio::time::timeout(PROGRESS_TIMEOUT, all).await;
    heard()
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the protocol says")
}

fn written(result: impl Serialize) -> Value {
    serde_json::to_value(result).expect("JSON")
}
