//! The request handler: dispatches each request to its fixture. Lists come from files; computed responses have
//! their own modules.

use crate::{jobs, prompts, questions::Questions, resources, tools};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use wharf_mcp::{
    News, Raw, RpcError,
    model::{Read, Tool},
    serve::{
        About, Client, Eras, Handler, HandlerFuture, Incoming, InstructionsFuture, OfferedTasks, TaskStore,
    },
};

/// Response of a fixture.
pub(crate) type Answer = Result<Value, RpcError>;

/// A PNG of one red pixel.
pub(crate) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// An empty WAV file.
pub(crate) const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(crate) struct Fixtures {
    eras: Eras,
    data: Arc<FixtureData>,
}

/// State that the fixtures need.
pub(crate) struct FixtureData {
    pub(crate) tools: Vec<Value>,
    pub(crate) prompts: Vec<Value>,
    pub(crate) resources: Value,
    pub(crate) questions: Questions,
    pub(crate) tasks: TaskStore,
    pub(crate) announce: UnboundedSender<News>,
}

impl Fixtures {
    pub(crate) fn new(eras: Eras, announce: UnboundedSender<News>) -> serde_json::Result<Fixtures> {
        let data = FixtureData {
            tools: serde_json::from_str(include_str!("../../fixtures/tools.json"))?,
            prompts: serde_json::from_str(include_str!("../../fixtures/prompts.json"))?,
            resources: serde_json::from_str(include_str!("../../fixtures/resources.json"))?,
            questions: Questions::read(include_str!("../../fixtures/questions.json"))?,
            tasks: TaskStore::default(),
            announce,
        };
        Ok(Fixtures { eras, data: Arc::new(data) })
    }
}

impl Handler for Fixtures {
    fn about(&self) -> About {
        let capabilities = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "logging": {},
            "completions": {},
        });
        let about = About::new("conformance-server", "1.0.0", capabilities.into());
        About { eras: self.eras, tasks: OfferedTasks::Listed, ..about }
    }

    fn instructions(&self) -> InstructionsFuture {
        Box::pin(std::future::ready(Some("A server to be tested.".to_owned())))
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let data = self.data.clone();
        Box::pin(async move {
            match jobs::is_job(&request) {
                true => jobs::call(&data, &request, &client).await,
                false => data.answer(request, client).await.map(Raw::from),
            }
        })
    }

    fn tasks(&self) -> Option<&TaskStore> {
        Some(&self.data.tasks)
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        let tool = self.data.tools.iter().find(|tool| tool["name"] == name)?;
        Tool::read(&tool.clone().into()).ok()
    }
}

impl FixtureData {
    async fn answer(&self, request: Incoming, client: Client) -> Answer {
        let params: Value = request.params.map(|params| params.decode_or_default()).unwrap_or_default();
        match request.method.as_str() {
            "tools/list" => Ok(json!({ "tools": self.tools })),
            "tools/call" => tools::call(self, &params, &client).await,
            "prompts/list" => Ok(json!({ "prompts": self.prompts })),
            "prompts/get" => prompts::get(self, &params, &client).await,
            "resources/list" => Ok(json!({ "resources": self.resources["resources"] })),
            "resources/templates/list" => {
                Ok(json!({ "resourceTemplates": self.resources["resourceTemplates"] }))
            }
            "resources/read" => resources::read(&params),
            "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
            "completion/complete" => Ok(complete(&params)),
            other => Err(RpcError::method_not_found(other)),
        }
    }
}

fn complete(params: &Value) -> Value {
    let prefix = params["argument"]["value"].as_str().unwrap_or_default();
    let known = ["paris", "park", "party"].into_iter().filter(|word| word.starts_with(prefix));
    let values: Vec<&str> = known.collect();
    json!({ "completion": { "total": values.len(), "values": values, "hasMore": false } })
}

/// Builds an invalid-params error.
pub(crate) fn invalid(what: &str, data: Value) -> RpcError {
    RpcError { data: Some(data.into()), ..RpcError::new(RpcError::INVALID_PARAMS, what) }
}
