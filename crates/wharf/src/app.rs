//! Contains the context that every command runs in: the loaded plan, its settings, and the runtime that connects to
//! the sources.
//!
//! It owns the shutdown of that runtime, also when a signal interrupts the command. It does not know what a command
//! does with the sources.

use crate::{
    cli::{Colour, GlobalOptions},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    gateway::ClientQuestions,
    http_server::{ConnectionPlacement, ConnectionThreads},
    journal::Retention,
    load_agent::{has_agent_file, load_agent, load_agent_or_todo},
    output::{JsonDocument, Output},
    progress::Progress,
    signals::interrupted,
    stored_results,
    telemetry::{self, Exporter, Telemetry},
    terminal::Terminal,
    todo::builtin::BuiltinServers,
};
use std::{cell::RefCell, future::Future, path::PathBuf, pin::Pin, rc::Rc, sync::Arc, time::Duration};
use tokio::{runtime, time};
use wharf_config::{
    AgentPolicy, Diagnostics, Grants, JournalSettings, Plan, RegisteredLock, ResultQuotas, ServerSettings,
    Settings, Source,
};
use wharf_mcp::{EgressPolicy, http::HttpClient, session::List};
use wharf_runtime::{
    Catalog, Fault, Handle, PlanChanges, Redactor, Runtime, RuntimeOptions, SourceState, SourceStatus,
    Upstream, UpstreamContext,
    catalog::Discovery,
    upstream::{Consent, DeclineAll, Installs, ProcessLimit, remove_abandoned_directories},
};
use wharf_store::Location;

/// Timeout for connecting to a server, if its entry sets none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the program waits at exit for blocking tasks, which cannot be cancelled.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

/// How long servers may take to stop after an interrupt. Those still running afterwards end together with this
/// process.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(3);

/// The runtime of a command, shared with the signal handling, which has to shut it down when the command is dropped.
type SharedRuntime = Rc<RefCell<Option<Runtime>>>;

/// The context of the program: the plan, the settings, and everything needed to start its sources.
pub(crate) struct App {
    pub(crate) output: Output,
    /// The plan as loaded at startup.
    pub(crate) plan: Plan,
    pub(crate) upstream_context: UpstreamContext,
    pub(crate) options: RuntimeOptions,
    pub(crate) database: Option<Location>,
    /// The state folder, if it is writable.
    pub(crate) state_folder: Option<PathBuf>,
    pub(crate) server: ServerSettings,
    /// The operator's grants as loaded at startup.
    pub(crate) grants: Grants,
    /// Size in bytes above which the journal keeps only the beginning of a value, if configured.
    pub(crate) record_limit: Option<usize>,
    journal: JournalSettings,
    /// The operator's settings for agents.
    pub(crate) agent_policy: AgentPolicy,
    /// Limits on stored results.
    pub(crate) results: ResultQuotas,
    /// Treatment of changed definitions of registered sources.
    pub(crate) registered_lock: RegisteredLock,
    /// Assigns connections to the threads of the program.
    pub(crate) placement: ConnectionPlacement,
    telemetry: Result<Option<telemetry::TelemetryConfig>, String>,
    running: SharedRuntime,
}

/// The sources that a command uses. Connecting may have failed for some of them.
pub(crate) struct Connections {
    pub(crate) handle: Handle,
    pub(crate) catalog: Arc<Catalog>,
    /// In the order of the agent file.
    pub(crate) sources: Vec<ConnectedSource>,
    running: SharedRuntime,
}

/// One source and the result of connecting to it.
pub(crate) struct ConnectedSource {
    pub(crate) source: Arc<Source>,
    pub(crate) status: SourceStatus,
    pub(crate) fault: Option<Arc<Fault>>,
    /// Lists that the source offers but that could not be read, although the connection succeeded.
    pub(crate) unread: Vec<(List, Arc<Fault>)>,
}

type CommandFuture = Pin<Box<dyn Future<Output = Exit>>>;

/// How many threads a command runs on.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// One, because it does one thing at a time.
    One,
    /// As many as `[server] threads` says, or one for each core.
    Configured,
}

/// Loads the agent file and runs `work` on its sources. A signal drops `work`, which cancels its open requests, and
/// then stops the servers.
pub(crate) fn run(
    common: &GlobalOptions,
    environment: &Environment,
    output: Output,
    work: impl FnOnce(App) -> CommandFuture + 'static,
) -> Exit {
    if !has_agent_file(common) && !output.json {
        output.print_info("note: there is no agent.yaml here; this is the built-in Todo server");
    }
    run_loaded(
        load_agent_or_todo(common, environment),
        environment,
        (None, Threads::One),
        output,
        Box::new(move |app| {
            Box::pin(async move {
                let running = app.running.clone();
                let ended = tokio::select! {
                    exit = work(app) => Ok(exit),
                    signal = interrupted() => Err(signal),
                };
                match ended {
                    Ok(exit) => exit,
                    Err(signal) => {
                        let exit = output.fail(&CommandError::interrupted(signal));
                        shut_down_promptly(&running).await;
                        exit
                    }
                }
            })
        }),
    )
}

