//! The MCP handler: serves the tools, prompts and resources of all sources as one MCP server.
//!
//! A request is forwarded to the source that owns its target, and the result is returned unchanged, so a call costs
//! only the parsing of its envelope and its arguments. Lists are serialized once per catalog revision and served from
//! memory.

mod client_request;
mod elicitations;
mod error;
mod lists;
mod news;
mod own_meta;
mod pending_input;
mod questions;
mod reports;
mod resource_owners;
mod result_resources;
mod routing;
mod seen_clients;
mod session_modes;
mod task_ids;
mod task_questions;
mod tasks;
mod tool_mode;

use crate::{
    journal::Journal,
    request_ids::{RequestIds, ReserveError, ReservedId},
    telemetry::{self, SourceRequest, Telemetry},
};
use client_request::{ClientRequest, PrincipalName, RequestKind};
use elicitations::Elicitations;
use error::rpc_error;
use lists::ListCache;
pub(crate) use news::announce;
use own_meta::CallIds;
use pending_input::{CallIdentity, PendingInput, ResumeRequest};
pub(crate) use questions::ClientQuestions;
use questions::{collect_questions, next_question};
use resource_owners::ResourceOwners;
use routing::CompletionTarget;
use seen_clients::RequestOrigin;
pub(crate) use seen_clients::{ClientChange, SeenClients};
use serde_json::json;
use std::{future::Future, ops::Deref, pin::Pin, sync::Arc, time::Duration};
pub(crate) use task_ids::TaskIds;
use task_questions::TaskQuestions;
use tokio::{sync::watch, time};
pub(crate) use tool_mode::ToolMode;
use wharf_mcp::{
    Raw, RpcError,
    model::Tool,
    serve::{
        About, Client, ClientRef, Handler, HandlerFuture, Incoming, InstructionsFuture, OfferedTasks,
        http::Owner,
    },
    session::{Audience, Era, List, TaskMode},
};
use wharf_runtime::{
    Call, Caller, Catalog, FaultKind, Handle, OnProgress, Outcome, merge_instructions, own_tool::is_own_tool,
};

/// How long a list request or a handshake waits for sources that are still starting.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for a subscription at a source.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Name of the gateway among the interfaces that make calls.
const VIA: &str = "mcp";

/// The MCP handler that clients of the gateway talk to. Every request clones it, so all of its parts share one
/// reference count.
#[derive(Clone, Debug)]
pub(crate) struct Gateway(Arc<GatewayParts>);

/// The parts of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct GatewayParts {
    handle: Handle,
    /// Journal of calls, if there is one.
    journal: Option<Arc<Journal>>,
    lists: Arc<ListCache>,
    /// Calls that are suspended until their client answers a question.
    pending_input: Arc<PendingInput>,
    /// Ids under which clients know the tasks of servers.
    task_ids: TaskIds,
    /// Questions of tasks that their clients have not answered yet.
    task_questions: Arc<TaskQuestions>,
    /// Sources of resources that no list names.
    resource_owners: Arc<ResourceOwners>,
    /// Clients that were asked to open a URL.
    elicitations: Arc<Elicitations>,
    /// The client that last reported a change of its roots.
    root_changes: watch::Sender<Option<ClientRef>>,
    /// Clients that have talked to the gateway lately.
    clients: Arc<SeenClients>,
    /// Request ids that clients chose.
    request_ids: Arc<RequestIds>,
    telemetry: Telemetry,
    about: Arc<About>,
    /// Which tools clients are shown.
    tool_mode: Arc<ToolMode>,
}

impl Deref for Gateway {
    type Target = GatewayParts;

    fn deref(&self) -> &GatewayParts {
        &self.0
    }
}

impl Gateway {
    /// Creates a gateway for the sources of `handle`.
    pub(crate) fn new(handle: Handle, journal: Option<Journal>, task_ids: TaskIds) -> Gateway {
        let telemetry = journal.as_ref().map(Journal::telemetry).cloned().unwrap_or_default();
        Gateway(Arc::new(GatewayParts {
            handle,
            journal: journal.map(Arc::new),
            lists: Arc::default(),
            pending_input: Arc::default(),
            task_ids,
            task_questions: Arc::default(),
            resource_owners: Arc::default(),
            elicitations: Arc::default(),
            root_changes: watch::Sender::new(None),
            clients: Arc::default(),
            request_ids: Arc::default(),
            telemetry,
            about: Arc::new(about()),
            tool_mode: Arc::default(),
        }))
    }

