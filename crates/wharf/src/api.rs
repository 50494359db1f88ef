//! The HTTP API of the gateway: MCP over every transport, REST, and the endpoints for operators, on one port.
//!
//! Every request passes the same steps: host and origin check, routing, authentication, authorization, then the
//! handler. A failure in any step becomes a problem document (RFC 9457). The module does not know how connections are
//! accepted or framed; [`crate::http_server`] does that.

mod admission;
mod body;
mod chat;
mod console;
mod conversations;
mod decision_body;
mod docs;
mod events;
mod limits;
mod observer;
mod openai;
mod openapi;
mod operator_endpoints;
mod problem;
mod projection;
mod query;
mod rest;
mod routes;
mod sign_in;
mod tokens;
mod websocket;

use crate::http_server::RequestBody;
use crate::{
    agent_runs::{AgentRuns, Models},
    exit::Exit,
    gateway::{Gateway, TaskIds, ToolMode, announce},
    http_server::{ConnectionHandle, ConnectionPlacement, accept, serve_http},
    journal::Journal,
    registry::SourceRegistry,
    request_ids::RequestIds,
};
use admission::HostPolicy;
use bytes::Bytes;
use events::Hub;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
pub(crate) use limits::GatewayLimits;
pub(crate) use openapi::document as openapi_document;
use problem::Problem;
pub(crate) use rest::CALL_RECORD;
use rest::DetachedTasks;
use routes::{Operation, Route, RouteMatch, find};
use sign_in::{SignIns, SignedInBy};
use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};
use tokens::{Admission, Principal};
pub(crate) use tokens::{MIN_TOKEN_LENGTH, Tokens, read as read_token, read_or_create_token};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    time::timeout,
};
use wharf_agent::ModelTape;
use wharf_config::AgentPolicy;
use wharf_mcp::{
    Raw,
    serve::{
        Service,
        http::{Body, Guard, HttpOptions, HttpService, Owner, SessionStore, SseService},
    },
};
use wharf_runtime::{BreakerCoordinator, BreakerState, Catalog, Handle, UpstreamContext};

/// How long a list request waits for sources that are still starting.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The HTTP API with everything that its handlers share.
#[derive(Clone)]
pub(crate) struct Api {
    shared: Arc<ApiState>,
}

/// The result of admitting an MCP request. It holds for all requests with the same head.
struct AdmittedHead {
    principal: Arc<Principal>,
    operation: &'static Operation,
}

/// Options of the HTTP API: who may connect, and the limits.
pub(crate) struct ApiOptions {
    pub(crate) address: SocketAddr,
    pub(crate) guard: Guard,
    pub(crate) tokens: Tokens,
    pub(crate) limits: GatewayLimits,
    /// Session store shared between replicas, so that a client can continue its session at another one.
    pub(crate) session_store: Option<Arc<dyn SessionStore>>,
    /// Signs the ids of tasks.
    pub(crate) task_ids: TaskIds,
    /// Which tools MCP clients are shown.
    pub(crate) tool_mode: ToolMode,
    /// Starts a plugin for a call that has values of its own.
    pub(crate) upstream_context: UpstreamContext,
    /// Coordinates the circuit breakers of models with other replicas.
    pub(crate) coordinator: Option<Arc<dyn BreakerCoordinator>>,
    /// Records the turns of the model, or replays them.
    pub(crate) tape: ModelTape,
    /// The operator's settings for agents.
    pub(crate) agent_policy: AgentPolicy,
}

struct ApiState {
    handle: Handle,
    journal: Journal,
    registry: SourceRegistry,
    service: Service<Gateway>,
    mcp: HttpService,
    sse: SseService,
    /// Permits for open WebSockets.
    sockets: Arc<Semaphore>,
    host_policy: HostPolicy,
    tokens: Tokens,
    sign_ins: SignIns,
    started_at: SystemTime,
    limits: GatewayLimits,
    /// Which tools MCP clients are shown.
    tool_mode: Arc<ToolMode>,
    hub: Hub,
    request_ids: Arc<RequestIds>,
    detached_tasks: DetachedTasks,
    upstream_context: UpstreamContext,
    agent_runs: AgentRuns,
    completion_runs: openai::CompletionRuns,
    /// `/openapi.json`, rendered on the first request.
    openapi: OnceLock<Bytes>,
    draining: watch::Receiver<bool>,
}