/// Loads an agent file and runs `work` on its sources, without printing anything. The error is the text of the diagnostics.
pub(crate) fn run_quietly(
    common: &GlobalOptions,
    environment: &Environment,
    work: impl FnOnce(App) -> CommandFuture,
) -> Result<Exit, String> {
    let (loaded, diagnostics) = load_agent(common, environment);
    if loaded.is_none() {
        return Err(diagnostics.render(false).trim_end().to_owned());
    }
    let output = Output { json: false, quiet: true, colour: Colour::Never, document: JsonDocument::Plain };
    let nothing = Diagnostics::new(diagnostics.file(), "");
    Ok(run_loaded((loaded, nothing), environment, (None, Threads::One), output, Box::new(work)))
}

/// Loads the agent file, or the built-in Todo server if there is none, and runs `work`, which handles signals itself.
pub(crate) fn serve(
    common: &GlobalOptions,
    environment: &Environment,
    output: Output,
    work: impl FnOnce(App) -> CommandFuture,
) -> Exit {
    run_loaded(
        load_agent_or_todo(common, environment),
        environment,
        (None, Threads::One),
        output,
        Box::new(work),
    )
}

/// Like [`serve`], with a choice of database, on as many threads as configured.
pub(crate) fn serve_gateway(
    common: &GlobalOptions,
    environment: &Environment,
    database: Option<&str>,
    output: Output,
    work: impl FnOnce(App) -> CommandFuture,
) -> Exit {
    let options = (database, Threads::Configured);
    run_loaded(load_agent_or_todo(common, environment), environment, options, output, Box::new(work))
}

fn run_loaded(
    (loaded, diagnostics): (Option<(Plan, Settings)>, Diagnostics),
    environment: &Environment,
    (database, threads): (Option<&str>, Threads),
    output: Output,
    work: Box<dyn FnOnce(App) -> CommandFuture + '_>,
) -> Exit {
    let Some((plan, settings)) = loaded else {
        return output.fail_loading(&diagnostics);
    };
    output.warn_deprecated(&diagnostics);
    let database = match environment.database(database, &settings.server) {
        Ok(database) => database,
        Err(complaint) => return output.fail(&CommandError::usage(&complaint)),
    };
    let threads = match threads {
        Threads::One => 1,
        Threads::Configured => environment.threads(&settings.server),
    };
    let (runtime, threads, http) = match start_threads(threads) {
        Ok(started) => started,
        Err(error) => return output.fail(&CommandError::new("MCPError", &error, Exit::InternalError)),
    };
    let placement = threads.placement(runtime.handle());
    let redactor = Arc::new(Redactor::of(&plan));
    remove_abandoned_directories(&environment.scratch());
    let upstream_context = UpstreamContext {
        scratch: environment.scratch(),
        http,
        credentials: environment.credentials(),
        redactor,
        supervisor: environment.supervisor(),
        builtins: Some(Arc::new(BuiltinServers::new(database.clone()))),
        processes: settings.max_processes.map(ProcessLimit::at_most).unwrap_or_default(),
        installs: Installs::default(),
        recorded: None,
        faults: None,
    };
    let consent: Arc<dyn Consent> = match Terminal::open() {
        Some(terminal) => Arc::new(terminal),
        None => Arc::new(DeclineAll),
    };
    let options = RuntimeOptions {
        consent,
        breaker: settings.breaker,
        repeatable: settings.repeatable,
        idle_stop: settings.idle_stop,
        ..RuntimeOptions::default()
    };
    let (server, telemetry) = (settings.server, environment.telemetry(&settings.telemetry));
    let (grants, record_limit, journal) = (settings.grants, settings.record_limit, settings.journal);
    let (agent_policy, results, registered_lock) =
        (settings.agent, settings.results, settings.registered_lock);
    let (state_folder, running) = (environment.spool(), SharedRuntime::default());
    #[rustfmt::skip]
    let app = App {
        output, plan, upstream_context, options, database, server, grants, record_limit, journal,
        agent_policy, results, registered_lock, placement, telemetry, running, state_folder,
    };
    let exit = runtime.block_on(work(app));
    // A prompt on the terminal may still be blocked on a line that never arrives.
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    threads.stop();
    exit
}

/// Builds the async runtime of the main thread and starts the other threads. All of them share the HTTP client.
fn start_threads(count: usize) -> Result<(runtime::Runtime, ConnectionThreads, HttpClient), String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let others = ConnectionThreads::start(count.saturating_sub(1), EXIT_TIMEOUT);
    let others = others.map_err(|error| error.to_string())?;
    let http = HttpClient::with_egress(EgressPolicy::wide(), CONNECT_TIMEOUT);
    Ok((runtime, others, http.map_err(|error| error.to_string())?))
}

