//! The actions of the client in a scenario. Most scenarios need a client that lists the tools and calls them; the
//! exceptions are named here.

use crate::sample;
use serde::Deserialize;
use serde_json::{Value, json};
use std::error::Error;
use wharf_mcp::{
    Raw, Request, Session,
    model::{Item, Prompt, Resource, Tool},
    session::List,
};

type Done = Result<(), Box<dyn Error>>;

/// A call that the scenario asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct Call {
    name: String,
    arguments: Option<Raw>,
}

pub(crate) struct ScenarioRunner<'a> {
    pub(crate) session: &'a Session,
    pub(crate) calls: Vec<Call>,
}

impl ScenarioRunner<'_> {
    pub(crate) async fn run_scenario(&self, scenario: &str) -> Done {
        let tools = self.tools().await?;
        match scenario {
            "initialize" | "json-schema-ref-no-deref" => Ok(()),
            "http-custom-headers" => self.make_calls(&tools).await,
            "json-schema-2020-12-preservation" => self.echo_schema(&tools).await,
            "http-standard-headers" => {
                self.call_all(&tools).await?;
                self.fill_in_prompts().await?;
                self.read_resources().await
            }
            _ => self.call_all(&tools).await,
        }
    }

    /// Lists the tools, without those that have invalid header annotations.
    async fn tools(&self) -> Result<Vec<Tool>, Box<dyn Error>> {
        let tools = self.session.list(List::Tools).await?.read::<Tool>();
        Ok(tools.into_iter().filter_map(Item::valid).filter(|tool| tool.header_flaw().is_none()).collect())
    }

    async fn call_all(&self, tools: &[Tool]) -> Done {
        for tool in tools {
            let schema: Value = tool.input_schema.decode_or_default();
            self.call(tool, &sample::object(&schema).into()).await?;
        }
        Ok(())
    }

    async fn make_calls(&self, tools: &[Tool]) -> Done {
        for Call { name, arguments } in &self.calls {
            let tool = tools.iter().find(|tool| tool.name == *name).ok_or("there is no such tool")?;
            let arguments = arguments.clone().unwrap_or_else(Raw::empty_object);
            self.call(tool, &arguments).await?;
        }
        Ok(())
    }

    async fn echo_schema(&self, tools: &[Tool]) -> Done {
        let named = |name: &str| tools.iter().find(|tool| tool.name == name).ok_or("a tool is missing");
        let schema = &named("json_schema_2020_12_tool")?.input_schema;
        self.call(named("json_schema_echo")?, &json!({ "schema": schema }).into()).await
    }

    async fn call(&self, tool: &Tool, arguments: &Raw) -> Done {
        let request = Request::call_tool(&tool.name, Some(arguments));
        let request = request.header_params(tool.header_params(Some(arguments)));
        let request = request.task_support(tool.task_support);
        self.session.request(request).await?;
        Ok(())
    }

    async fn fill_in_prompts(&self) -> Done {
        let prompts = self.session.list(List::Prompts).await?.read::<Prompt>();
        for prompt in prompts.into_iter().filter_map(Item::valid) {
            self.session.request(Request::get_prompt(&prompt.name, None)).await?;
        }
        Ok(())
    }

    async fn read_resources(&self) -> Done {
        let resources = self.session.list(List::Resources).await?.read::<Resource>();
        for resource in resources.into_iter().filter_map(Item::valid) {
            self.session.request(Request::read_resource(&resource.uri)).await?;
        }
        Ok(())
    }
}
