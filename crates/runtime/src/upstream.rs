//! Opens sessions to a source and describes failures in the user's words.

mod container;
mod credentials;
mod fault_injection;
mod host;
mod install;
mod opener;
mod processes;
pub(crate) mod recorded;
mod working_directory;

pub use crate::consent::{Answerable, Consent, DeclineAll, ServerRequest};
use crate::{
    call::Caller,
    events::EventKind,
    fault::{Fault, FaultKind, Stage},
    installed_package::{has_other_dependencies, installed_package, integrity_mismatch},
    redact::Redactor,
    runtime_future::RuntimeFuture,
    status_publisher::StatusPublisher,
};
pub use credentials::Login;
use fault_injection::SourceFaults;
pub use fault_injection::{FaultInjection, tool_result as injected_result};
pub use install::Installs;
pub use processes::ProcessLimit;
use processes::ProcessSlot;
use recorded::read_fault;
pub use recorded::{RecordedServers, fault_data, not_recorded_data};
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use wharf_config::{Builtin, DependencyCheck, EraChoice, LockMode, Source};
use wharf_mcp::{
    Disconnect, EgressPolicy, Failure, Opener, Raw, Request, Session, SessionTask,
    fault_injection::FaultyOpener,
    http::HttpClient,
    oauth::MemoryStore,
    session::{ClientInfo, Connected, Era, EraHint, NewsFeed, OnLog, Options},
    stdio::ProcessObserver,
};
use working_directory::WorkingDirectory;
pub use working_directory::remove_abandoned_directories;

/// Context shared by all upstreams of a process.
#[derive(Clone, Debug)]
pub struct UpstreamContext {
    /// Parent of the private working directories.
    pub scratch: PathBuf,
    /// The HTTP connection pool.
    pub http: HttpClient,
    /// Directory of the stored OAuth grants for remote servers, if any.
    pub credentials: Option<PathBuf>,
    /// Redacts secrets in the output of servers.
    pub redactor: Arc<Redactor>,
    /// The program that supervises server processes, if any: see [`stdio::Command::supervisor`].
    ///
    /// [`stdio::Command::supervisor`]: wharf_mcp::stdio::Command::supervisor
    pub supervisor: Option<PathBuf>,
    /// The servers built into the program, if any.
    pub builtins: Option<Arc<dyn Builtins>>,
    /// Limits the number of server processes.
    pub processes: ProcessLimit,
    /// Packages and images that are being downloaded or known to be present.
    pub installs: Installs,
    /// Recorded servers that answer in place of the real ones, if calls are replayed.
    pub recorded: Option<Arc<dyn RecordedServers>>,
    /// Faults to inject into calls, if any.
    pub faults: Option<Arc<FaultInjection>>,
}

/// Default timeout for connecting to a remote server.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

impl UpstreamContext {
    /// Creates a context for library users: working directories in `scratch`, which is created if necessary; no
    /// credentials, built-in servers or supervisor; no redaction.
    pub fn plain(scratch: impl Into<PathBuf>) -> Result<UpstreamContext, Failure> {
        Ok(UpstreamContext {
            scratch: scratch.into(),
            http: HttpClient::with_egress(EgressPolicy::wide(), DEFAULT_CONNECT_TIMEOUT)?,
            credentials: None,
            redactor: Arc::new(Redactor::default()),
            supervisor: None,
            builtins: None,
            processes: ProcessLimit::default(),
            installs: Installs::default(),
            recorded: None,
            faults: None,
        })
    }
}

/// Creates a host that answers the requests of a source with this consent.
pub(crate) fn source_host(
    source: &Arc<Source>,
    consent: Arc<dyn Consent>,
) -> Arc<dyn wharf_mcp::session::Host> {
    Arc::new(host::SourceHost::new(source.clone(), consent))
}

/// Opens the servers built into the program, which this crate does not know.
pub trait Builtins: std::fmt::Debug + Send + Sync {
    /// Returns the opener of a built-in server.
    fn opener(&self, builtin: Builtin) -> Box<dyn Opener>;
}

/// A source with the context needed to connect to it.
#[derive(Clone, Debug)]
pub struct Upstream {
    source: Arc<Source>,
    context: UpstreamContext,
    /// Tokens of sign-ins without a user. They are not stored, because wharf can get new ones.
    tokens: Arc<MemoryStore>,
}

/// An open session with an upstream. It ends when it is closed or when the last clone of `session` is dropped.
#[derive(Debug)]
pub struct UpstreamSession {
    /// Sends requests to the server.
    pub session: Session,
    /// Notifications from the server.
    pub news: NewsFeed,
    /// Time that connecting took.
    pub took: Duration,
    task: SessionTask,
    /// The server's working directory, removed with it.
    working_directory: Option<WorkingDirectory>,
    /// The process slot, for a server that runs as a process.
    slot: Option<ProcessSlot>,
}

