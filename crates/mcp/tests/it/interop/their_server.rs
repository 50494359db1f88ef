//! The SDK's server, serving the facts.

use super::facts::{self, World};
use crate::serving::spawn;
use rmcp::{
    ErrorData, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CreateMessageRequest, ElicitRequest,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, InputRequest,
        InputRequests, InputRequiredResult, ListPromptsResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, ServerConfig, SubscriptionFilter,
    },
    service::{RequestContext, RoleServer, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::net::TcpListener;

#[derive(Clone)]
struct Theirs(World);

pub(crate) async fn over_pipe() {
    let serving = Theirs(World::new()).serve((tokio::io::stdin(), tokio::io::stdout())).await.unwrap();
    serving.waiting().await.unwrap();
}

/// Serves for as long as the test runs; returns the URL.
pub(crate) async fn over_http() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let world = World::new();
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(Theirs(world.clone())), sessions, config);
    spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let service = service.clone();
            let answer = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let service = service.clone();
                async move { Ok::<_, std::convert::Infallible>(service.handle(request).await) }
            });
            let io = hyper_util::rt::TokioIo::new(stream);
            spawn(async move {
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await;
            });
        }
    });
    url
}

/// Converts a fact into the SDK's type.
fn typed<T: DeserializeOwned>(fact: Value) -> T {
    serde_json::from_value(fact).unwrap()
}

impl ServerHandler for Theirs {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(typed(facts::capabilities())).with_server_info(Implementation::new("theirs", "1"))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(typed(facts::tools()))
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(typed(facts::prompts()))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(typed(facts::resources()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let whom = arguments.get("whom").and_then(Value::as_str).unwrap_or_default();
        Ok(typed::<GetPromptResult>(facts::prompt(whom)).into())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(typed::<ReadResourceResult>(facts::contents(&request.uri)).into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(result) = facts::result(&request.name) {
            return Ok(typed::<CallToolResult>(result).into());
        }
        match &*request.name {
            "steps" => steps(&context).await,
            "ask" => return ask(&request, &context).await,
            "slow" => {
                context.ct.cancelled().await;
                drop(self.0.count_cancelled());
            }
            "cancelled" => return Ok(done(facts::text(&self.0.cancelled().to_string()))),
            "change" => {
                self.0.change();
                if !is_modern(&context) {
                    context.peer.notify_tool_list_changed().await.unwrap();
                }
            }
            unknown => return Err(ErrorData::invalid_params(format!("no tool `{unknown}`"), None)),
        }
        Ok(done(facts::text("done")))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = changes.recv() => {
                    let _ = context.sink().notify_tool_list_changed().await;
                }
            }
        }
    }
}

fn done(result: Value) -> CallToolResponse {
    typed::<CallToolResult>(result).into()
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() == Some(ProtocolVersion::V_2026_07_28)
}

async fn steps(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else { return };
    for step in 1..=facts::STEPS {
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
        context.peer.notify_progress(progress).await.unwrap();
    }
}

async fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if !is_modern(context) {
        let failed = |error| ErrorData::internal_error(format!("{error}"), None);
        let user = context.peer.create_elicitation(typed(facts::question())).await.map_err(failed)?;
        let model = context.peer.create_message(typed(facts::prompt_for_model())).await.map_err(failed)?;
        let json = |value: Result<Value, _>| value.unwrap();
        return Ok(done(facts::ask_result(
            &json(serde_json::to_value(user)),
            &json(serde_json::to_value(model)),
        )));
    }
    let Some(answers) = &request.input_responses else {
        let requests = InputRequests::from_iter([
            ("user".into(), InputRequest::Elicitation(ElicitRequest::new(typed(facts::question())))),
            (
                "model".into(),
                InputRequest::CreateMessage(CreateMessageRequest::new(typed(facts::prompt_for_model()))),
            ),
        ]);
        return Ok(InputRequiredResult::new(Some(requests), Some("asked \"both\"".into())).into());
    };
    if request.request_state.as_deref() != Some("asked \"both\"") {
        return Err(ErrorData::invalid_params("the state came back changed", None));
    }
    Ok(done(facts::ask_result(&answers["user"], &answers["model"])))
}
