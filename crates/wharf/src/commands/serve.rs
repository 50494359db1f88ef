//! `wharf serve`: serves every tool over HTTP on one port.
//!
//! Opens the listener, the database and the journal, runs the gateway, and shuts everything down in order.

mod startup;

use super::{listen_error::cannot_listen, recording::Recording};
use crate::{
    accepted_definitions::accepted_definitions,
    api::{Api, ApiOptions, GatewayLimits, MIN_TOKEN_LENGTH, Tokens, read_or_create_token, read_token},
    app::App,
    cli::{GlobalOptions, ServeArgs},
    command_error::CommandError,
    environment::{Environment, Token},
    exit::Exit,
    gateway::{TaskIds, ToolMode},
    http_server::{configured_guard, raise_file_limit},
    journal::{Journal, JournalTask},
    lease_owner::{LeaseOwner, own_runs},
    load_agent::has_agent_file,
    registry::{PlanOwner, SourceRegistry, disabled_tools},
    reload,
    replica::Replica,
    running_gateway::{GatewayClaims, RunningGateway},
    signals::Signals,
    stored_results::StoredResults,
    telemetry::Exporter,
};
use startup::{Access, Startup};
use std::{cell::Cell, future, net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use wharf_agent::ModelTape;
use wharf_config::{NamedToken, TokenLocation};
use wharf_mcp::serve::http::SessionStore;
use wharf_runtime::lock::AcceptedDefinitions;
use wharf_runtime::{Handle, Runtime, cassette::ConversationNaming, catalog::DisabledTools};
use wharf_store::{Location, Store};

/// Grace period for calls in flight at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

pub(super) async fn run(
    mut app: App,
    args: ServeArgs,
    token: Option<Token>,
    reload_context: (GlobalOptions, Environment),
) -> Exit {
    let output = app.output;
    let recording = match Recording::begin(&mut app, &args.cassette, ConversationNaming::Numbered) {
        Ok(recording) => recording,
        Err(error) => return output.fail(&error),
    };
    let exit = match GatewayClaims::take(app.database.as_ref(), reload_context.1.spool().as_deref()).await {
        Ok(claims) => serve(app, args, token, reload_context, claims, &recording).await,
        Err(complaint) => output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable)),
    };
    recording.end(exit, output)
}

