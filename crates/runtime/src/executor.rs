//! Runs one call: resolve the tool, check the arguments, get a permit, send the request, settle the permit, write the
//! record.
//!
//! Does not own sessions or breakers, which belong to the active source, and does not write the catalog.

mod record_builder;
mod request_ids;
mod resolve;

use crate::{
    Fault, FaultKind,
    active_source::{ActiveSource, SourceRequest},
    argument_schema::Check,
    call::{Call, CallRecord, Deadline, Outcome},
    catalog::{Catalog, DisabledTools, ToolEntry, UnavailableSources},
    catalog_writer::ActiveSources,
    circuit_breaker::Permit,
    events::EventBus,
    fault::Stage,
};
use record_builder::CallRecordBuilder;
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::{Notify, watch};
use wharf_mcp::{Raw, RpcError};

/// Stages of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownStage {
    /// Not shutting down.
    Open,
    /// New calls are rejected; calls in flight may finish.
    Draining,
    /// Calls still in flight are aborted.
    Over,
    /// All tasks have ended; no further events will follow.
    Gone,
}

/// Runs calls and holds the state that they share.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) catalog: watch::Receiver<Arc<Catalog>>,
    /// The current sources. May be newer than the catalog.
    pub(crate) sources: watch::Receiver<ActiveSources>,
    /// Tools that operators have disabled. The catalog writer marks them in the catalog.
    pub(crate) disabled_tools: watch::Sender<Arc<DisabledTools>>,
    /// Faults to return for calls to sources that cannot be used.
    pub(crate) unavailable_sources: watch::Sender<Arc<UnavailableSources>>,
    pub(crate) closing: watch::Receiver<ShutdownStage>,
    pub(crate) bus: EventBus,
    pub(crate) in_flight: InFlight,
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
        let mut record_builder = CallRecordBuilder::new(self.bus.clone(), &call);
        // Pinned here to pass a pointer: a future moved by value would be stored twice.
        let result = self.run_until_shutdown(pin!(self.attempt(&mut call, &mut record_builder))).await;
        record_builder.finish(result.map_or_else(Outcome::Failed, Outcome::of))
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
        let resolved = by.wait(pin!(self.resolve(&call.tool))).await;
        let tool = resolved.unwrap_or_else(|| Err(Arc::new(Fault::deadline_exceeded())))?;
        record_builder.set_tool(&tool);
        check_enabled(&tool)?;
        record_builder.unchecked(check(&tool, call.arguments.as_ref())?);
        let permit = tool.active_source().admit_by(by).await?;
        let answer = self.ask(&tool, permit, call, by, record_builder).await;
        match answer {
            Err(fault) if is_unknown_tool(&fault) => {
                Err(Box::pin(self.fault_after_refresh(&tool, fault, by)).await)
            }
            answer => answer,
        }
    }

    async fn ask(
        &self,
        tool: &ToolEntry,
        permit: Permit,
        call: &mut Call,
        by: Deadline,
        record_builder: &CallRecordBuilder,
    ) -> Result<Raw, Arc<Fault>> {
        record_builder.publish_progress(call);
        let ask = SourceRequest::tool(tool, call, by);
        tool.active_source().ask(permit, ask).await
    }

    /// Handles a server that does not know a tool it has listed. Lists the tools again: if the tool is still listed,
    /// the original fault applies, otherwise the tool was removed.
    async fn fault_after_refresh(&self, tool: &ToolEntry, fault: Arc<Fault>, by: Deadline) -> Arc<Fault> {
        let _ = by.wait(pin!(self.refresh(tool.active_source()))).await;
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
    pub(crate) async fn refresh(&self, active_source: &Arc<ActiveSource>) {
        let mut catalog = self.catalog.clone();
        let listing = |it: &Catalog| {
            it.listings.iter().find(|it| Arc::ptr_eq(&it.active_source, active_source)).map(|it| it.reads)
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

/// Returns an error if an operator has disabled the tool.
fn check_enabled(tool: &ToolEntry) -> Result<(), Arc<Fault>> {
    let Some(reason) = &tool.disabled else { return Ok(()) };
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let cause = format!("the tool `{}` is disabled{why}", tool.name);
    let hint = Some("an operator can enable it again".to_owned());
    let fault = Fault::local(FaultKind::Disabled, Stage::Resolve, cause, hint);
    Err(Arc::new(Fault::with_source(tool.active_source().source(), fault)))
}

/// Checks the arguments against the tool's schema. Returns the reason if the check was skipped.
fn check(tool: &ToolEntry, arguments: Option<&Raw>) -> Result<Option<&'static str>, Arc<Fault>> {
    let Some(schema) = &tool.schema else { return Err(Arc::new(quarantined(tool))) };
    let empty = Raw::empty_object();
    let arguments = arguments.unwrap_or(&empty);
    let named = tool.resolve_aliases(arguments);
    match schema.check(named.as_ref().unwrap_or(arguments)) {
        Check::Valid => Ok(None),
        Check::Skipped(why) => Ok(Some(why)),
        Check::Invalid(problems) => {
            let all: Vec<String> =
                problems.iter().map(|it| format!("`{}` {}", it.path, it.message)).collect();
            let cause = format!("invalid arguments for `{}`: {}", tool.name, all.join("; "));
            let hint = Some(format!("`wharf tools {}` shows its parameters", tool.name));
            let fault = Fault::local(FaultKind::Arguments, Stage::Check, cause, hint);
            Err(Arc::new(Fault::with_source(tool.active_source().source(), fault)))
        }
    }
}

fn quarantined(tool: &ToolEntry) -> Fault {
    let why = tool.quarantined.as_deref().unwrap_or("its definition is invalid");
    let cause = format!("the tool `{}` is quarantined: {why}", tool.name);
    let hint = Some("the server has to fix its schema".to_owned());
    Fault::with_source(
        tool.active_source().source(),
        Fault::local(FaultKind::Quarantined, Stage::Resolve, cause, hint),
    )
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