    /// Changes the parts, before the gateway serves anyone.
    fn with(mut self, change: impl FnOnce(&mut GatewayParts)) -> Gateway {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Shares the request ids with the REST API.
    pub(crate) fn with_request_ids(self, request_ids: Arc<RequestIds>) -> Gateway {
        self.with(|parts| parts.request_ids = request_ids)
    }

    /// Sets which tools clients are shown.
    pub(crate) fn with_tool_mode(self, tool_mode: Arc<ToolMode>) -> Gateway {
        self.with(|parts| parts.tool_mode = tool_mode)
    }

    /// Sets the tracer, for a gateway without a journal.
    pub(crate) fn traced(self, telemetry: Telemetry) -> Gateway {
        self.with(|parts| parts.telemetry = telemetry)
    }

    /// The clients that have talked to the gateway lately.
    pub(crate) fn clients(&self) -> &SeenClients {
        &self.clients
    }

    /// Drops all suspended calls, because no client can connect any more to resume them.
    pub(crate) fn shutdown(&self) {
        self.pending_input.clear();
        self.task_questions.clear();
    }

    /// Notes which client sent a request.
    fn note_client(&self, request: &Incoming, client: &Client) {
        let http = request.http.as_deref();
        let transport = match http.map(|it| it.uri.path()) {
            Some("/mcp") => "http",
            Some(_) => "sse",
            None => "websocket",
        };
        let principal = http.and_then(|it| it.extensions.get::<Owner>()).map(|it| &*it.0);
        let is_call = request.method == "tools/call";
        self.clients.note(&RequestOrigin { client, transport, principal, is_call });
    }

    async fn answer(self, request: Incoming, client: Client) -> Result<Raw, RpcError> {
        self.note_client(&request, &client);
        let kind = match request.method.as_str() {
            "tools/list" => return self.list(List::Tools, &request, &client).await,
            "prompts/list" => return self.list(List::Prompts, &request, &client).await,
            "resources/list" => return self.list(List::Resources, &request, &client).await,
            "resources/templates/list" => return self.list(List::Templates, &request, &client).await,
            // Boxed, so that the future of the much more frequent `tools/call` stays small.
            "completion/complete" => return Box::pin(self.complete(request.params, &client)).await,
            method if method.starts_with("tasks/") => {
                return Box::pin(self.operate_task(request, client)).await;
            }
            "tools/call" => RequestKind::Tool,
            "prompts/get" => RequestKind::Prompt,
            "resources/read" => RequestKind::Resource,
            unknown => return Err(RpcError::method_not_found(unknown)),
        };
        let principal = PrincipalName::of(request.http.as_deref());
        let mut client_request = ClientRequest::read(kind, request.members, principal)?;
        if kind == RequestKind::Tool {
            client_request.ids = CallIds::read(client.meta())?;
            if is_own_tool(&client_request.name)
                && let Some(found) =
                    self.search_tools(&mut client_request, &client, request.http.as_deref())?
            {
                return Ok(found);
            }
        }
        let call = match self.pending_input.resume(&client_request)? {
            ResumeRequest::New => self.start_call(client_request, &client),
            ResumeRequest::Resume(call) => call,
            ResumeRequest::MissingInput(input_required) => return Ok(input_required),
        };
        self.drive(call, client).await
    }

    /// Returns the catalog after all sources have settled, or as it is when the timeout ends.
    async fn settled(&self) -> Arc<Catalog> {
        time::timeout(SETTLE_TIMEOUT, self.handle.settled()).await.unwrap_or_else(|_| self.handle.catalog())
    }

    /// Starts a client request. The returned call owns everything that it needs, so that it can be suspended between
    /// requests.
    fn start_call(&self, client_request: ClientRequest, client: &Client) -> pending_input::RunningCall {
        let identity = CallIdentity::of(&client_request);
        let (reporter, reports) = reports::channel();
        let (consent, question_receiver) = questions::open(client, &self.elicitations).unzip();
        let input = client_request.input.clone();
        let takes_requests = consent.is_some() && client.terms().era == Era::Legacy;
        let audience =
            Audience { principal: client_request.principal.0.clone(), client: Some(client.number()) };
        let logs = reporter.logs(client);
        let mut caller = Caller { input, consent, audience, logs, takes_requests, ..routing::caller(client) };
        if client.terms().era == Era::Legacy && client_request.task.is_some() {
            (caller.tasks, caller.task_params) = (TaskMode::Return, client_request.task.clone());
        }
        let on_progress = reporter.progress(client);
        let work = Box::pin(self.clone().forward(client_request, caller, on_progress));
        pending_input::RunningCall { identity, work, question_receiver, reports }
    }

    /// Sends a client request to the source that owns its target, and records a tool call in the journal.
    async fn forward(
        self,
        client_request: ClientRequest,
        caller: Caller,
        on_progress: Option<OnProgress>,
    ) -> Result<Raw, RpcError> {
        let ClientRequest { kind, name, arguments, principal, ids, .. } = client_request;
        match kind {
            RequestKind::Tool if caller.task_params.is_some() => {
                tasks::check_support(&self.handle.catalog(), &name)?;
            }
            RequestKind::Tool => {}
            // Boxed, so that the future of a tool call stays small.
            RequestKind::Prompt => return Box::pin(self.fill_in(&name, arguments.as_ref(), caller)).await,
            RequestKind::Resource => return Box::pin(self.read(&name, caller)).await,
        }
        let task_form = tasks::TaskForm::of(&caller);
        let (principal, trace, caller) = (principal.0, telemetry::child_trace(), Some(caller));
        let CallIds { request_id, thread_id } = ids;
        let _reserved = match &request_id {
            // Boxed, because few clients choose an id.
            Some(id) => Box::pin(self.reserve_id(id)).await?,
            None => None,
        };
        let call = Call {
            tool: name,
            arguments,
            request_id,
            thread_id,
            on_progress,
            principal,
            via: VIA,
            trace,
            caller,
            ..Call::default()
        };
        let record = self.handle.call(call).await;
        if let Some(journal) = &self.journal {
            journal.record_with_others(&record, VIA, &self.handle).await;
        }
        match (&record.outcome, record.result()) {
            (Outcome::Failed(fault), _) if fault.kind == FaultKind::Arguments => {
                Ok(error::argument_errors(fault))
            }
            (Outcome::Failed(fault), _) => Err(rpc_error(fault)),
            (_, Some(result)) => Ok(match task_form {
                Some(task_form) => self.task_ids.replace_id(&record, result, task_form),
                None => result,
            }),
            (_, None) => Err(RpcError::new(RpcError::INTERNAL, "the call has no result")),
        }
    }

    /// Reserves the request id that a client chose. Fails if another call has it.
    async fn reserve_id(&self, id: &str) -> Result<Option<ReservedId<'_>>, RpcError> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let unreadable = || RpcError::new(RpcError::INTERNAL, "the call journal cannot be read");
        if journal.status().is_away() {
            return Err(unreadable());
        }
        self.request_ids.reserve(Some(id), journal).await.map_err(|error| match error {
            ReserveError::InUse => invalid(&format!("the `request_id` '{id}' is already in use")),
            ReserveError::Unreadable(_) => unreadable(),
        })
    }

