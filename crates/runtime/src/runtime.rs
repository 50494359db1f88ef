//! Owns everything that runs: one active source per configured source, the catalog writer and the observers.
//!
//! [`Runtime::start`] starts them. [`Runtime::shutdown`] stops them and waits until every task has ended. Other code
//! holds a [`Handle`], which may outlive the runtime: its calls are then rejected.

mod results;

use crate::{
    Fault, FaultKind,
    active_source::{ActiveSource, SourceState},
    active_sources::ActiveSources,
    call::{Call, CallRecord, Caller, Deadline},
    catalog::{BlockReason, Catalog, DisabledTools, Discovery, ToolEntry, UnavailableSources},
    catalog_writer::CatalogWriter,
    circuit_breaker::{BreakerState, BreakerTransition},
    consent::Consent,
    events::{AbandonedCalls, EventBus, Events},
    executor::{Executor, InFlight},
    fault::Stage,
    lock::{AcceptedDefinitions, LockState},
    options::RuntimeOptions,
    root_changes::RootChanges,
    running_calls::{RunningCall, RunningCalls},
    runtime_future::{RawFuture, RuntimeFuture},
    shutdown_stage::ShutdownStage,
    source_request::{Method, SourceRequest},
    upstream::UpstreamContext,
};
use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time,
};
use wharf_config::{LockFile, Plan, Source};
use wharf_mcp::{
    Raw,
    session::{List, TaskOperation},
};

/// Time that calls in flight get to end after the runtime has aborted them.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum time that a prompt request waits for starting servers, one of which may offer the prompt.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// Owns the running sources and their tasks.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    options: RuntimeOptions,
    closing: watch::Sender<ShutdownStage>,
    refresh_needed: Arc<Notify>,
    /// The current sources. The catalog writer reads them from here and ends when this sender is dropped.
    sources: watch::Sender<ActiveSources>,
    tasks: Mutex<JoinSet<()>>,
    observers: JoinSet<()>,
}

/// Calls tools and reads the state of the runtime. Clones share one runtime.
#[derive(Clone, Debug)]
pub struct Handle {
    executor: Arc<Executor>,
}

/// Lists which sources started, stopped or stayed when a plan was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanChanges {
    /// Sources that are new or changed.
    pub started: Vec<String>,
    /// Sources that were removed or changed.
    pub stopped: Vec<String>,
    /// Unchanged sources. Their calls in flight continue.
    pub kept: Vec<String>,
}

