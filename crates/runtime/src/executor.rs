//! Runs one call: resolve the tool, check the arguments, get a permit, send the request, settle the permit, write the
//! record.
//!
//! Does not own sessions or breakers, which belong to the active source, and does not write the catalog.

mod record_builder;
mod recorded_requests;
mod request_ids;
mod resolve;
mod result_handles;

use crate::{
    Fault, FaultKind,
    active_source::ActiveSource,
    active_sources::ActiveSources,
    argument_schema::{ArgumentError, Check},
    call::{Call, CallRecord, Deadline, Outcome},
    cassette::Recorder,
    catalog::{BlockReason, Catalog, DisabledTools, QuarantineCause, ToolEntry, UnavailableSources},
    events::EventBus,
    fault::Stage,
    lock::{LockState, describe_mismatch, review_hint},
    result_handle::{ResultHandles, ResultTool},
    root_changes::RootChanges,
    running_calls::RunningCalls,
    shutdown_stage::ShutdownStage,
    source_request::SourceRequest,
};
use record_builder::CallRecordBuilder;
use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::{Notify, watch};
use wharf_config::Source;
use wharf_mcp::{Raw, RpcError};

/// Runs calls and holds the state that they share.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) catalog: watch::Receiver<Arc<Catalog>>,
    /// The current sources. May be newer than the catalog.
    pub(crate) sources: watch::Receiver<ActiveSources>,
    /// Tools that operators have disabled. The catalog writer marks them in the catalog.
    pub(crate) disabled_tools: watch::Sender<Arc<DisabledTools>>,
    /// The lock and the accepted definitions. The catalog writer compares the tools with it.
    pub(crate) lock: watch::Sender<Arc<LockState>>,
    /// Records the calls, if wanted.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// Faults to return for calls to sources that cannot be used.
    pub(crate) unavailable_sources: watch::Sender<Arc<UnavailableSources>>,
    pub(crate) closing: watch::Receiver<ShutdownStage>,
    pub(crate) bus: EventBus,
    pub(crate) in_flight: InFlight,
    pub(crate) running_calls: RunningCalls,
    /// Stores large results, if wanted.
    pub(crate) results: OnceLock<Arc<ResultHandles>>,
    /// The clients' changes of their roots.
    pub(crate) root_changes: Arc<RootChanges>,
}

/// Counts the calls in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    count: AtomicUsize,
    none: Notify,
}

impl Executor {
    /// Runs a call. Always produces a record, even if the caller drops the future.
    pub(crate) async fn execute(&self, mut call: Call) -> Arc<CallRecord> {
        let mut record_builder = CallRecordBuilder::new(self.bus.clone(), &self.running_calls, &call);
        let running = record_builder.running().clone();
        // Pinned here to pass a pointer: a future moved by value would be stored twice.
        let result = self
            .run_until_shutdown(pin!(running.run(pin!(self.attempt(&mut call, &mut record_builder)))))
            .await;
        let outcome = result.map_or_else(Outcome::Failed, Outcome::of);
        if let (Some(settings), Outcome::Answered(result)) =
            (self.storing(&record_builder, &outcome), &outcome)
        {
            // Boxed, so that the future of the usual call stays small.
            let handle = Box::pin(self.store_result(&record_builder, result, &settings)).await;
            record_builder.set_handle(handle);
        }
        record_builder.finish(outcome)
    }

    /// Runs `work` unless the runtime is shutting down; aborts it when the grace period ends.
    pub(crate) async fn run_until_shutdown<T>(
        &self,
        work: impl Future<Output = Result<T, Arc<Fault>>>,
    ) -> Result<T, Arc<Fault>> {
        let _guard = self.in_flight.enter();
        if *self.closing.borrow() != ShutdownStage::Open {
            return Err(Arc::new(Fault::closing()));
        }
        tokio::select! {
            biased;
            () = self.grace_period_over() => Err(Arc::new(Fault::aborted())),
            result = work => result,
        }
    }

