//! Builds the record of a call in progress. Dropping it unfinished records the call as abandoned by its caller.

use super::request_ids;
use crate::{
    Fault, FaultKind, Redactor,
    active_source::ActiveSource,
    call::{Call, CallRecord, Outcome, Status},
    catalog::ToolEntry,
    events::{EventBus, EventKind},
    fault::Stage,
};
use std::{
    sync::{Arc, LazyLock},
    time::{Instant, SystemTime},
};
use wharf_mcp::{Sent, session::Progress};

pub(super) struct CallRecordBuilder {
    bus: EventBus,
    begun: Instant,
    /// The record, until it is finished.
    record: Option<CallRecord>,
}

impl CallRecordBuilder {
    pub(super) fn new(bus: EventBus, call: &Call) -> CallRecordBuilder {
        let started = SystemTime::now();
        let request_id = match &call.request_id {
            Some(id) => id.as_str().into(),
            None => request_ids::next(started),
        };
        let record = CallRecord {
            request_id,
            thread_id: call.thread_id.clone(),
            principal: call.principal.clone(),
            tool: call.tool.clone(),
            wire_name: None,
            source: None,
            arguments: call.arguments.clone(),
            started,
            took: std::time::Duration::ZERO,
            outcome: Outcome::Failed(ABANDONED.clone()),
            unchecked: None,
            trace: call.trace.clone(),
            limit: None,
            redactor: NO_SECRETS.clone(),
        };
        CallRecordBuilder { bus, begun: Instant::now(), record: Some(record) }
    }

    /// Adds the resolved tool and its source to the record.
    pub(super) fn set_tool(&mut self, tool: &ToolEntry, active_source: &ActiveSource) {
        if let Some(record) = &mut self.record {
            record.tool.clone_from(&tool.name);
            record.wire_name = Some(tool.wire_name.clone());
            record.source = Some(active_source.name().clone());
            record.limit = tool.config().max_result_bytes.and_then(|it| it.try_into().ok());
            record.redactor = active_source.redactor().clone();
        }
    }

    pub(super) fn unchecked(&mut self, why: Option<&'static str>) {
        if let Some(record) = &mut self.record {
            record.unchecked = why;
        }
    }

    /// Publishes the call's progress as events too, if there are listeners.
    pub(super) fn publish_progress(&self, call: &mut Call) {
        let Some(record) = self.record.as_ref().filter(|_| self.bus.has_full_listeners()) else { return };
        let (bus, request_id) = (self.bus.clone(), record.request_id.clone());
        let source = record.source.clone().unwrap_or_default();
        let mut forward = call.on_progress.take();
        call.on_progress = Some(Box::new(move |progress: &Progress| {
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
        self.log_and_publish(record)
    }

    /// Logs the completed call and publishes it. Does not wait for listeners.
    fn log_and_publish(&self, mut record: CallRecord) -> Arc<CallRecord> {
        record.took = self.begun.elapsed();
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
        self.bus.publish_call(&record);
        record
    }
}

impl Drop for CallRecordBuilder {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.log_and_publish(record);
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