impl Runtime {
    /// Starts the sources of a plan. Returns immediately; all sources connect in the background, in parallel.
    pub fn start(plan: &Plan, context: &UpstreamContext, options: RuntimeOptions) -> Runtime {
        let (catalog_writer, catalog) = watch::channel(Arc::new(Catalog::default()));
        let (closing, closed) = watch::channel(ShutdownStage::Open);
        let (sources, active_sources) = watch::channel(ActiveSources::default());
        let refresh_needed = Arc::<Notify>::default();
        let (disabled_tools, disabled_changes) = watch::channel(Arc::<DisabledTools>::default());
        let (lock, lock_changes) = watch::channel(Arc::<LockState>::default());
        let (lists, retries) = (options.lists.clone(), options.background_retries);
        let task = CatalogWriter::new(
            catalog_writer,
            active_sources.clone(),
            refresh_needed.clone(),
            disabled_changes,
            lock_changes,
            lists,
            retries,
        );
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run());
        let bus = EventBus::default();
        let observers = observe(&options, &bus, &closed);
        let in_flight = InFlight::default();
        let (unavailable_sources, _) = watch::channel(Arc::<UnavailableSources>::default());
        let root_changes = Arc::new(RootChanges::new(options.consent.clone()));
        let options = RuntimeOptions { consent: root_changes.clone(), ..options };
        let executor = Executor {
            catalog,
            sources: active_sources,
            disabled_tools,
            lock,
            recorder: options.recorder.clone(),
            results: OnceLock::new(),
            unavailable_sources,
            closing: closed,
            bus,
            in_flight,
            running_calls: RunningCalls::default(),
            root_changes,
        };
        let handle = Handle { executor: Arc::new(executor) };
        let tasks = Mutex::new(tasks);
        let runtime = Runtime { handle, options, closing, refresh_needed, sources, tasks, observers };
        runtime.apply(plan, context);
        runtime
    }

    /// Returns a handle to this runtime.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Switches to another plan. Unchanged sources keep running without interruption.
    pub fn apply(&self, plan: &Plan, context: &UpstreamContext) -> PlanChanges {
        let mut applied = PlanChanges::default();
        self.handle.set_lock_file(plan.lock.clone());
        self.sources.send_modify(|sources| self.change(sources, plan, context, &mut applied));
        applied
    }

    fn change(
        &self,
        sources: &mut ActiveSources,
        plan: &Plan,
        context: &UpstreamContext,
        applied: &mut PlanChanges,
    ) {
        let mut before = std::mem::take(&mut sources.active_sources);
        sources.edition += 1;
        for source in &plan.sources {
            let name = source.name.shown().to_owned();
            let same = before.iter().position(|it| **it.source() == *source);
            sources.active_sources.push(match same {
                Some(at) => {
                    applied.kept.push(name);
                    before.remove(at)
                }
                None => {
                    applied.started.push(name);
                    self.start_source(source, context)
                }
            });
        }
        for active_source in before {
            applied.stopped.push(active_source.source().name.shown().to_owned());
            active_source.stop();
        }
    }

    fn start_source(&self, source: &Source, context: &UpstreamContext) -> Arc<ActiveSource> {
        let bus = self.handle.executor.bus.clone();
        let (active_source, task) = ActiveSource::new(
            Arc::new(source.clone()),
            context,
            &self.options,
            bus,
            self.refresh_needed.clone(),
        );
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
        drop(tasks);
        active_source
    }

    /// Rejects new calls and waits until no call is in flight, at most for `grace`.
    pub async fn drain(&self, grace: Duration) {
        self.closing.send_replace(ShutdownStage::Draining);
        let _ = time::timeout(grace, self.handle.executor.in_flight.none()).await;
    }

    /// Shuts down: rejects new calls, gives calls in flight `grace` to finish, aborts the rest, then stops every
    /// server.
    pub async fn shutdown(self, grace: Duration) {
        let Runtime { handle, closing, sources, tasks, mut observers, .. } = self;
        closing.send_replace(ShutdownStage::Draining);
        let in_flight = &handle.executor.in_flight;
        if time::timeout(grace, in_flight.none()).await.is_err() {
            closing.send_replace(ShutdownStage::Over);
            // A caller that no longer polls its call does not notice the abort, so this wait needs a timeout too.
            let _ = time::timeout(ABORT_TIMEOUT, in_flight.none()).await;
        }
        sources.borrow().active_sources.iter().for_each(|it| it.stop());
        drop(sources);
        let mut tasks = tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
        while tasks.join_next().await.is_some() {}
        closing.send_replace(ShutdownStage::Gone);
        while observers.join_next().await.is_some() {}
    }
}