/// Runs the gateway. `claims` guarantees that no other gateway uses the same SQLite file.
async fn serve(
    mut app: App,
    args: ServeArgs,
    token: Option<Token>,
    (common, environment): (GlobalOptions, Environment),
    mut claims: GatewayClaims,
    recording: &Recording,
) -> Exit {
    let output = app.output;
    raise_file_limit();
    let opened = prepare_listener(&app, &args, token, (&common, &environment)).await;
    let (listener, tokens, startup) = match opened {
        Ok(opened) => opened,
        Err(complaint) => return output.fail(&CommandError::usage(&complaint)),
    };
    let started_early = start_early(&app);
    let opened = match OpenedState::open(&app, &environment, &common.file).await {
        Ok(opened) => opened,
        Err(complaint) => {
            if let Some(runtime) = started_early {
                runtime.shutdown(Duration::ZERO).await;
            }
            return output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable));
        }
    };
    let OpenedState { store, owner: _owner, disabled, accepted, journal, registered, task_ids } = opened;
    let ((journal, writing), (registry, plan_owner)) = (journal, registered);
    let (telemetry, exporter) = app.telemetry();
    let journal = journal.traced(telemetry);
    let (replica, session_store) = join_replicas(&mut app, &store, &journal);
    let runtime = started_early.unwrap_or_else(|| app.start());
    // What operators decided applies before a registered source is listed.
    let results = prepare(&runtime.handle(), (disabled, accepted), &app, &store);
    plan_owner.start_sources(&app, &runtime);
    let abandoned = journal.clone().record_abandoned(runtime.handle());
    let exporting = export(exporter, runtime.handle());
    let (drain, draining) = watch::channel(false);
    let shared = (session_store, task_ids, recording.tape());
    let api_options = api_options(&app, &listener, startup.address, tokens, shared);
    let api = Api::new(runtime.handle(), journal, registry.clone(), api_options, draining);
    // Install the signal handlers before the address is printed: a caller that reads it may send a signal at once.
    let mut signals = Signals::listen();
    claims.publish(&RunningGateway::new(startup.address, &environment.folder.join(&common.file)));
    let console_path = if startup.shows_ticket() { api.console_path().await } else { "/".to_owned() };
    startup.print_addresses(&runtime.handle(), &console_path);
    let serving = async {
        let shutdown = wait_for_shutdown(&runtime, &drain, &mut signals);
        let following = follow(replica, runtime.handle(), api.clone(), &registry);
        let follower = api.clone();
        let exit = tokio::select! {
            exit = api.serve((listener, &app.placement), shutdown) => exit,
            () = following => Exit::InternalError,
            () = reload::follow(common, environment, &registry) => Exit::InternalError,
            () = plan_owner.run(&app, &runtime) => Exit::InternalError,
            () = registry.follow(runtime.handle()) => Exit::InternalError,
            () = delete_old_rows(&app, &store, results) => Exit::InternalError,
            () = follower.follow_conversations(app.agent_policy.keep) => Exit::InternalError,
            () = report_servers(&startup, recording, runtime.handle()) => Exit::InternalError,
        };
        startup.print_document(&runtime.handle());
        recording.add_servers_of(&runtime.handle());
        runtime.shutdown(SHUTDOWN_GRACE).await;
        exit
    };
    // The journal writer ends when the last `Journal` handle is dropped, so it is awaited until every record is
    // written. The exporter also runs to its end, to send the last traces.
    let (exit, (), (), ()) = tokio::join!(serving, abandoned, write_journal(writing), exporting);
    store.close().await;
    exit
}

/// Starts the sources while the database opens, because both are slow. With a shared database, the runtime has to join
/// the other replicas first.
fn start_early(app: &App) -> Option<Runtime> {
    matches!(app.database, Some(Location::Sqlite(_))).then(|| app.start())
}

fn api_options(
    app: &App,
    listener: &TcpListener,
    address: SocketAddr,
    tokens: Tokens,
    (session_store, task_ids, tape): (Option<Arc<dyn SessionStore>>, TaskIds, ModelTape),
) -> ApiOptions {
    ApiOptions {
        address,
        guard: configured_guard(listener, &app.server.hosts, &app.server.origins),
        tokens,
        limits: GatewayLimits::of(app),
        session_store,
        task_ids,
        tool_mode: ToolMode::of(&app.plan.agent.context).with_tokens(&app.server.tokens),
        upstream_context: app.upstream_context.clone(),
        coordinator: app.options.coordinator.clone(),
        tape,
        agent_policy: app.agent_policy.clone(),
    }
}

