//! Builds the record of a call in progress. Dropping it unfinished records the call as abandoned by its caller.

use super::request_ids;
use crate::{
    Fault, FaultKind, Redactor,
    active_source::ActiveSource,
    call::{Call, CallRecord, Outcome, Stages, Status},
    catalog::ToolEntry,
    events::{EventBus, EventKind},
    fault::Stage,
    own_tool::OWN_SOURCE,
    result_handle::{PassedResult, ResultHandle, ResultTool},
    running_calls::{RunningCall, RunningCallGuard, RunningCalls},
};
use std::{
    sync::{Arc, LazyLock},
    time::{Instant, SystemTime},
};
use wharf_mcp::{Sent, session::Progress};

pub(super) struct CallRecordBuilder {
    bus: EventBus,
    begun: Instant,
    /// Keeps the call in the list of calls in flight.
    running: RunningCallGuard,
    /// The record, until it is finished.
    record: Option<CallRecord>,
}

impl CallRecordBuilder {
    pub(super) fn new(bus: EventBus, running_calls: &RunningCalls, call: &Call) -> CallRecordBuilder {
        let started = SystemTime::now();
        let request_id = match &call.request_id {
            Some(id) => id.as_str().into(),
            None => request_ids::next(started),
        };
        let running = running_calls.enter(request_id.clone(), started, call);
        let record = CallRecord {
            request_id,
            thread_id: call.thread_id.clone(),
            principal: call.principal.clone(),
            via: call.via,
            tool: call.tool.clone(),
            wire_name: None,
            source: None,
            arguments: call.arguments.clone(),
            started,
            took: std::time::Duration::ZERO,
            stages: Stages::default(),
            outcome: Outcome::Failed(ABANDONED.clone()),
            unchecked: None,
            trace: call.trace.clone(),
            handle: None,
            passed: Vec::new(),
            limit: None,
            redactor: NO_SECRETS.clone(),
        };
        CallRecordBuilder { bus, begun: Instant::now(), running, record: Some(record) }
    }

    /// The call as it appears in the list of calls in flight.
    pub(super) fn running(&self) -> &Arc<RunningCall> {
        &self.running
    }

    /// Adds the resolved tool and its source to the record, and publishes that the call has begun.
    pub(super) fn set_tool(&mut self, tool: &Arc<ToolEntry>, active_source: &ActiveSource) {
        self.running.set_tool(tool);
        if self.bus.has_full_listeners() {
            let RunningCall { request_id, via, principal, .. } = &**self.running;
            let (request_id, principal) = (request_id.clone(), principal.clone());
            let begun = EventKind::Begun { request_id, tool_id: tool.id(), via, principal };
            self.bus.publish(active_source.name(), begun);
        }
        if let Some(record) = &mut self.record {
            record.tool.clone_from(&tool.name);
            record.wire_name = Some(tool.wire_name.clone());
            record.source = Some(active_source.name().clone());
            record.limit = tool.config().max_result_bytes.and_then(|it| it.try_into().ok());
            record.redactor = active_source.redactor().clone();
        }
    }

    /// Adds one of our own tools to the record. It has no source that runs.
    pub(super) fn set_own_tool(&mut self, tool: ResultTool) {
        if let Some(record) = &mut self.record {
            record.tool = tool.name().to_owned();
            record.wire_name = Some(tool.wire_name().into());
            record.source = Some(OWN_SOURCE.into());
        }
    }

    /// The record so far.
    pub(super) fn record(&self) -> Option<&CallRecord> {
        self.record.as_ref()
    }

    pub(super) fn set_handle(&mut self, handle: Option<ResultHandle>) {
        if let Some(record) = &mut self.record {
            record.handle = handle.map(Box::new);
        }
    }

    pub(super) fn set_passed(&mut self, passed: Vec<PassedResult>) {
        if let Some(record) = &mut self.record {
            record.passed = passed;
        }
    }

    pub(super) fn unchecked(&mut self, why: Option<&'static str>) {
        if let Some(record) = &mut self.record {
            record.unchecked = why;
        }
    }

    /// Notes the call's progress and publishes it as events too, if the caller or a listener wants progress.
    pub(super) fn publish_progress(&self, call: &mut Call) {
        let is_wanted = self.bus.has_full_listeners() || call.on_progress.is_some();
        let Some(record) = self.record.as_ref().filter(|_| is_wanted) else { return };
        let running = self.running().clone();
        let (bus, request_id) = (self.bus.clone(), record.request_id.clone());
        let source = record.source.clone().unwrap_or_default();
        let mut forward = call.on_progress.take();
        call.on_progress = Some(Box::new(move |progress: &Progress| {
            running.set_progress(progress);
            let (request_id, progress_now) = (request_id.clone(), progress.clone());
            bus.publish(&source, EventKind::Progress { request_id, progress: progress_now });
            if let Some(forward) = &mut forward {
                forward(progress);
            }
        }));
    }

    pub(super) fn finish(mut self, outcome: Outcome) -> Arc<CallRecord> {
        let mut record = self.record.take().unwrap_or_else(|| unreachable!("a record is finished once"));
        record.outcome = outcome;
        self.log_and_publish(record, true)
    }

    /// Logs the completed call and publishes it. Does not wait for listeners.
    fn log_and_publish(&self, mut record: CallRecord, has_caller: bool) -> Arc<CallRecord> {
        record.took = self.begun.elapsed();
        record.stages = self.running.stages();
        let status = record.status();
        let (request_id, tool_name) = (&*record.request_id, record.tool.as_str());
        let (duration, status_word) = (record.took.as_secs_f64(), status.as_str());
        match status {
            Status::Success => tracing::info!(
                target: "wharf::call", request_id, tool_name, duration, status = status_word,
                "MCP tool call completed"
            ),
            Status::Failure | Status::Timeout => tracing::warn!(
                target: "wharf::call", request_id, tool_name, duration, status = status_word,
                error = record.error_text(), "MCP tool call failed"
            ),
        }
        let record = Arc::new(record);
        self.bus.publish_call(&record, has_caller);
        record
    }
}

impl Drop for CallRecordBuilder {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.log_and_publish(record, false);
        }
    }
}

/// Default outcome of every call: abandoned.
static ABANDONED: LazyLock<Arc<Fault>> = LazyLock::new(|| {
    let cause = "the caller disconnected before the response";
    let fault = Fault::local(FaultKind::Abandoned, Stage::Call, cause, None);
    Arc::new(Fault { sent: Sent::Unknown, ..fault })
});

/// Redactor without secrets, used until the source of the call is known.
static NO_SECRETS: LazyLock<Arc<Redactor>> = LazyLock::new(Arc::default);