    async fn fill_in(&self, name: &str, arguments: Option<&Raw>, caller: Caller) -> Result<Raw, RpcError> {
        let mut catalog = self.handle.catalog();
        if catalog.prompt(name).is_none() {
            catalog = self.settled().await;
        }
        let (source, prompt) = catalog.prompt(name).map(|it| (&*it.source, &*it.prompt.name)).unzip();
        let source_request = SourceRequest { method: "prompts/get", source, prompt, uri: None };
        let fill_in = async |caller: &Caller| self.handle.prompt(name, arguments, Some(caller)).await;
        self.telemetry.trace_request(source_request, caller, fill_in).await.map_err(|it| rpc_error(&it))
    }

    async fn read(&self, uri: &str, caller: Caller) -> Result<Raw, RpcError> {
        if result_resources::is_result(&self.handle, uri) {
            return result_resources::read(&self.handle, uri, &caller).await;
        }
        let catalog = self.settled().await;
        if let Some(owner) = routing::owner(&catalog, uri) {
            return self.read_at(&owner, uri, caller).await;
        }
        let mut failures = Vec::new();
        for source in self.resource_owners.candidates(&self.handle, uri, resource_owners::RESOURCES) {
            match self.read_at(&source, uri, caller.clone()).await {
                Ok(contents) => {
                    self.resource_owners.set(uri, &source);
                    return Ok(contents);
                }
                Err(error) => failures.push(error),
            }
        }
        Err(resource_owners::error_of_all(failures, uri, caller.retries_with_input))
    }

    async fn read_at(&self, source: &str, uri: &str, caller: Caller) -> Result<Raw, RpcError> {
        let source_request =
            SourceRequest { method: "resources/read", source: Some(source), prompt: None, uri: Some(uri) };
        let read = async |caller: &Caller| self.handle.read(source, uri, Some(caller)).await;
        self.telemetry.trace_request(source_request, caller, read).await.map_err(|it| rpc_error(&it))
    }

    /// Runs a call until it completes, or until it needs an answer from its client and is suspended.
    async fn drive(&self, mut call: pending_input::RunningCall, client: Client) -> Result<Raw, RpcError> {
        loop {
            tokio::select! {
                biased;
                // The result is polled first, so that a server cannot outlast its deadline by sending reports without
                // end.
                done = &mut call.work => {
                    call.reports.send_queued(&client).await;
                    if let Err(error) = &done {
                        self.elicitations.note_error(error, &call.identity, &self.handle.catalog(), &client);
                    }
                    return done;
                }
                report = call.reports.next() => report.send(&client).await,
                Some(question) = next_question(&mut call.question_receiver) => {
                    let questions = collect_questions(question, &mut call.question_receiver).await;
                    call.reports.send_queued(&client).await;
                    return self.pending_input.suspend(call, questions);
                }
            }
        }
    }