impl Api {
    /// Creates the API with these options.
    pub(crate) fn new(
        handle: Handle,
        journal: Journal,
        registry: SourceRegistry,
        api_options: ApiOptions,
        draining: watch::Receiver<bool>,
    ) -> Api {
        // Requests that reach MCP have already passed the host and origin check here, so MCP accepts all of them.
        let anything = || vec!["*".to_owned()];
        let admitted = Guard { hosts: anything(), origins: anything() };
        let ApiOptions {
            address,
            guard,
            tokens,
            limits,
            session_store,
            task_ids,
            tool_mode,
            upstream_context,
            coordinator,
            tape,
            agent_policy,
        } = api_options;
        let agent_runs = AgentRuns::new(
            handle.clone(),
            journal.clone(),
            registry.clone(),
            Models::new(upstream_context.redactor.clone(), agent_policy.breaker, coordinator, tape),
            agent_policy,
            draining.clone(),
        );
        let request_ids = Arc::<RequestIds>::default();
        let tool_mode = Arc::new(tool_mode);
        let gateway = Gateway::new(handle.clone(), Some(journal.clone()), task_ids);
        let gateway = gateway.with_tool_mode(tool_mode.clone());
        let service = Service::new(gateway.with_request_ids(request_ids.clone()));
        let stream_limit = limits.max_streams;
        let sockets = Arc::new(Semaphore::new(stream_limit));
        let options = HttpOptions { guard: admitted, session_store, stream_limit, ..HttpOptions::default() };
        let mcp = HttpService::new(service.clone(), options.clone());
        let sse = SseService::new(service.clone(), options, "/messages");
        let (hub, detached_tasks) = (Hub::default(), DetachedTasks::default());
        let host_policy = HostPolicy::new(guard, address);
        let sign_ins = SignIns::new(journal.store(), journal.status());
        let shared = ApiState {
            handle,
            journal,
            registry,
            service,
            mcp,
            sse,
            sockets,
            host_policy,
            tokens,
            sign_ins,
            started_at: SystemTime::now(),
            limits,
            tool_mode,
            hub,
            request_ids,
            detached_tasks,
            upstream_context,
            agent_runs,
            completion_runs: openai::CompletionRuns::default(),
            openapi: OnceLock::new(),
            draining,
        };
        Api { shared: Arc::new(shared) }
    }

    /// Invalidates the cached session of this key, or all of them if there is no key, because another replica changed
    /// or ended it.
    pub(crate) fn invalidate_session(&self, key: Option<&str>) {
        self.shared.mcp.invalidate(key);
        self.shared.sign_ins.invalidate(key);
    }

    /// Returns the path of the console with a ticket of the operator; without one if none is needed or can be issued.
    pub(crate) async fn console_path(&self) -> String {
        let ApiState { tokens, sign_ins, .. } = &*self.shared;
        let ticket = match tokens.operator() {
            Some(operator) => sign_ins.issue_ticket(operator).await.ok(),
            None => None,
        };
        ticket.map_or_else(|| "/".to_owned(), |it| format!("/#ticket={}", it.secret))
    }

    /// Adopts the breaker state of a model that another replica has determined. Returns whether the key is that of a
    /// model.
    pub(crate) fn follow_model_breaker(&self, key: &str, state: BreakerState) -> bool {
        self.shared.agent_runs.follow_breaker(key, state)
    }

    /// Continues runs of the agent that wait for decisions, and deletes old conversations. Never returns.
    pub(crate) async fn follow_conversations(&self, keep: Option<Duration>) {
        let agent_runs = &self.shared.agent_runs;
        let sweeping = async {
            match keep {
                Some(keep) => agent_runs.sweep(keep).await,
                None => std::future::pending().await,
            }
        };
        tokio::join!(agent_runs.follow_decisions(), agent_runs.warn_about_rules(), sweeping);
    }

