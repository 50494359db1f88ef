//! The Todo server: an MCP server for todos in a database, with five tools, a prompt and resources.
//!
//! The handler reads arguments, queries the store and writes results; it does not know the transport. [`transports`]
//! serves it to other processes, and [`builtin`] to this process.

pub(crate) mod builtin;
mod calls;
mod definitions;
mod fields;
mod news;
mod prompts;
mod resources;
pub(crate) mod transports;
mod view;

use crate::environment;
use news::TodoNews;
use serde_json::{Value, json};
use std::sync::Arc;
use wharf_mcp::{
    Raw, RpcError,
    model::{Read, Tool},
    serve::{About, Client, Handler, HandlerFuture, Incoming, InstructionsFuture, Service},
};
use wharf_store::Store;

const INSTRUCTIONS: &str = "Keeps a list of todos. Dates are YYYY-MM-DD, priority 1 is the most urgent. \
    Find a todo's id with list_todos or search_todos before you update or delete it.";

/// The MCP handler of the Todo server.
pub(crate) struct TodoServer {
    state: Arc<TodoState>,
}

/// The state that requests share: the store, the tool definitions and the change notifications.
struct TodoState {
    store: Store,
    tools: Vec<Value>,
    news: TodoNews,
}

/// Creates a service on this database, and a future that notifies its clients of all later changes while it is
/// polled.
pub(crate) async fn service(
    store: Store,
) -> (Service<TodoServer>, impl Future<Output = ()> + Send + 'static) {
    let seen_version = store.todos_version().await.unwrap_or_default();
    let news = TodoNews::default();
    let state = TodoState { store: store.clone(), tools: definitions::tools(), news: news.clone() };
    let service = Service::new(TodoServer { state: Arc::new(state) });
    (service.clone(), news.announce_changes(store, service, seen_version))
}

impl Handler for TodoServer {
    fn about(&self) -> About {
        let capabilities = json!({
            "tools": {},
            "prompts": {},
            "resources": { "listChanged": true, "subscribe": true },
        });
        About::new("wharf-todo", env!("CARGO_PKG_VERSION"), capabilities.into())
    }

    fn instructions(&self) -> InstructionsFuture {
        Box::pin(std::future::ready(Some(INSTRUCTIONS.to_owned())))
    }

    fn handle(&self, request: Incoming, _: Client) -> HandlerFuture {
        let state = self.state.clone();
        Box::pin(async move { state.answer(request).await })
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        let tool = self.state.tools.iter().find(|tool| tool["name"] == name)?;
        Tool::read(&tool.clone().into()).ok()
    }
}

impl TodoState {
    async fn answer(&self, request: Incoming) -> Result<Raw, RpcError> {
        let params: Value = request.params.map(|params| params.decode_or_default()).unwrap_or_default();
        match request.method.as_str() {
            "tools/list" => Ok(json!({ "tools": self.tools }).into()),
            "tools/call" => calls::call(self, params).await,
            "prompts/list" => Ok(prompts::list()),
            "prompts/get" => prompts::get(self, &params).await,
            "resources/list" => resources::list(self).await,
            "resources/templates/list" => Ok(resources::templates()),
            "resources/read" => resources::read(self, &params).await,
            "resources/subscribe" | "resources/unsubscribe" => Ok(Raw::empty_object()),
            other => Err(RpcError::method_not_found(other)),
        }
    }

    fn today(&self) -> String {
        environment::today()
    }
}
