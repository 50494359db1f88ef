//! The state of a run that waits for decisions, from which this process or another continues it.

use super::{
    RunInputs, RunPhase, RunState,
    turn::{CallSlot, SlotState, Turn},
};
use crate::{
    digest::call_digest,
    result_text::CallOutcome,
    run_ending::{LimitKind, RunUsage},
    toolbox::ToolDefinition,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use wharf_config::{AgentSettings, RunLimits};

/// Words about a call that is not the one that a person was asked about.
const CHANGED: &str =
    "not executed: the tool or the arguments changed since the question. It is safe to call again.";

/// Counters and conditions of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunProgress {
    pub(super) turns: u64,
    pub(super) tool_calls: u64,
    /// Result and number of executions of each call, by digest.
    pub(super) executed: HashMap<String, (String, u64)>,
    /// Number of calls refused because they repeat.
    pub(super) repeat_refusals: u64,
    /// Digests of calls that may have been executed.
    pub(super) unknown_fates: HashSet<String>,
    pub(super) has_seen_untrusted: bool,
    /// Limit that was reached. The next request is the last one.
    pub(super) limit: Option<LimitKind>,
    /// Whether the model knows that the next request is the last one.
    pub(super) is_last_asked: bool,
    pub(super) has_reported_length: bool,
    /// Context window that the provider has taught, if it refused a prompt. Missing in checkpoints of earlier versions.
    #[serde(default)]
    pub(super) shrunk_window: Option<u64>,
    pub(super) has_summed_up: bool,
    pub(super) invalid_answers: u64,
    pub(super) must_structure: bool,
    pub(super) usage: RunUsage,
    pub(super) tools_called: Vec<String>,
    pub(super) final_output: String,
}

/// State of a run that waits for decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunCheckpoint {
    progress: RunProgress,
    slots: Vec<CallSlot>,
    /// Time that the run has left.
    pub(crate) remaining: Duration,
    /// Settings of the request that began the run. Missing in checkpoints of earlier versions.
    #[serde(default)]
    pub(crate) request: Option<RequestSettings>,
    /// Tools that the run began with. Missing in checkpoints of earlier versions.
    #[serde(default)]
    pub(crate) tools: Option<Vec<ToolDefinition>>,
}

/// Settings that a request may choose, so that the run keeps them when it continues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RequestSettings {
    instructions: String,
    response_format: Option<Value>,
    max_turns: u64,
    max_tool_calls: u64,
    max_repeats: u64,
    max_parallel: usize,
    run_timeout: Duration,
    max_total_tokens: u64,
    max_cost: Option<f64>,
    approval_timeout: Duration,
}

impl RequestSettings {
    pub(crate) fn of(settings: &AgentSettings, instructions: &str) -> RequestSettings {
        let RunLimits {
            max_turns,
            max_tool_calls,
            max_repeats,
            max_parallel,
            run_timeout,
            max_total_tokens,
            max_cost,
            approval_timeout,
        } = settings.limits;
        RequestSettings {
            instructions: instructions.to_owned(),
            response_format: settings.response_format.clone(),
            max_turns,
            max_tool_calls,
            max_repeats,
            max_parallel,
            run_timeout,
            max_total_tokens,
            max_cost,
            approval_timeout,
        }
    }

    /// Applies them to the settings of today. Limits only get lower.
    pub(crate) fn apply(&self, settings: &mut AgentSettings, instructions: &mut String) {
        instructions.clone_from(&self.instructions);
        settings.response_format.clone_from(&self.response_format);
        settings.limits.tighten(&RunLimits {
            max_turns: self.max_turns,
            max_tool_calls: self.max_tool_calls,
            max_repeats: self.max_repeats,
            max_parallel: self.max_parallel,
            run_timeout: self.run_timeout,
            max_total_tokens: self.max_total_tokens,
            max_cost: self.max_cost,
            approval_timeout: self.approval_timeout,
        });
    }
}

impl RunState {
    /// Returns what is needed to continue after the decisions. `None` if the run does not wait.
    pub(crate) fn checkpoint(&self, remaining: Duration, request: RequestSettings) -> Option<RunCheckpoint> {
        let RunPhase::Turn(turn) = &self.phase else { return None };
        Some(RunCheckpoint {
            progress: self.progress.clone(),
            slots: turn.slots.clone(),
            remaining,
            request: Some(request),
            tools: Some(self.toolbox.definitions()),
        })
    }

    /// Continues a run that waited. Its history ends with the answer whose calls are decided. A call whose tool or
    /// arguments are no longer the same is not made.
    pub(crate) fn resume(inputs: RunInputs, checkpoint: RunCheckpoint) -> RunState {
        let RunCheckpoint { progress, mut slots, .. } = checkpoint;
        let mut state = RunState::new(inputs);
        state.progress = progress;
        if let Some(window) = state.progress.shrunk_window {
            state.view.limit_window(window);
        }
        for slot in &mut slots {
            let definition_hash = state.toolbox.find(&slot.call.name).map(|it| it.definition_hash.as_str());
            let digest = definition_hash.map(|hash| {
                let arguments = slot.call.checked_arguments().unwrap_or(&slot.call.arguments);
                call_digest(&slot.tool_id, hash, arguments, &state.conversation_id)
            });
            let is_same = digest.as_ref() == Some(&slot.digest);
            if !is_same && !matches!(slot.state, SlotState::Settled(..)) {
                slot.settle(CallOutcome::refused(CHANGED.to_owned()), None);
            }
        }
        state.phase = RunPhase::Turn(Turn { slots });
        state.end_turn_if_settled();
        state
    }
}