    /// Serves connections until `shutdown` completes.
    pub(crate) async fn serve(
        self,
        (listener, placement): (TcpListener, &ConnectionPlacement),
        shutdown: impl Future<Output = Exit>,
    ) -> Exit {
        let ApiState { handle, service, hub, detached_tasks, agent_runs, .. } = &*self.shared;
        let announcing = announce(service.clone(), handle.clone());
        let distributing = hub.distribute(&self.shared);
        let observing = observer::observe(&self.shared);
        let api = self.clone();
        let serving = accept((listener, placement), shutdown, move |stream, shutdown_signal| {
            let api = api.clone();
            serve_http(stream, shutdown_signal, move |request, connection| {
                api.clone().respond(request, connection.clone())
            })
        });
        let exit = tokio::select! {
            exit = serving => exit,
            () = announcing => Exit::InternalError,
            () = distributing => Exit::InternalError,
            () = observing => Exit::InternalError,
        };
        service.handler().shutdown();
        detached_tasks.finish().await;
        agent_runs.finish().await;
        exit
    }

    async fn respond(
        self,
        mut request: Request<RequestBody>,
        connection: ConnectionHandle,
    ) -> Response<Body> {
        let is_openai = request.uri().path().starts_with(openai::PREFIX);
        let mut response = match self.admit(&mut request, connection).await {
            Ok((operation, segment)) => self.run_operation(operation.route, &segment, request).await,
            Err(problem) => Err(problem),
        }
        .unwrap_or_else(|problem| match is_openai {
            true => openai::problem_response(problem),
            false => Response::from(problem),
        });
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    /// Checks host and origin, finds the operation, authenticates and authorizes. Stores the principal's name in the
    /// request's extensions and, depending on the route, the principal or the connection handle.
    async fn admit(
        &self,
        request: &mut Request<RequestBody>,
        connection: ConnectionHandle,
    ) -> Result<(&'static Operation, String), Problem> {
        if let Some(AdmittedHead { principal, operation }) = connection.recall().as_deref() {
            principal.note_use();
            request.extensions_mut().insert(Owner(principal.name.clone()));
            return Ok((operation, String::new()));
        }
        admission::check(request, &self.shared.host_policy)?;
        let found = find(request.method(), request.uri().path());
        if let RouteMatch::Operation(operation @ Operation { role: None, .. }, segment) = found {
            return Ok((operation, segment.unwrap_or_default()));
        }
        let (principal, signed_in_by) = match self.shared.tokens.admit(request.headers())? {
            Admission::Token(principal) => (principal, SignedInBy::Token),
            Admission::Open(principal) => (principal, SignedInBy::Nothing),
            Admission::Unknown(secret) => {
                let takes_ticket =
                    matches!(&found, RouteMatch::Operation(it, _) if it.route == Route::OpenSession);
                Box::pin(self.shared.sign_ins.admit(&self.shared.tokens, secret, takes_ticket)).await?
            }
        };
        let (operation, segment) = match found {
            RouteMatch::Operation(operation, segment) => (operation, segment),
            RouteMatch::OtherMethods(allowed) => return Err(Problem::method_not_allowed(allowed)),
            RouteMatch::Nothing => return Err(Problem::unknown_path(request.uri().path())),
        };
        operation.role.map_or(Ok(()), |role| principal.require_role(role))?;
        let has_body = request.method() == Method::POST && !request.body().is_end_stream();
        if has_body || operation.about.body.is_some() {
            body::check_is_json(request.headers())?;
        }
        request.extensions_mut().insert(Owner(principal.name.clone()));
        match operation.route {
            // Sessions of the console can end; tokens cannot.
            Route::Mcp
                if matches!(signed_in_by, SignedInBy::Token | SignedInBy::Nothing)
                    && body::check_is_json(request.headers()).is_ok() =>
            {
                connection.remember(AdmittedHead { principal, operation });
            }
            Route::Mcp => {}
            Route::WebSocket | Route::Events => _ = request.extensions_mut().insert(connection),
            Route::OpenSession | Route::Session | Route::EndSession | Route::IssueTicket => {
                request.extensions_mut().insert(principal);
                request.extensions_mut().insert(signed_in_by);
            }
            _ => _ = request.extensions_mut().insert(principal),
        }
        let no_text = || Problem::new(StatusCode::BAD_REQUEST, "the path is not UTF-8");
        Ok((operation, segment.ok_or_else(no_text)?))
    }

    /// Runs the operation of a request that has been admitted.
    async fn run_operation(
        &self,
        route: Route,
        segment: &str,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, Problem> {
        match route {
            Route::Mcp => {
                admission::check_accept(request.headers())?;
                let (parts, body) = request.into_parts();
                let body = body::read_all(body).await?;
                Ok(self.shared.mcp.respond_to(parts, body).await)
            }
            // The rarer routes are boxed, so that the future of an MCP request stays small.
            Route::Sse => Box::pin(self.sse(request)).await,
            Route::WebSocket => {
                websocket::upgrade(request, self.shared.service.clone(), &self.shared.sockets)
            }
            Route::Health | Route::Ready | Route::Metrics | Route::OpenApi => {
                self.operator_response(route, &request)
            }
            Route::Console => console::page(request.headers()),
            Route::ConsoleAsset => console::asset(segment, request.headers()),
            Route::Docs | Route::DocsScript | Route::DocsStyle => Ok(docs::respond(route)),
            Route::Events => self.shared.hub.subscribe(&self.shared, &request),
            Route::Chat => Box::pin(chat::respond(&self.shared, request)).await,
            Route::Conversations
            | Route::CreateConversation
            | Route::Conversation
            | Route::RenameConversation
            | Route::DeleteConversation
            | Route::Entries
            | Route::ConversationResult
            | Route::ConversationStream
            | Route::CancelRun
            | Route::Approvals
            | Route::Decide => Box::pin(conversations::respond(&self.shared, route, segment, request)).await,
            Route::ChatUi => Box::pin(chat::ui_stream::respond(&self.shared, request)).await,
            Route::ChatAgUi => Box::pin(chat::ag_ui::respond(&self.shared, request)).await,
            Route::Completions | Route::Models | Route::Model => {
                Box::pin(openai::respond(&self.shared, route, segment, request)).await
            }
            _ => Box::pin(rest::respond(&self.shared, route, segment, request)).await,
        }
    }

    async fn sse(&self, request: Request<RequestBody>) -> Result<Response<Body>, Problem> {
        let (parts, body) = request.into_parts();
        let body = Full::new(body::read_all(body).await?);
        Ok(self.shared.sse.respond(Request::from_parts(parts, body)).await)
    }
}

impl ApiState {
    /// Returns the catalog after all sources have settled, or as it is when the timeout ends.
    async fn settled(&self) -> Arc<Catalog> {
        timeout(SETTLE_TIMEOUT, self.handle.settled()).await.unwrap_or_else(|_| self.handle.catalog())
    }

    /// Fails at once if the database is unreachable, for operations that need it.
    fn require_database(&self) -> Result<(), Problem> {
        if !self.journal.status().is_away() {
            return Ok(());
        }
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the database is unreachable")
            .hint("try again later; calls without `Idempotency-Key` and `request_id` still work")
            .retry_after(Duration::from_secs(1)))
    }

    /// Checks that the limit of concurrent calls allows one more.
    fn check_call_limit(&self) -> Result<(), Problem> {
        let Some(limit) = self.limits.max_calls.filter(|it| self.handle.in_flight() >= *it) else {
            return Ok(());
        };
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, format!("too many concurrent calls (limit {limit})"))
            .hint("try again in a moment, or raise `max_calls` in [server] of wharf.toml")
            .retry_after(Duration::from_secs(1)))
    }
}

/// Builds a response with a JSON document.
fn json_response(status: StatusCode, value: impl Into<Raw>) -> Response<Body> {
    document(status, "application/json", value.into().into_bytes())
}

/// Builds the response of an operation that has nothing to return.
fn no_content() -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn document(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