/// Context of one connect attempt.
#[derive(Debug, Default)]
pub(crate) struct ConnectAttempt {
    /// Status that the process and its downloads are reported to.
    pub(crate) publisher: Option<Arc<StatusPublisher>>,
    /// Protocol era to try first or to require, unless the entry requires one.
    pub(crate) era: Option<EraHint>,
    /// Becomes true when the connection is no longer needed.
    pub(crate) quit: Option<watch::Receiver<bool>>,
}

impl ConnectAttempt {
    fn observer(&self) -> Option<Arc<dyn ProcessObserver>> {
        self.publisher.clone().map(|it| it as Arc<dyn ProcessObserver>)
    }

    /// Returns whether the connection is no longer needed.
    fn is_cancelled(&self) -> bool {
        self.quit.as_ref().is_some_and(|it| *it.borrow())
    }

    /// Completes when the connection is no longer needed.
    async fn cancelled(&self) {
        match self.quit.clone() {
            Some(mut quit) => drop(quit.wait_for(|quit| *quit).await),
            None => std::future::pending().await,
        }
    }
}

/// Parts of a session that have to be cleaned up after its end.
#[derive(Debug)]
pub(crate) struct SessionCleanup {
    task: SessionTask,
    working_directory: Option<WorkingDirectory>,
    slot: Option<ProcessSlot>,
}

impl Upstream {
    /// Creates an upstream for a source.
    pub fn new(source: Arc<Source>, context: UpstreamContext) -> Upstream {
        Upstream { source, context, tokens: Arc::default() }
    }

