//! The task of one run.

use super::{AgentRuns, RunStart, active_runs::RunGuard};
use crate::{agent_activity::unreachable_event, conversations::KeptRun, journal::Journal};
use std::{
    future::{self, Future},
    pin::Pin,
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::time::timeout;
use wharf_agent::{
    Agent, AgentEvent, CallLog, RunError, RunReport, RunResult, RunSignals, RunUsage, client::ModelClient,
};
use wharf_runtime::{CallRecord, Catalog, Handle, SourceState, catalog::Discovery};

/// How long a run waits for sources that are still starting.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs until the end, and reports every event in the log.
pub(super) async fn run(
    runs: AgentRuns,
    client: Arc<ModelClient>,
    RunStart { mut request, kept }: RunStart,
    guard: RunGuard,
    unread_grace: Option<Duration>,
) {
    let shared = &runs.shared;
    let log = guard.run.log.clone();
    let settled = timeout(SETTLE_TIMEOUT, shared.handle.settled()).await;
    request.catalog = settled.unwrap_or_else(|_| shared.handle.catalog());
    let (conversation_id, run_id) = (request.conversation_id.clone(), request.run_id.clone());
    let mut unreachable = match request.message.is_empty() {
        true => Vec::new(),
        false => unreachable_sources(&shared.handle, &request.catalog),
    };
    let agent = Agent {
        model: client,
        tools: shared.handle.clone(),
        redactor: shared.redactor.clone(),
        call_log: Some(Arc::new(JournaledCalls(shared.journal.clone()))),
    };
    let is_cancelled = shared.cancelled.lock().unwrap_or_else(PoisonError::into_inner).remove(&run_id);
    let cancel = async {
        tokio::select! {
            () = guard.run.cancelled() => {}
            () = future::ready(()), if is_cancelled => {}
            () = log.wait_until_unread_for(unread_grace.unwrap_or_default()), if unread_grace.is_some() => {}
            () = keep_lease(kept.as_deref()) => {}
        }
    };
    let mut draining = shared.draining.clone();
    let drain = async { _ = draining.wait_for(|it| *it).await };
    let mut on_event = |event: AgentEvent| {
        log.push(event);
        // The run has begun, so the first event is `started`.
        unreachable.drain(..).for_each(|it| log.push(it));
    };
    let ended = agent.run(request, RunSignals { cancel, drain }, &mut on_event).await;
    match ended {
        Ok(result) if result.is_waiting => {
            tracing::info!(target: "wharf::agent", conversation_id, run_id, "run waits for decisions");
            guard.set_waiting();
            runs.wake();
        }
        Ok(result) => log_end(&result),
        Err(why) => log.push(unusable_format(conversation_id, run_id, &why)),
    }
}

/// Logs the end of a run: ids, sizes and the status. What was said is not logged.
fn log_end(result: &RunResult) {
    let RunReport { conversation_id, run_id, turns, usage, error, .. } = &result.report;
    let (status, calls) = (result.report.status().as_str(), result.calls.len());
    let error_type = error.as_ref().map(RunError::error_type);
    let (input_tokens, output_tokens) = (usage.total.input, usage.total.output);
    tracing::info!(
        target: "wharf::agent",
        conversation_id, run_id, status, error_type, turns, calls, input_tokens, output_tokens, "run ended"
    );
}

/// Renews the lease of a kept run until it is lost.
async fn keep_lease(kept: Option<&KeptRun>) {
    match kept {
        Some(kept) => kept.keep_lease().await,
        None => future::pending().await,
    }
}

fn unusable_format(conversation_id: String, run_id: String, why: &str) -> AgentEvent {
    let error = RunError::OutputInvalid(format!("'response_format' is not a JSON Schema: {why}"));
    AgentEvent::Done(Box::new(RunReport {
        conversation_id,
        run_id,
        final_output: String::new(),
        structured: None,
        tools_called: Vec::new(),
        turns: 0,
        usage: RunUsage::default(),
        cost: None,
        error: Some(error),
    }))
}

/// Returns an event for each source that could not be connected. The model continues without its tools.
fn unreachable_sources(handle: &Handle, catalog: &Catalog) -> Vec<AgentEvent> {
    let event = |it: SourceState| match catalog.discovery(it.source.name.expose()) {
        Some(Discovery::Failed(fault)) => Some(unreachable_event(fault)),
        _ => None,
    };
    handle.sources().into_iter().filter_map(event).collect()
}

/// Records calls in the journal.
struct JournaledCalls(Journal);

impl CallLog for JournaledCalls {
    fn record(&self, record: Arc<CallRecord>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move { _ = self.0.record(&record, "agent").await })
    }
}