    async fn attempt(
        &self,
        call: &mut Call,
        record_builder: &mut CallRecordBuilder,
    ) -> Result<Raw, Arc<Fault>> {
        let by = Deadline::after(call.timeout);
        if let Some(own) = ResultTool::find(&call.tool)
            && let Some(handles) = self.result_handles_for(call.via)
        {
            record_builder.set_own_tool(own);
            let read = self.read_stored(own, result_handles::owner(call), call.arguments.as_ref(), handles);
            return Box::pin(read).await;
        }
        let recording = self.recorder.as_ref().map(|it| (it, it.start(&conversation_or_client(call))));
        let resolved = by.wait(pin!(self.resolve(&call.tool))).await;
        let tool = resolved.unwrap_or_else(|| Err(Arc::new(Fault::deadline_exceeded())))?;
        let active_source = self.active_source(tool.config())?;
        record_builder.set_tool(&tool, &active_source);
        check_enabled(&tool)?;
        if self.passes_results(&tool, call) {
            // Boxed, so that the future of the usual call stays small.
            record_builder.set_passed(Box::pin(self.pass_results(&tool, call)).await?);
        }
        record_builder.unchecked(check(&tool, call.arguments.as_ref())?);
        if let Some(arguments) = tool.server_arguments(call.arguments.as_ref()) {
            call.arguments = Some(arguments);
        }
        let permit = active_source.admit_by(by).await?;
        let running = record_builder.running();
        running.admitted();
        record_builder.publish_progress(call);
        let (host, questions) = match &recording {
            Some(_) => self.remember_questions(tool.config(), call),
            None => (None, None),
        };
        let ask = SourceRequest { running: Some(running), host, ..SourceRequest::tool(&tool, call, by) };
        let answer = active_source.ask(permit, ask).await;
        if let Some((recorder, position)) = recording {
            let asked = questions.map(|it| it.take()).unwrap_or_default();
            let names = (&*tool.source, &*tool.wire_name);
            recorder.finish(position, names, call.arguments.as_ref(), &answer, asked);
        }
        match answer {
            Err(fault) if is_unknown_tool(&fault) => {
                Err(Box::pin(self.fault_after_refresh(&tool, &active_source, fault, by)).await)
            }
            answer => answer,
        }
    }

    /// Returns the active source of a catalog entry. Fails if the source has been stopped since.
    pub(crate) fn active_source(&self, config: &Arc<Source>) -> Result<Arc<ActiveSource>, Arc<Fault>> {
        self.sources.borrow().find(config).cloned().ok_or_else(|| Arc::new(Fault::closing()))
    }

    /// Handles a server that does not know a tool it has listed. Lists the tools again: if the tool is still listed,
    /// the original fault applies, otherwise the tool was removed.
    async fn fault_after_refresh(
        &self,
        tool: &ToolEntry,
        active_source: &ActiveSource,
        fault: Arc<Fault>,
        by: Deadline,
    ) -> Arc<Fault> {
        let _ = by.wait(pin!(self.refresh(active_source))).await;
        let catalog = self.catalog.borrow().clone();
        match catalog.tool(&tool.id()) {
            Some(_) => fault,
            None => {
                let hint =
                    Some("the server no longer has this tool; `wharf tools` lists all tools".to_owned());
                Arc::new(Fault { kind: FaultKind::ToolNotFound, hint, ..(*fault).clone() })
            }
        }
    }

    /// Reads the lists of a source again and waits until that is done.
    pub(crate) async fn refresh(&self, active_source: &ActiveSource) {
        let mut catalog = self.catalog.clone();
        let listing = |it: &Catalog| {
            it.listings.iter().find(|it| Arc::ptr_eq(&it.source, active_source.source())).map(|it| it.reads)
        };
        let reads = |it: &Arc<Catalog>| listing(it);
        let before = reads(&catalog.borrow_and_update());
        active_source.lists_to_refresh().request();
        // Fails if the catalog writer has ended; nothing will be read any more.
        let _ = catalog.wait_for(|it| reads(it) > before || reads(it).is_none()).await;
    }

    /// Waits for a catalog that includes all current sources and satisfies `wanted`.
    pub(crate) async fn catalog_when(&self, wanted: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
        let edition = self.sources.borrow().edition;
        let mut catalog = self.catalog.clone();
        match catalog.wait_for(|it| it.edition >= edition && wanted(it)).await {
            Ok(catalog) => catalog.clone(),
            // The catalog writer has ended, so the last catalog is final.
            Err(_) => self.catalog.borrow().clone(),
        }
    }

    async fn grace_period_over(&self) {
        let mut closing = self.closing.clone();
        // An error means that the runtime was dropped, which ends calls as well.
        let _ = closing.wait_for(|it| matches!(it, ShutdownStage::Over | ShutdownStage::Gone)).await;
    }
}

