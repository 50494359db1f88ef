//! The calls of a run: starts them after their marks are written, and takes their results as they come.

use super::{RunDriver, VIA};
use crate::{
    conversation_store::StoredState, redaction::redact_outcome, result_text::CallOutcome,
    run_state::CallToMake,
};
use futures_util::StreamExt;
use std::{future::Future, pin::Pin, sync::Arc};
use wharf_runtime::{Call, CallRecord, Caller, Raw};

/// A call under way.
pub(super) type CallFuture<'a> = Pin<Box<dyn Future<Output = MadeCall> + Send + 'a>>;

/// A call that has ended.
pub(super) struct MadeCall {
    /// Position in the answer.
    at: usize,
    record: Arc<CallRecord>,
    outcome: CallOutcome,
}

/// The principal and client of the calls.
#[derive(Clone)]
pub(super) struct OnBehalfOf {
    pub(super) principal: Option<Arc<str>>,
    pub(super) caller: Option<Caller>,
}

impl<'a> RunDriver<'a> {
    /// Starts the calls that may run now, after their marks are written.
    pub(super) async fn start_calls(&mut self) -> Result<(), String> {
        let calls = self.state.start_calls();
        if calls.is_empty() {
            return Ok(());
        }
        let written = self.write(StoredState::Running).await;
        if written.is_err() {
            self.state.not_sent(&calls);
            return written;
        }
        self.state.sent(&calls);
        self.report_events();
        for call in calls {
            self.calls_under_way.push(Box::pin(self.make_call(call)));
        }
        Ok(())
    }

    /// Waits for the next result, question of a server, or answer to one.
    pub(super) async fn settle_one_call(&mut self) {
        let next = tokio::select! {
            settled = self.calls_under_way.next() => settled,
            step = self.questions.next() => {
                self.take_question_step(step);
                None
            }
        };
        let Some(MadeCall { at, record, outcome }) = next else { return };
        self.state.settled(at, outcome, record.took);
        self.calls.push(record);
    }

    fn make_call(&self, call: CallToMake) -> impl Future<Output = MadeCall> + Send + use<'a> {
        let agent = self.agent;
        let OnBehalfOf { principal, caller } = self.on_behalf_of.clone();
        let caller = self.questions.answer_for(caller, &call.id);
        // The call log holds the calls of all runs, and a model may use an id again.
        let is_unique = agent.call_log.is_none() || call.id.contains(&self.run_id);
        let request_id = if is_unique { call.id } else { format!("{}_{}", call.id, self.run_id) };
        let request = Call {
            request_id: Some(request_id),
            thread_id: Some(self.conversation_id.clone()),
            principal,
            caller,
            via: VIA,
            ..Call::new(call.tool_id)
                .arguments(Raw::parse(call.arguments).unwrap_or_else(|_| Raw::empty_object()))
        };
        async move {
            let record = agent.tools.call(request).await;
            if let Some(call_log) = &agent.call_log {
                call_log.record(record.clone()).await;
            }
            let handle = agent.store_hidden_blocks(&record).await;
            let outcome = redact_outcome(CallOutcome::of(&record, handle.as_deref()), &agent.redactor);
            MadeCall { at: call.at, record, outcome }
        }
    }
}
