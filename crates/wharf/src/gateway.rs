//! Every tool of every source as one MCP server.
//!
//! What is asked is passed on to the source that has it, and what comes back is passed back as it came: a call costs the
//! reading of its envelope and of its arguments. Lists are written once per catalog and served from memory.

mod bridge;
mod error;
mod lists;
mod news;
mod parked;
mod questions;

use crate::journal::Journal;
use error::rpc_error;
use lists::Lists;
pub(crate) use news::announce;
use parked::Yard;
pub(crate) use questions::Switchboard;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time};
use wharf_mcp::{
    Raw, RpcError,
    model::Tool,
    serve::{About, Client, Handler, Incoming, Serving},
    session::{Era, Progress},
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
    switchboard: Switchboard,
    /// Calls that wait for their client's answer.
    yard: Arc<Yard>,
}

impl Gateway {
    /// Over what this handle reaches. The switchboard is who its servers' questions are asked of.
    pub(crate) fn new(handle: Handle, journal: Option<Journal>, switchboard: Switchboard) -> Gateway {
        Gateway { handle, journal, lists: Arc::default(), switchboard, yard: Arc::default() }
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
        let tool = text(params, "name")?;
        let call = match self.yard.resume(&tool, params)? {
            Some(call) => call,
            None => self.begin(&tool, params, &client).await?,
        };
        self.drive(&tool, call, client).await
    }

    /// A call, ready to be run: everything that it needs is its own, so that it can wait for its client.
    async fn begin(&self, tool: &str, params: &Raw, client: &Client) -> Result<parked::Call, RpcError> {
        let arguments = params.member("arguments");
        if arguments.as_ref().is_some_and(|it| !it.is_object()) {
            return Err(invalid("`arguments` is no object"));
        }
        let (asks, asked) = mpsc::channel(1);
        let source = self.source_of(tool).await;
        let line = source.map(|source| self.switchboard.open(&source, asks.clone()));
        let (report, reports) = mpsc::channel(REPORTS);
        let on_progress = client.wants_progress().then(|| -> wharf_runtime::OnProgress {
            // Progress that nobody reads in time is no progress worth waiting for.
            Box::new(move |at: &Progress| _ = report.try_send(at.clone()))
        });
        let call = Call { tool: tool.to_owned(), arguments, on_progress, ..Call::default() };
        let (gateway, client) = (self.clone(), client.clone());
        let work = async move {
            let _line = line;
            gateway.run(call, reports, &client).await
        };
        Ok(parked::Call { work: Box::pin(questions::asking(asks, work)), asked })
    }

    /// The source that has a tool. One that is still starting is waited for: its questions are to reach this caller.
    async fn source_of(&self, tool: &str) -> Option<String> {
        let source = |catalog: &Catalog| catalog.tool(tool).map(|it| it.source.clone());
        let known = source(&self.handle.catalog());
        if known.is_some() { known } else { source(&*self.settled().await) }
    }

    async fn run(
        &self,
        call: Call,
        reports: mpsc::Receiver<Progress>,
        client: &Client,
    ) -> Result<Raw, RpcError> {
        let record = bridge::with_progress(self.handle.call(call), reports, client).await;
        if let Some(journal) = &self.journal {
            journal.keep(&record, "mcp").await;
        }
        match (&record.outcome, record.result()) {
            (Outcome::Failed(fault), _) => Err(rpc_error(fault)),
            (_, Some(result)) => Ok(result),
            (_, None) => Err(RpcError::new(RpcError::INTERNAL, "the call has no result")),
        }
    }

    /// Runs a call to its end, or to a question that its client has to come back with an answer to.
    async fn drive(&self, tool: &str, mut call: parked::Call, client: Client) -> Result<Raw, RpcError> {
        loop {
            let question = tokio::select! {
                biased;
                done = &mut call.work => return done,
                Some(question) = call.asked.recv() => question,
            };
            match bridge::method(&question.method).filter(|it| client.offers(bridge::capability(it))) {
                None => question.answer(Err(RpcError::method_not_found("the client cannot answer this"))),
                Some(_) if client.terms().era == Era::Modern => return self.yard.park(tool, call, question),
                Some(method) => {
                    let params = question.params.clone();
                    tokio::select! {
                        done = &mut call.work => return done,
                        answer = client.ask(method, Some(params)) => question.answer(answer),
                    }
                }
            }
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