/// Returns what a recording names a conversation by: its id, or else the client.
fn conversation_or_client(call: &Call) -> String {
    let client = || {
        let audience = call.caller.as_ref().map(|it| &it.audience)?;
        Some(format!("{} {}", audience.principal.as_deref().unwrap_or_default(), audience.client?))
    };
    let principal = || call.principal.as_deref().map(str::to_owned);
    call.thread_id.clone().or_else(client).or_else(principal).unwrap_or_default()
}

/// Returns an error if an operator has disabled the tool, or if it differs from the lock.
fn check_enabled(tool: &ToolEntry) -> Result<(), Arc<Fault>> {
    let Some(reason) = &tool.blocked else { return Ok(()) };
    let (kind, cause, hint) = match reason {
        BlockReason::SwitchedOff(reason) => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let cause = format!("the tool `{}` is disabled{why}", tool.name);
            (FaultKind::Disabled, cause, "an operator can enable it again".to_owned())
        }
        BlockReason::LockMismatch(differences) => {
            let cause = format!("the tool `{}` {}", tool.name, describe_mismatch(tool.config(), differences));
            (FaultKind::LockMismatch, cause, review_hint(tool.config(), &tool.id()))
        }
    };
    let fault = Fault::local(kind, Stage::Resolve, cause, Some(hint));
    Err(Arc::new(Fault::with_source(tool.config(), fault)))
}

/// Checks the arguments against the tool's schema. Returns the reason if the check was skipped.
fn check(tool: &ToolEntry, arguments: Option<&Raw>) -> Result<Option<&'static str>, Arc<Fault>> {
    let Some(schema) = &tool.schema else { return Err(Arc::new(quarantined(tool))) };
    let empty = Raw::empty_object();
    let arguments = arguments.unwrap_or(&empty);
    let rejected = tool.mapping.as_ref().map(|it| it.rejected(arguments)).unwrap_or_default();
    if !rejected.is_empty() {
        return Err(invalid_arguments(tool, rejected));
    }
    let named = tool.resolve_aliases(arguments);
    match schema.check(named.as_ref().unwrap_or(arguments)) {
        Check::Valid => Ok(None),
        Check::Skipped(why) => Ok(Some(why)),
        Check::Invalid(problems) => Err(invalid_arguments(tool, problems)),
    }
}

fn invalid_arguments(tool: &ToolEntry, problems: Vec<ArgumentError>) -> Arc<Fault> {
    let all: Vec<String> = problems.iter().map(|it| format!("`{}` {}", it.path, it.message)).collect();
    let cause = format!("invalid arguments for `{}`: {}", tool.name, all.join("; "));
    let hint = Some(format!("`wharf tools {}` shows its parameters", tool.name));
    let fault = Fault::local(FaultKind::Arguments, Stage::Check, cause, hint);
    let fault = Fault { argument_errors: problems, ..fault };
    Arc::new(Fault::with_source(tool.config(), fault))
}

fn quarantined(tool: &ToolEntry) -> Fault {
    let why = tool.quarantined.as_ref().map_or("its definition is invalid", |it| &it.reason);
    let cause = format!("the tool `{}` is quarantined: {why}", tool.name);
    let hint = match tool.quarantined.as_ref().map(|it| it.cause) {
        Some(QuarantineCause::Override) => "change the override in agent.yaml",
        _ => "the server has to fix its schema",
    };
    let hint = Some(hint.to_owned());
    Fault::with_source(tool.config(), Fault::local(FaultKind::Quarantined, Stage::Resolve, cause, hint))
}

fn is_unknown_tool(fault: &Fault) -> bool {
    let unknown = |it: &RpcError| {
        let message = it.message.to_ascii_lowercase();
        matches!(it.code, RpcError::INVALID_PARAMS | RpcError::METHOD_NOT_FOUND)
            && message.contains("tool")
            && ["unknown", "not found", "no such", "does not exist"].iter().any(|word| message.contains(word))
    };
    fault.rpc.as_ref().is_some_and(unknown)
}

impl InFlight {
    fn enter(&self) -> InFlightGuard<'_> {
        self.count.fetch_add(1, Ordering::AcqRel);
        InFlightGuard(self)
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until no call is in flight.
    pub(crate) async fn none(&self) {
        loop {
            let none = self.none.notified();
            if self.count() == 0 {
                return;
            }
            none.await;
        }
    }
}

/// Counts one call in flight until it is dropped.
struct InFlightGuard<'a>(&'a InFlight);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}