    async fn complete(&self, params: Option<Raw>, client: &Client) -> Result<Raw, RpcError> {
        let catalog = self.settled().await;
        let params = params.unwrap_or_else(Raw::empty_object);
        let (target, params) = routing::completion(&catalog, &params)?;
        let takes_requests = client.terms().era == Era::Legacy && questions::can_answer(client);
        let caller = Caller { takes_requests, ..routing::caller(client) };
        let (sources, uri) = match target {
            CompletionTarget::Source(source) => (vec![source], String::new()),
            CompletionTarget::UnlistedResource(uri) => {
                let capability = resource_owners::COMPLETIONS;
                (self.resource_owners.candidates(&self.handle, &uri, capability), uri)
            }
        };
        let mut failures = Vec::new();
        for source in sources {
            let completed = self.handle.ask(&source, "completion/complete", Some(&params), Some(&caller));
            match completed.await {
                Ok(completed) => return Ok(completed),
                Err(fault) => failures.push(rpc_error(&fault)),
            }
        }
        Err(resource_owners::error_of_all(failures, &uri, caller.retries_with_input))
    }

    async fn watch_at_source(self, uri: String) -> Result<(), RpcError> {
        let catalog = self.settled().await;
        if let Some(owner) = routing::owner(&catalog, &uri) {
            return self.wait_for_subscription(&owner, &uri).await;
        }
        let mut failures = Vec::new();
        for source in self.resource_owners.candidates(&self.handle, &uri, resource_owners::SUBSCRIPTIONS) {
            self.resource_owners.set(&uri, &source);
            match self.wait_for_subscription(&source, &uri).await {
                Ok(()) => return Ok(()),
                Err(error) => failures.push(error),
            }
        }
        self.resource_owners.forget(&uri);
        Err(resource_owners::error_of_all(failures, &uri, false))
    }

    async fn wait_for_subscription(&self, source: &str, uri: &str) -> Result<(), RpcError> {
        match time::timeout(SUBSCRIBE_TIMEOUT, self.handle.is_watching(source, uri)).await {
            Ok(watching) => watching.map_err(|it| rpc_error(&it)),
            Err(_) => Err(RpcError::new(RpcError::INTERNAL, "the server did not answer in time")),
        }
    }
}

impl Handler for Gateway {
    fn about(&self) -> About {
        about()
    }

    fn instructions(&self) -> InstructionsFuture {
        let gateway = self.clone();
        Box::pin(async move {
            // A session reads them only once, so it waits for servers that are still starting.
            gateway.settled().await;
            merge_instructions(&gateway.handle.sources(), &gateway.handle.lock())
        })
    }

    fn handle(&self, request: Incoming, client: Client) -> HandlerFuture {
        let request_span = self.telemetry.start_mcp(&request, &client);
        let answer = Box::pin(self.clone().answer(request, client));
        match request_span {
            Some(request_span) => {
                let handle = self.handle.clone();
                Box::pin(request_span.run_mcp(answer, move |name| is_known(&handle.catalog(), name)))
            }
            None => answer,
        }
    }

    fn notified(&self, method: &str, _params: Option<Raw>, client: &ClientRef) {
        if method == "notifications/roots/list_changed" && client.offers("roots") {
            self.root_changes.send_replace(Some(client.clone()));
        }
    }

    fn watch(&self, uri: &str) -> Pin<Box<dyn Future<Output = Result<(), RpcError>> + Send>> {
        Box::pin(self.clone().watch_at_source(uri.to_owned()))
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        self.handle.catalog().tool(name).and_then(|it| it.tool.clone())
    }
}

fn about() -> About {
    let capabilities = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
        "logging": {},
    });
    let about = About::new("wharf", env!("CARGO_PKG_VERSION"), capabilities.into());
    // A task's id names its server and its principal, but the gateway keeps no list of them.
    About { tasks: OfferedTasks::Unlisted, ..about }
}

fn is_known(catalog: &Catalog, name: &str) -> bool {
    catalog.tool(name).is_some() || catalog.prompt(name).is_some()
}

fn required_text(params: &Raw, key: &str) -> Result<String, RpcError> {
    let value = params.member(key).and_then(|it| it.decode().ok());
    value.ok_or_else(|| invalid(&format!("`{key}` is missing")))
}

fn invalid(what: &str) -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, what)
}