impl App {
    /// The redactor of everything that is printed or recorded.
    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.upstream_context.redactor
    }

    /// Stops the servers within a time limit, after an interrupt.
    pub(crate) async fn shut_down_promptly(&self) {
        shut_down_promptly(&self.running).await;
    }

    /// Returns the tracer and, if traces are configured, their exporter. An invalid configuration is logged and
    /// disables traces, so that the server still starts.
    pub(crate) fn telemetry(&self) -> (Telemetry, Option<Exporter>) {
        let config = self.telemetry.clone().unwrap_or_else(|trouble| {
            tracing::warn!(target: "wharf::telemetry", "traces are not sent: {trouble}");
            None
        });
        Telemetry::new(config)
    }

    /// The limits on the age and size of the journal.
    pub(crate) fn retention(&self) -> Retention {
        Retention::of(&self.journal, self.database.as_ref())
    }

    /// Stores large results until the command ends.
    pub(crate) fn keep_temporary_results(&self, handle: &Handle) {
        let program = self.upstream_context.supervisor.clone();
        handle.keep_results(stored_results::temporary(self.results, program));
    }

    /// Creates an upstream for the source of this name, if the plan contains it.
    pub(crate) fn upstream(&self, name: &str) -> Option<Upstream> {
        let source = self.plan.sources.iter().find(|it| it.name.expose() == name)?;
        Some(Upstream::new(Arc::new(source.clone()), self.upstream_context.clone()))
    }

    /// Starts every source for clients of the gateway. Questions from servers go to the client that made the call.
    pub(crate) fn start(&self) -> Runtime {
        let (consent, background_retries) = (Arc::new(ClientQuestions), true);
        let options = RuntimeOptions { consent, background_retries, ..self.options.clone() };
        self.upstream_context.redactor.learn(&self.plan);
        Runtime::start(&self.plan, &self.upstream_context, options)
    }

    /// Applies a new plan to the running runtime. The redactor learns the plan's secrets first.
    pub(crate) fn apply(&self, runtime: &Runtime, plan: &Plan) -> PlanChanges {
        self.upstream_context.redactor.learn(plan);
        runtime.apply(plan, &self.upstream_context)
    }

    /// Connects to the sources that `wanted` selects and reads `lists` from each. A source that fails does not stop
    /// the others.
    pub(crate) async fn connect(&self, wanted: impl Fn(&Source) -> bool, lists: &[List]) -> Connections {
        let mut plan = self.plan.clone();
        plan.sources.retain(|it| wanted(it));
        for source in &mut plan.sources {
            // The command asked for these lists, so they are loaded even if the plan turns them off.
            (source.load_tools, source.load_prompts) = (true, true);
        }
        let options = RuntimeOptions { lists: lists.to_vec(), ..self.options.clone() };
        let runtime = Runtime::start(&plan, &self.upstream_context, options);
        let handle = runtime.handle();
        self.running.replace(Some(runtime));
        Progress::new(self.output).show_until_connected(&handle, &plan).await;
        let catalog = handle.settled().await;
        let sources = handle.sources().into_iter().map(|it| ConnectedSource::new(it, &catalog)).collect();
        Connections { handle, catalog, sources, running: self.running.clone() }
    }
}

impl Connections {
    /// Closes all sessions in parallel and waits until the servers have stopped.
    pub(crate) async fn close(self) {
        let runtime = self.running.take();
        if let Some(runtime) = runtime {
            runtime.shutdown(Duration::ZERO).await;
        }
    }

    /// The faults of the sources that could not be connected.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.sources.iter().filter_map(|it| it.fault.as_deref())
    }
}

impl ConnectedSource {
    pub(crate) fn new(state: SourceState, catalog: &Catalog) -> ConnectedSource {
        let SourceState { source, status, .. } = state;
        let fault = match catalog.discovery(source.name.expose()) {
            Some(Discovery::Failed(fault)) => Some(fault.clone()),
            _ => None,
        };
        let unread = catalog.unread(source.name.expose()).to_vec();
        ConnectedSource { source, status, fault, unread }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.fault.is_none()
    }

    /// Returns whether `source` is this source's name.
    pub(crate) fn is_named(&self, source: &str) -> bool {
        self.source.name.expose() == source
    }
}

/// Shuts the runtime down within a time limit. A second signal skips the wait.
async fn shut_down_promptly(running: &SharedRuntime) {
    let Some(runtime) = running.take() else { return };
    tokio::select! {
        () = runtime.shutdown(Duration::ZERO) => {}
        () = time::sleep(INTERRUPTED_TIMEOUT) => {}
        _ = interrupted() => {}
    }
}