/// Writes the journal until it is dropped. The writer is a task of its own, because every call wakes it: as a part of
/// the future of `serve`, it would have every other part polled too.
async fn write_journal(writing: JournalTask) {
    let mut writer = JoinSet::new();
    writer.spawn(writing);
    if let Some(Err(error)) = writer.join_next().await
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Sends traces until the runtime is gone, if the operator wants them.
async fn export(exporter: Option<Exporter>, handle: Handle) {
    if let Some(exporter) = exporter {
        exporter.run(handle).await;
    }
}

/// Waits for a signal, announces the shutdown, and waits for calls in flight. A second signal ends the wait at once.
async fn wait_for_shutdown(runtime: &Runtime, drain: &watch::Sender<bool>, signals: &mut Signals) -> Exit {
    signals.next().await;
    drain.send_replace(true);
    tokio::select! {
        () = runtime.drain(SHUTDOWN_GRACE) => {}
        _ = signals.next() => {}
    }
    Exit::Success
}

/// The opened database and the state loaded from it.
struct OpenedState {
    store: Store,
    /// The name of the runs that this gateway begins, if the state folder has one for it.
    owner: Option<LeaseOwner>,
    /// Tools that an operator has disabled; they stay disabled across restarts.
    disabled: DisabledTools,
    /// Definitions that differ from the lock and that an operator has accepted.
    accepted: AcceptedDefinitions,
    journal: (Journal, JournalTask),
    registered: (SourceRegistry, PlanOwner),
    /// Signs the ids of tasks with a key from the database, so that every replica knows them.
    task_ids: TaskIds,
}

impl OpenedState {
    async fn open(app: &App, environment: &Environment, file: &Path) -> Result<OpenedState, String> {
        let nowhere = "there is no folder for the database\nhelp: set WHARF_HOME, or give --database";
        let location = app.database.as_ref().ok_or_else(|| nowhere.to_owned())?;
        let store = Store::open(location).await.map_err(|error| error.to_string())?;
        let disabled = disabled_tools(&store).await.map_err(|error| error.to_string())?;
        let (store, owner) = own_runs(store, environment.spool().as_deref()).await?;
        let accepted = accepted_definitions(&store).await.map_err(|error| error.to_string())?;
        let task_ids = TaskIds::shared(&store).await.map_err(|error| error.to_string())?;
        let registered = SourceRegistry::open(store.clone(), environment, file, app).await;
        let registered = registered.map_err(|error| error.to_string())?;
        let (journal, writing) = Journal::open(store.clone(), location, environment.spool().as_deref())?;
        let journal = (journal.with_record_limit(app.record_limit), writing);
        Ok(OpenedState { store, owner, disabled, accepted, journal, registered, task_ids })
    }
}

/// Applies what operators have decided about tools: which are disabled, and which definitions are accepted.
fn apply_decisions(handle: &Handle, disabled: DisabledTools, accepted: AcceptedDefinitions) {
    handle.set_disabled_tools(disabled);
    handle.set_accepted_definitions(accepted);
}

/// Applies what operators have decided about tools, and stores large results in the database.
fn prepare(
    handle: &Handle,
    (disabled, accepted): (DisabledTools, AcceptedDefinitions),
    app: &App,
    store: &Store,
) -> StoredResults {
    apply_decisions(handle, disabled, accepted);
    let results = StoredResults::new(store.clone(), app.results);
    handle.keep_results(results.handles(app.upstream_context.supervisor.clone()));
    results
}

/// Deletes old calls and expired results. Never returns.
async fn delete_old_rows(app: &App, store: &Store, results: StoredResults) {
    tokio::join!(app.retention().run(store.clone()), results.sweep());
}

/// Prints and records what the servers offer. Never returns.
async fn report_servers(startup: &Startup, recording: &Recording, handle: Handle) {
    tokio::join!(startup.report_servers(handle.clone()), recording.follow_servers(&handle));
}

/// Joins the other replicas if the database can be shared. Returns this replica and the session store they share.
fn join_replicas(
    app: &mut App,
    store: &Store,
    journal: &Journal,
) -> (Option<Replica>, Option<Arc<dyn SessionStore>>) {
    let Some((replica, shared_breakers)) = Replica::new(store, journal.status()) else { return (None, None) };
    app.options.coordinator = Some(Arc::new(shared_breakers));
    let session_store = Arc::new(replica.sessions());
    (Some(replica), Some(session_store))
}

/// Applies the changes that other replicas make in the shared database. Waits forever if the database is not shared.
async fn follow(replica: Option<Replica>, handle: Handle, api: Api, registry: &SourceRegistry) {
    match replica {
        Some(replica) => replica.follow(handle, api, registry).await,
        None => future::pending().await,
    }
}

/// Adds the tokens that wharf.toml names.
fn add_tokens(tokens: &mut Tokens, named: &[NamedToken], environment: &Environment) -> Result<(), String> {
    for NamedToken { name, role, stored_at, tool_mode: _ } in named {
        let token = match stored_at {
            TokenLocation::File(path) => read_token(path)?,
            TokenLocation::Variable(variable) => {
                let set =
                    environment.variables.get(variable).filter(|it| it.len() >= MIN_TOKEN_LENGTH).cloned();
                set.ok_or_else(|| {
                    format!("the token `{name}` is not in `{variable}`\nhelp: set it, to at least {MIN_TOKEN_LENGTH} characters")
                })?
            }
        };
        tokens.add(name, *role, &token)?;
    }
    Ok(())
}

/// The address to listen on, and whether clients must authenticate.
struct ListenAddress {
    listen: String,
    /// Position of the address in wharf.toml, if it is set there.
    at: Option<String>,
    no_auth: bool,
}

impl ListenAddress {
    fn of(args: &ServeArgs, environment: &Environment, app: &App) -> ListenAddress {
        let (listen, at) = environment.listen(args.listen.as_deref(), &app.server);
        ListenAddress { listen, at, no_auth: args.no_auth || app.server.no_auth }
    }
}

/// Binds the listener, loads the tokens and collects the information to print at startup.
async fn prepare_listener(
    app: &App,
    args: &ServeArgs,
    token: Option<Token>,
    (common, environment): (&GlobalOptions, &Environment),
) -> Result<(TcpListener, Tokens, Startup), String> {
    let listen_address = ListenAddress::of(args, environment, app);
    let access = match &token {
        _ if listen_address.no_auth => Access::Open,
        Some(Token::File(path)) => Access::File(environment.folder.join(path)),
        Some(Token::Set(_)) | None => Access::Variable,
    };
    let (listener, address, mut tokens) = open(&listen_address, token).await?;
    let faults = app.upstream_context.faults.as_ref().map(|it| it.rules());
    if faults.is_some() && !address.ip().is_loopback() {
        return Err("--faults is only allowed on loopback\nhelp: use --listen 127.0.0.1:PORT".to_owned());
    }
    add_tokens(&mut tokens, &app.server.tokens, environment)?;
    let agent_file = has_agent_file(common).then(|| common.file.clone());
    Ok((
        listener,
        tokens,
        Startup { output: app.output, address, access, agent_file, faults, is_printed: Cell::new(false) },
    ))
}

/// Binds the listener and reads the main token, creating it if necessary.
async fn open(
    listen_address: &ListenAddress,
    token: Option<Token>,
) -> Result<(TcpListener, SocketAddr, Tokens), String> {
    let listener =
        TcpListener::bind(&listen_address.listen).await.map_err(|error| unusable(listen_address, &error))?;
    let address = listener.local_addr().map_err(|error| unusable(listen_address, &error))?;
    if listen_address.no_auth {
        if !address.ip().is_loopback() {
            return Err(format!(
                "`--no-auth` would give access to everyone who can reach {address}\nhelp: listen on 127.0.0.1, or use the token"
            ));
        }
        return Ok((listener, address, Tokens::open()));
    }
    let tokens = match token {
        Some(Token::Set(token)) if token.len() < MIN_TOKEN_LENGTH => {
            return Err(format!(
                "WHARF_TOKEN is too short to be a secret\nhelp: at least {MIN_TOKEN_LENGTH} characters"
            ));
        }
        Some(Token::Set(token)) => Tokens::for_operator(&token),
        Some(Token::File(path)) => {
            let token = read_or_create_token(&path)?;
            Tokens::for_operator(&token)
        }
        None => {
            return Err("there is no folder for the token\nhelp: set WHARF_TOKEN or WHARF_HOME".to_owned());
        }
    };
    Ok((listener, address, tokens))
}

fn unusable(ListenAddress { listen, at, .. }: &ListenAddress, error: &std::io::Error) -> String {
    cannot_listen(listen, at.as_deref(), error)
}