impl Handle {
    /// Calls a tool. Every call produces a record that contains its outcome.
    pub fn call(&self, call: Call) -> RuntimeFuture<'_, Arc<CallRecord>> {
        Box::pin(self.executor.execute(call))
    }

    /// Returns the current snapshot of everything the sources offer.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.executor.catalog.borrow().clone()
    }

    /// Returns the tools of all sources.
    pub fn tools(&self) -> Vec<Arc<ToolEntry>> {
        self.catalog().tools.clone()
    }

    /// Returns a receiver for the current catalog and every later one.
    pub fn catalogs(&self) -> watch::Receiver<Arc<Catalog>> {
        self.executor.catalog.clone()
    }

    /// Waits until every source that is listed at startup has been listed or has failed.
    pub async fn settled(&self) -> Arc<Catalog> {
        self.executor.catalog_when(Catalog::is_settled).await
    }

    /// Gets a prompt. Returns the server's `GetPromptResult` unchanged. The metadata and consent of `caller` apply to
    /// the request, here and in [`Handle::read`] and [`Handle::ask`].
    pub fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<&'a Raw>,
        caller: Option<&'a Caller>,
    ) -> RawFuture<'a> {
        let prompt = self.get_prompt(name, arguments, caller);
        Box::pin(async { self.executor.run_until_shutdown(pin!(prompt)).await })
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Option<&Raw>,
        caller: Option<&Caller>,
    ) -> Result<Raw, Arc<Fault>> {
        let by = Deadline::after(Some(PROMPT_TIMEOUT));
        let known = |it: &Catalog| it.prompt(name).is_some() || it.is_settled();
        let catalog = by.wait(pin!(self.executor.catalog_when(known))).await;
        let catalog = catalog.ok_or_else(|| Arc::new(Fault::deadline_exceeded()))?;
        let prompt = catalog.prompt(name).ok_or_else(|| {
            let cause = format!("there is no prompt '{name}'");
            not_found(cause, "`wharf prompts` lists all prompts")
        })?;
        let active_source = self.executor.active_source(&prompt.config)?;
        let permit = active_source.admit_by(by).await?;
        let ask = SourceRequest::new(Method::Prompt(&prompt.prompt.name, arguments), caller);
        self.executor.ask_recorded(&active_source, permit, ask).await
    }

    /// Sends any other MCP request to one source, for example `completion/complete`.
    pub async fn ask(
        &self,
        source: &str,
        method: &str,
        params: Option<&Raw>,
        caller: Option<&Caller>,
    ) -> Result<Raw, Arc<Fault>> {
        self.ask_source(source, SourceRequest::new(Method::Other(method, params), caller)).await
    }

    /// Reads a resource of one source. Returns the server's `ReadResourceResult` unchanged.
    pub async fn read(&self, source: &str, uri: &str, caller: Option<&Caller>) -> Result<Raw, Arc<Fault>> {
        self.ask_source(source, SourceRequest::new(Method::Resource(uri), caller)).await
    }

    /// Runs an operation on a task of one source. Tasks have the form of 2026-07-28, whatever the era of the server.
    pub async fn task(
        &self,
        source: &str,
        operation: TaskOperation,
        id: &str,
        caller: Option<&Caller>,
    ) -> Result<Raw, Arc<Fault>> {
        self.ask_source(source, SourceRequest::new(Method::Task(operation, id), caller)).await
    }

    /// Tells every server of the handshake era that the roots of a client have changed. `reporter` answers for that
    /// client if a server then asks for the roots outside any call.
    pub async fn roots_changed(&self, reporter: Arc<dyn Consent>) {
        let sources = self.executor.sources.borrow().clone();
        self.executor.root_changes.forward(reporter, sources).await;
    }

    /// Replaces the set of resources whose updates this source reports. Also applies to sessions opened later.
    /// Updates arrive as [`EventKind::ResourceUpdated`](crate::EventKind::ResourceUpdated).
    pub fn watch(&self, source: &str, uris: BTreeSet<String>) -> Result<(), Arc<Fault>> {
        self.active_source(source).map(|it| it.watch(uris))
    }

    /// Waits until the subscription to a watched resource is active. Starts the server if necessary.
    pub async fn is_watching(&self, source: &str, uri: &str) -> Result<(), Arc<Fault>> {
        let active_source = self.active_source(source)?;
        self.executor.run_until_shutdown(pin!(active_source.is_watching(uri))).await
    }

    fn ask_source<'a>(&'a self, source: &'a str, ask: SourceRequest<'a>) -> RawFuture<'a> {
        let work = async move {
            let active_source = self.active_source(source)?;
            let permit = active_source.admit().await?;
            self.executor.ask_recorded(&active_source, permit, ask).await
        };
        Box::pin(async { self.executor.run_until_shutdown(pin!(work)).await })
    }

    /// Returns the state of every source, in the order of the plan.
    pub fn sources(&self) -> Vec<SourceState> {
        self.executor.sources.borrow().active_sources.iter().map(|it| it.state()).collect()
    }

    /// Reads the lists of a source again and waits until that is done.
    pub async fn refresh(&self, source: &str) -> Result<Arc<Catalog>, Arc<Fault>> {
        let active_source = self.active_source(source)?;
        self.executor.refresh(&active_source).await;
        Ok(self.catalog())
    }

    /// Schedules a refresh of `list` for every source whose cached list has exceeded the lifetime the server
    /// declared.
    pub fn refresh_expired(&self, list: List) {
        let catalog = self.catalog();
        let over = catalog.listings.iter().filter(|it| it.fresh.get(list).is_some_and(|it| it.is_over()));
        let active_sources = over.filter_map(|it| self.executor.active_source(&it.source).ok());
        active_sources.for_each(|it| it.lists_to_refresh().mark(list));
    }

    /// Retires the session of a source and resets its circuit breaker. The next call starts a new server.
    pub fn restart(&self, source: &str) -> Result<(), Arc<Fault>> {
        self.active_source(source).map(|it| it.restart())
    }

    /// Closes the circuit breaker of a source.
    pub fn reset_breaker(&self, source: &str) -> Result<(), Arc<Fault>> {
        self.active_source(source).map(|it| it.circuit_breaker().reset())
    }

    /// Returns the latest changes of a source's circuit breaker, oldest first. Empty for an unknown source.
    pub fn breaker_transitions(&self, source: &str) -> Vec<BreakerTransition> {
        self.active_source(source).map(|it| it.circuit_breaker().transitions()).unwrap_or_default()
    }

    /// Waits until this source has been listed or has failed. Returns immediately for an unknown source.
    pub async fn wait_for_source(&self, source: &str) -> Arc<Catalog> {
        let is_listed = |it: &Catalog| !matches!(it.discovery(source), Some(Discovery::Pending));
        self.executor.catalog_when(is_listed).await
    }

    /// Replaces the set of unusable sources. Calls to them fail with the given fault. None of them is in the plan.
    pub fn set_unavailable_sources(&self, unavailable_sources: UnavailableSources) {
        self.executor.unavailable_sources.send_replace(Arc::new(unavailable_sources));
    }

    /// Returns the fault of the unusable source that this name of a tool refers to, if any.
    pub fn unavailable_source(&self, tool: &str) -> Option<Arc<Fault>> {
        self.executor.unavailable_fault(tool)
    }

    /// Adopts the breaker state that another replica has determined for this source. Does not notify the coordinator,
    /// which coordinates breakers between replicas.
    pub fn follow(&self, source: &str, breaker: BreakerState) -> Result<(), Arc<Fault>> {
        self.active_source(source).map(|it| it.adopt_breaker_state(breaker))
    }

    /// Returns the tools that operators have disabled.
    pub fn disabled_tools(&self) -> DisabledTools {
        (**self.executor.disabled_tools.borrow()).clone()
    }

    /// Replaces the set of disabled tools. The set may contain tools that have not been listed yet.
    pub fn set_disabled_tools(&self, tools: DisabledTools) {
        self.executor.disabled_tools.send_replace(Arc::new(tools));
    }

    /// Disables one tool (`source:tool`) with a reason, or enables it again. Returns when the catalog shows the
    /// change.
    pub async fn set_tool_disabled(&self, tool_id: &str, off: Option<String>) {
        self.executor.disabled_tools.send_modify(|it| {
            let tools = Arc::make_mut(it);
            match off.clone() {
                Some(reason) => _ = tools.insert(tool_id.to_owned(), reason),
                None => _ = tools.remove(tool_id),
            }
        });
        let shows_change = |it: &Catalog| {
            it.tool(tool_id).is_none_or(|it| match &it.blocked {
                Some(BlockReason::SwitchedOff(reason)) => off.as_ref() == Some(reason),
                _ => off.is_none(),
            })
        };
        self.executor.catalog_when(shows_change).await;
    }

    /// Returns the lock and the accepted definitions.
    pub fn lock(&self) -> Arc<LockState> {
        self.executor.lock.borrow().clone()
    }

    /// Replaces the lock file. The catalog shows the change soon after.
    fn set_lock_file(&self, file: Option<Arc<LockFile>>) {
        self.executor.lock.send_if_modified(|it| {
            let is_new = it.file != file;
            if is_new {
                *it = Arc::new(LockState::new(file, it.accepted.clone()));
            }
            is_new
        });
    }

    /// Replaces the definitions that operators have accepted. The catalog shows the change soon after.
    pub fn set_accepted_definitions(&self, accepted: AcceptedDefinitions) {
        self.executor
            .lock
            .send_modify(|it| *it = Arc::new(LockState::new(it.file.clone(), Arc::new(accepted))));
    }

    /// Waits for a catalog that is newer than this revision.
    pub async fn catalog_after(&self, revision: u64) -> Arc<Catalog> {
        self.executor.catalog_when(|it| it.revision > revision).await
    }

    /// Subscribes to all events from now on.
    pub fn events(&self) -> Events {
        self.executor.bus.subscribe(self.executor.closing.clone())
    }

    /// Subscribes to events from now on, without progress and without calls, except calls abandoned by their callers.
    /// Prefer this over [`Handle::events`] where it is enough: it costs nothing while calls succeed.
    pub fn changes(&self) -> Events {
        self.executor.bus.subscribe_to_changes(self.executor.closing.clone())
    }

    /// Subscribes to abandoned calls: calls whose callers disconnect before the result. Unlike [`Handle::changes`],
    /// it never drops a record when the listener is slow. Only the first subscriber receives them.
    pub fn abandoned_calls(&self) -> AbandonedCalls {
        self.executor.bus.subscribe_to_abandoned(self.executor.closing.clone())
    }

    /// Returns the number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.executor.in_flight.count()
    }

    /// Returns the calls in flight whose tool is known, the oldest first.
    pub fn running_calls(&self) -> Vec<Arc<RunningCall>> {
        self.executor.running_calls.list()
    }

    /// Cancels a call in flight. Its caller gets a fault of the kind [`FaultKind::Abandoned`]. Returns whether there was
    /// such a call.
    pub fn cancel_call(&self, request_id: &str) -> bool {
        self.executor.running_calls.cancel(request_id)
    }

    fn active_source(&self, source: &str) -> Result<Arc<ActiveSource>, Arc<Fault>> {
        let found = self.executor.sources.borrow().named(source).cloned();
        found.ok_or_else(|| {
            not_found(format!("there is no source '{source}'"), "`wharf tools` lists all tools")
        })
    }
}

/// Spawns one task per observer, so that a slow observer does not delay the others. Each task ends after it has
/// delivered the last event.
fn observe(options: &RuntimeOptions, bus: &EventBus, closed: &watch::Receiver<ShutdownStage>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for observer in options.observers.clone() {
        let mut events = bus.subscribe(closed.clone());
        tasks.spawn(async move {
            while let Some(event) = events.next().await {
                observer.on_event(&event);
            }
        });
    }
    tasks
}

fn not_found(cause: String, hint: &str) -> Arc<Fault> {
    Arc::new(Fault::local(FaultKind::ToolNotFound, Stage::Resolve, cause, Some(hint.to_owned())))
}