    /// Returns the configuration of the source.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.context.redactor
    }

    /// Starts or contacts the server and negotiates the protocol.
    pub fn connect(&self, consent: Arc<dyn Consent>) -> RuntimeFuture<'_, Result<UpstreamSession, Fault>> {
        Box::pin(self.connect_attempt(consent, ConnectAttempt::default()))
    }

    /// Connects with knowledge of the previous session and a status to report to.
    pub(crate) async fn connect_attempt(
        &self,
        consent: Arc<dyn Consent>,
        connect_attempt: ConnectAttempt,
    ) -> Result<UpstreamSession, Fault> {
        let opened =
            opener::open(&self.source, &self.context, Some(&self.tokens), connect_attempt.observer());
        let (opener, working_directory) = opened.map_err(|it| self.fault(&it))?;
        let opener = self.with_faults(opener, &connect_attempt);
        let slot = match opener.starts_process() {
            true => Some(self.context.processes.take().ok_or_else(|| self.process_limit_reached())?),
            false => None,
        };
        // A download does not count towards the connect timeout, which starts when the server is started.
        if self.context.recorded.is_none() {
            let installed = install::ensure_installed(&self.source, &self.context, &connect_attempt).await;
            installed.map_err(|it| self.fault(&it))?;
        }
        let started = Instant::now();
        let mut options = Options { quit: connect_attempt.quit.clone(), ..self.options(consent) };
        if let (EraHint::Auto, Some(era)) = (options.era, connect_attempt.era) {
            options.era = era;
        }
        let connected = match Session::connect(&*opener, &options).await {
            Ok(connected) => connected,
            Err(failure) => {
                install::clean_up_after_failure(&self.source, &self.context, &connect_attempt, &failure)
                    .await;
                return Err(self.fault(&failure));
            }
        };
        let Connected { session, task, news } = connected;
        let opened =
            UpstreamSession { session, news, took: started.elapsed(), task, working_directory, slot };
        match self.package_fault(&connect_attempt).await {
            None => Ok(opened),
            Some(fault) => {
                opened.close().await;
                Err(fault)
            }
        }
    }

    /// Injects faults into the links of an opener, if there are any.
    fn with_faults(&self, opener: Box<dyn Opener>, connect_attempt: &ConnectAttempt) -> Box<dyn Opener> {
        let Some(injection) = self.context.faults.clone() else { return opener };
        let (source, publisher) = (self.source.name.expose().to_owned(), connect_attempt.publisher.clone());
        Box::new(FaultyOpener::new(opener, Arc::new(SourceFaults { source, injection, publisher })))
    }

    /// Compares the package of the running server with the lock. Returns a fault if it must not be used.
    async fn package_fault(&self, connect_attempt: &ConnectAttempt) -> Option<Fault> {
        let locked = self.source.package.as_ref().filter(|_| self.context.recorded.is_none())?;
        let process = connect_attempt.publisher.as_ref().and_then(|it| it.status().0.pid);
        let found = installed_package(&self.source, process).await?;
        let name = self.source.name.shown();
        let has_other_dependencies = has_other_dependencies(locked, &found);
        if has_other_dependencies {
            tracing::info!(target: "wharf::lock", source = name, "the dependencies differ from wharf.lock");
            if let Some(publisher) = &connect_attempt.publisher {
                publisher.publish(EventKind::DependenciesChanged);
            }
        }
        let is_enforced = self.source.lock.dependencies == DependencyCheck::Enforce;
        let why = integrity_mismatch(locked, &found).or_else(|| {
            (has_other_dependencies && is_enforced).then(|| "its dependencies are others".to_owned())
        })?;
        let cause = format!("the package of `{name}` differs from wharf.lock: {why}");
        if self.source.lock.mode != LockMode::Enforce {
            tracing::warn!(target: "wharf::lock", source = name, "{cause}");
            return None;
        }
        let hint = format!("review it with `wharf lock --diff {name}`, then `wharf lock {name} --accept`");
        let fault = Fault::local(FaultKind::LockMismatch, Stage::Resolve, cause, Some(hint));
        Some(Fault::with_source(&self.source, fault))
    }

    /// Builds the fault for reaching the process limit.
    fn process_limit_reached(&self) -> Fault {
        Fault::with_source(&self.source, Fault::process_limit_reached(self.context.processes.limit()))
    }

    /// Converts a failure of this upstream into a fault in the user's words.
    pub fn fault(&self, failure: &Failure) -> Fault {
        let rpc = failure.rpc.as_ref().filter(|_| self.context.recorded.is_some());
        if let Some(fault) = rpc.and_then(|it| read_fault(&self.source, it)) {
            return fault;
        }
        Fault::of(&self.source, failure, &self.context.redactor)
    }

    /// Applies the caller's metadata, consent, log level and input to a request, as far as this source allows.
    pub(crate) fn on_behalf(&self, mut request: Request, caller: &Caller) -> Request {
        let Caller {
            meta,
            retries_with_input,
            input,
            consent,
            audience,
            logs,
            tasks,
            task_params,
            takes_requests: _,
        } = caller;
        // If the entry configures roots, the runtime answers for them and therefore has to handle the other input
        // requests too.
        let has_roots = !self.source.roots.is_empty();
        request = request.single_round(*retries_with_input && !has_roots).tasks(*tasks);
        if let Some(task_params) = task_params {
            request = request.task_params(task_params.clone());
        }
        if let Some(meta) = meta {
            request = request.meta(if has_roots { host::with_roots(meta) } else { meta.clone() });
        }
        if let Some(consent) = consent {
            request = request.host(Arc::new(host::SourceHost::new(self.source.clone(), consent.clone())));
        }
        request = request.audience(audience.clone());
        if let Some(logs) = logs {
            request = request.logs(logs.level, logs.explicit, self.redacting_log(&logs.on_log));
        }
        match input {
            Some(input) => request.input(input.clone()),
            None => request,
        }
    }

    /// Wraps a log callback so that it receives redacted messages.
    fn redacting_log(&self, on_log: &OnLog) -> OnLog {
        let (on_log, redactor) = (on_log.clone(), self.context.redactor.clone());
        Arc::new(move |line: &Raw| {
            let shown = redactor.redact(line.as_str());
            if shown == line.as_str() {
                return on_log(line);
            }
            // Redaction only changes strings. If the output is not valid JSON, the message is dropped.
            if let Ok(line) = Raw::parse(shown) {
                on_log(&line);
            }
        })
    }

    fn options(&self, consent: Arc<dyn Consent>) -> Options {
        let Source { timeouts, era, .. } = &*self.source;
        let client = ClientInfo { name: "wharf".into(), version: env!("CARGO_PKG_VERSION").into() };
        Options {
            host: Arc::new(host::SourceHost::new(self.source.clone(), consent)),
            era: match era {
                EraChoice::Auto => EraHint::Auto,
                EraChoice::Legacy => EraHint::Only(Era::Legacy),
                EraChoice::Modern => EraHint::Only(Era::Modern),
            },
            connect_timeout: timeouts.connect,
            request_timeout: timeouts.request,
            extra_meta: self.source.config.as_ref().map(host::config_meta),
            ..Options::new(client)
        }
    }
}

impl UpstreamSession {
    /// Splits into the session, its notifications, and the cleanup left to the owner.
    pub(crate) fn split(self) -> (Session, NewsFeed, SessionCleanup) {
        let UpstreamSession { session, news, task, working_directory, slot, .. } = self;
        (session, news, SessionCleanup { task, working_directory, slot })
    }

    /// Closes the session and waits until the server has ended.
    pub async fn close(self) -> Arc<Disconnect> {
        let (session, _, cleanup) = self.split();
        drop(session);
        cleanup.session_finished().await
    }
}

impl SessionCleanup {
    /// Waits until the session has ended and its server has been cleaned up.
    pub(crate) async fn session_finished(self) -> Arc<Disconnect> {
        let disconnect = self.task.join().await;
        drop((self.working_directory, self.slot));
        disconnect
    }
}
