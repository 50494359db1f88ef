//! The request handler: dispatches each request to its fixture. Lists come from files; computed responses have
//! their own modules.

use crate::{jobs, prompts, tools};
use conformance::fixtures::{SuiteFixtures, complete};
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

pub(crate) struct Fixtures {
    eras: Eras,
    data: Arc<FixtureData>,
}

/// State that the fixtures need.
pub(crate) struct FixtureData {
    pub(crate) suite: SuiteFixtures,
    pub(crate) tasks: TaskStore,
    pub(crate) announce: UnboundedSender<News>,
}

impl Fixtures {
    pub(crate) fn new(eras: Eras, announce: UnboundedSender<News>) -> serde_json::Result<Fixtures> {
        let suite = SuiteFixtures::load()?;
        let data = FixtureData { suite, tasks: TaskStore::default(), announce };
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
        let tool = self.data.suite.tools.iter().find(|tool| tool["name"] == name)?;
        Tool::read(&tool.clone().into()).ok()
    }
}

impl FixtureData {
    async fn answer(&self, request: Incoming, client: Client) -> Answer {
        let params: Value = request.params.map(|params| params.decode_or_default()).unwrap_or_default();
        match request.method.as_str() {
            "tools/list" => Ok(json!({ "tools": self.suite.tools })),
            "tools/call" => tools::call(self, &params, &client).await,
            "prompts/list" => Ok(json!({ "prompts": self.suite.prompts })),
            "prompts/get" => prompts::get(self, &params, &client).await,
            "resources/list" => Ok(json!({ "resources": self.suite.resources["resources"] })),
            "resources/templates/list" => {
                Ok(json!({ "resourceTemplates": self.suite.resources["resourceTemplates"] }))
            }
            "resources/read" => {
                let uri = params["uri"].as_str().unwrap_or_default();
                let unknown = || invalid("the resource is unknown", json!({ "uri": uri }));
                self.suite.resource(uri).ok_or_else(unknown)
            }
            "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
            "completion/complete" => {
                let values = complete(params["argument"]["value"].as_str().unwrap_or_default());
                let total = values.len();
                Ok(json!({ "completion": { "values": values, "total": total, "hasMore": false } }))
            }
            other => Err(RpcError::method_not_found(other)),
        }
    }
}

/// Builds an invalid-params error.
pub(crate) fn invalid(what: &str, data: Value) -> RpcError {
    RpcError { data: Some(data.into()), ..RpcError::new(RpcError::INVALID_PARAMS, what) }
}
