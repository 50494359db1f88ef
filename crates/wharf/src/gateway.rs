//! Every tool of every source as one MCP server.
//!
//! What is asked is passed on to the source that has it, and what comes back is passed back as it came: a call costs the
//! reading of its envelope and of its arguments. Lists are written once per catalog and served from memory.

mod bridge;
mod error;
mod lists;
mod news;

use crate::journal::Journal;
use error::rpc_error;
use lists::Lists;
pub(crate) use news::announce;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time};
use wharf_mcp::{
    Raw, RpcError,
    model::Tool,
    serve::{About, Client, Handler, Incoming, Serving},
    session::Progress,
};
use wharf_runtime::{Call, Catalog, Handle, Outcome};

/// How long a list waits for sources that are still starting.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many reports of progress may wait for a slow client; of more, the newest are dropped.
const REPORTS: usize = 32;

/// The gateway, as MCP clients see it.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    handle: Handle,
    /// Where calls are written down, if they are.
    journal: Option<Journal>,
    lists: Arc<Lists>,
}

impl Gateway {
    pub(crate) fn new(handle: Handle, journal: Option<Journal>) -> Gateway {
        Gateway { handle, journal, lists: Arc::default() }
    }

    async fn answer(self, request: Incoming, client: Client) -> Result<Raw, RpcError> {
        let params = request.params.unwrap_or_else(Raw::empty_object);
        match request.method.as_str() {
            "tools/list" => Ok(self.lists.tools(&*self.settled().await)),
            "prompts/list" => Ok(self.lists.prompts(&*self.settled().await)),
            "resources/list" => Ok(self.lists.resources(&*self.settled().await)),
            "resources/templates/list" => Ok(self.lists.templates(&*self.settled().await)),
            "tools/call" => self.call(&params, client).await,
            "prompts/get" => self.prompt(&params).await,
            "resources/read" => self.read(&params).await,
            "completion/complete" => self.complete(&params).await,
            unknown => Err(RpcError::method_not_found(unknown)),
        }
    }

    /// The catalog, once everybody has been heard who does not take too long.
    async fn settled(&self) -> Arc<Catalog> {
        time::timeout(PATIENCE, self.handle.settled()).await.unwrap_or_else(|_| self.handle.catalog())
    }

    async fn call(&self, params: &Raw, client: Client) -> Result<Raw, RpcError> {
        let members = params.members();
        let tool = text(params, "name")?;
        let arguments = members.get("arguments").filter(|it| it.get() != "null");
        let arguments = match arguments.map(|it| Raw::parse(it.get().to_owned())) {
            Some(Ok(arguments)) if arguments.is_object() => Some(arguments),
            None => None,
            Some(_) => return Err(invalid("`arguments` is no object")),
        };
        let (report, reports) = mpsc::channel(REPORTS);
        let on_progress = client.wants_progress().then(|| -> wharf_runtime::OnProgress {
            // Progress that nobody reads in time is no progress worth waiting for.
            Box::new(move |at: &Progress| _ = report.try_send(at.clone()))
        });
        let call = Call { tool, arguments, on_progress, ..Call::default() };
        let record = bridge::with_progress(self.handle.call(call), reports, &client).await;
        if let Some(journal) = &self.journal {
            journal.keep(&record, "mcp").await;
        }
        match (&record.outcome, record.result()) {
            (Outcome::Failed(fault), _) => Err(rpc_error(fault)),
            (_, Some(result)) => Ok(result),
            (_, None) => Err(RpcError::new(RpcError::INTERNAL, "the call has no result")),
        }
    }

    async fn prompt(&self, params: &Raw) -> Result<Raw, RpcError> {
        let name = text(params, "name")?;
        let arguments = params.member("arguments");
        self.handle.prompt(&name, arguments.as_ref()).await.map_err(|it| rpc_error(&it))
    }

    async fn read(&self, params: &Raw) -> Result<Raw, RpcError> {
        let uri = text(params, "uri")?;
        let catalog = self.settled().await;
        let owner = bridge::owner(&catalog, &uri).ok_or_else(|| error::no_resource(&uri))?;
        self.handle.read(&owner, &uri).await.map_err(|it| rpc_error(&it))
    }

    async fn complete(&self, params: &Raw) -> Result<Raw, RpcError> {
        let catalog = self.settled().await;
        let (source, params) = bridge::completion(&catalog, params)?;
        self.handle.ask(&source, "completion/complete", Some(&params)).await.map_err(|it| rpc_error(&it))
    }
}

impl Handler for Gateway {
    fn about(&self) -> About {
        let capabilities = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true },
            "completions": {},
            "logging": {},
        });
        About::new("wharf", env!("CARGO_PKG_VERSION"), capabilities.into())
    }

    fn handle(&self, request: Incoming, client: Client) -> Serving {
        Box::pin(self.clone().answer(request, client))
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        self.handle.catalog().tool(name).and_then(|it| it.tool.clone())
    }
}

fn text(params: &Raw, key: &str) -> Result<String, RpcError> {
    let value = params.member(key).and_then(|it| it.decode().ok());
    value.ok_or_else(|| invalid(&format!("`{key}` is missing")))
}

fn invalid(what: &str) -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, what)
}
