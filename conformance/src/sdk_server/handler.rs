//! The request handler. Lists and fixed answers are those of the shared fixtures.

use crate::{jobs, tools};
use conformance::{
    fixtures::{SuiteFixtures, complete},
    questions::{Answers, Refusal},
};
use rmcp::{
    ErrorData, ServerHandler,
    model::*,
    service::{RequestContext, RoleServer, SubscriptionContext, SubscriptionSink},
    task_manager::TaskManager,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

type Context = RequestContext<RoleServer>;

#[derive(Clone)]
pub(crate) struct SdkHandler {
    pub(crate) suite: Arc<SuiteFixtures>,
    pub(crate) tasks: TaskManager,
    subscriptions: Arc<Mutex<HashMap<u64, SubscriptionSink>>>,
    next_subscription: Arc<AtomicU64>,
}

impl SdkHandler {
    pub(crate) fn new() -> serde_json::Result<SdkHandler> {
        Ok(SdkHandler {
            suite: Arc::new(SuiteFixtures::load()?),
            tasks: TaskManager::new(),
            subscriptions: Arc::default(),
            next_subscription: Arc::default(),
        })
    }

    /// Returns the client's answers: by requests in the handshake era, else from the request itself.
    pub(crate) async fn ask(
        &self,
        name: &str,
        params: &Value,
        context: &Context,
    ) -> Result<Answers, ErrorData> {
        let script = self.suite.questions.of(name);
        let script = script.ok_or_else(|| ErrorData::invalid_params("the name is unknown", None))?;
        let capabilities = to_json(&context.client_capabilities());
        let offers = |capability: &str| capabilities.get(capability).is_some_and(|it| !it.is_null());
        if context.meta.protocol_version().is_some() {
            return script.check(name, params, offers).map_err(refuse);
        }
        let mut given = Map::new();
        for round in 0..script.rounds.len() {
            for (key, question) in script.questions(round, params, offers).map_err(refuse)? {
                given.insert(key, send(from_json(question)?, context).await?);
            }
        }
        Ok(Answers::Given(given.into()))
    }

    /// Returns the open subscriptions. A closed one stays until its request ends.
    pub(crate) fn subscriptions(&self) -> Vec<SubscriptionSink> {
        self.subscriptions.lock().map(|all| all.values().cloned().collect()).unwrap_or_default()
    }
}

/// Sends a request to the client and returns its result.
async fn send(question: InputRequest, context: &Context) -> Result<Value, ErrorData> {
    let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
    match question {
        InputRequest::CreateMessage(request) => {
            context.peer.create_message(request.params).await.map(|it| to_json(&it)).map_err(failed)
        }
        InputRequest::Elicitation(request) => {
            context.peer.create_elicitation(request.params).await.map(|it| to_json(&it)).map_err(failed)
        }
        _ => context.peer.list_roots().await.map(|it| to_json(&it)).map_err(failed),
    }
}

fn refuse(refusal: Refusal) -> ErrorData {
    match refusal {
        Refusal::MissingCapability(capability) => missing(&json!({ capability: {} })),
        Refusal::ForeignState => ErrorData::invalid_params("the state is not ours", None),
    }
}

/// Builds the error for missing client capabilities.
pub(crate) fn missing(capabilities: &Value) -> ErrorData {
    let capabilities = serde_json::from_value(capabilities.clone()).unwrap_or_default();
    ErrorData::missing_required_client_capability(capabilities)
}

pub(crate) fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Reads a complete result, with the type that the stateless era wants; the SDK leaves it out in the other.
pub(crate) fn complete_result<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = "complete".into();
    from_json(value)
}

pub(crate) fn from_json<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl ServerHandler for SdkHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .enable_completions()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rust-sdk-server", "1.0.0"))
            .with_instructions("A server to be tested.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tool = self.suite.tools.iter().find(|tool| tool["name"] == name)?;
        from_json(tool.clone()).ok()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        complete_result(json!({ "tools": self.suite.tools }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let (name, params) = (request.name.clone(), to_json(&request));
        match jobs::JOBS.contains(&name.as_ref()) {
            true => jobs::call(self, &name, &params, &context).await,
            false => tools::call(self, &name, &params, &context).await,
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        complete_result(json!({ "prompts": self.suite.prompts }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let params = to_json(&request);
        if let Some(prompt) = self.suite.prompt(&request.name, &params["arguments"]) {
            return complete_result::<GetPromptResult>(prompt).map(Into::into);
        }
        match self.ask(&request.name, &params, &context).await? {
            Answers::Missing(result) => from_json::<InputRequiredResult>(result).map(Into::into),
            Answers::Given(given) => {
                let message = PromptMessage::new_text(Role::User, given.to_string());
                Ok(GetPromptResult::new(vec![message]).into())
            }
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        complete_result(json!({ "resources": self.suite.resources["resources"] }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete_result(json!({ "resourceTemplates": self.suite.resources["resourceTemplates"] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown =
            || ErrorData::invalid_params("the resource is unknown", Some(json!({ "uri": request.uri })));
        let contents = self.suite.resource(&request.uri).ok_or_else(unknown)?;
        complete_result::<ReadResourceResult>(contents).map(Into::into)
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = complete(&request.argument.value).into_iter().map(str::to_owned).collect();
        let values = CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(values))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.next_subscription.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut subscriptions) = self.subscriptions.lock() {
            subscriptions.insert(key, context.sink().clone());
        }
        context.cancelled().await;
        if let Ok(mut subscriptions) = self.subscriptions.lock() {
            subscriptions.remove(&key);
        }
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
