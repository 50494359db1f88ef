//! Handles the calls of an answer: checks, policy, limits, results.

use super::{
    RunPhase, RunState,
    turn::{CallSlot, CallToMake, SlotState},
};
use crate::{
    digest::call_digest,
    events::{AgentEvent, ToolCallEvent, ToolStatus},
    message::ToolCall,
    result_text::{CallFate, CallOutcome},
    run_ending::{LimitKind, RunError},
    toolbox::ANSWER_TOOL,
};
use std::time::Duration;
use wharf_config::Decision;

/// Number of refused repetitions after which the model gets one last request.
const MAX_REPEAT_REFUSALS: u64 = 3;
/// Number of invalid structured answers after which the run ends.
const MAX_INVALID_ANSWERS: u64 = 3;

/// Decision of a person about one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// Whether the call is allowed.
    pub is_allowed: bool,
    /// Reason for the model.
    pub reason: Option<String>,
}

impl RunState {
    /// Checks the calls of an answer, in order, and decides about each as far as no person is needed.
    pub(super) fn plan_calls(&mut self, calls: Vec<ToolCall>) -> Vec<CallSlot> {
        let mut slots: Vec<CallSlot> = Vec::with_capacity(calls.len());
        for call in calls {
            let tool = self.toolbox.find(&call.name).cloned();
            let tool_id = tool.as_ref().map_or_else(|| call.name.clone(), |it| it.id.clone());
            let arguments = call.checked_arguments().unwrap_or(&call.arguments);
            let mut slot = CallSlot {
                digest: call_digest(&tool_id, arguments, &self.conversation_id),
                source: tool.as_ref().map(|it| it.source.clone()),
                may_write: tool.as_ref().is_none_or(|it| it.may_write()),
                is_open_world: tool.as_ref().is_some_and(|it| it.is_open_world),
                tool_id,
                call,
                state: SlotState::Ready,
            };
            if let Some((outcome, status)) = self.refusal(&slot, &slots) {
                slot.settle(outcome, status);
            } else if let Some(tool) = tool {
                self.apply_policy(&mut slot, &tool);
            }
            slots.push(slot);
        }
        slots
    }

    /// Returns the result of a call that is not made, whatever the policy says.
    fn refusal(
        &mut self,
        slot: &CallSlot,
        earlier: &[CallSlot],
    ) -> Option<(CallOutcome, Option<ToolStatus>)> {
        let refused = |words: String| Some((CallOutcome::refused(words), None));
        let name = &slot.call.name;
        if name == ANSWER_TOOL && self.toolbox.has_answer_tool() {
            return Some(self.check_structured(slot));
        }
        if let Some(limit) = self.limit {
            return refused(format!("not executed: the limit '{}' is reached.", limit.key()));
        }
        if self.tool_calls >= self.limits.max_tool_calls {
            self.limit = Some(LimitKind::ToolCalls);
            let key = LimitKind::ToolCalls.key();
            return refused(format!("not executed: the limit '{key}' is reached."));
        }
        self.tool_calls += 1;
        if slot.source.is_none() {
            let guess = self.toolbox.closest(name).map(|it| format!("; did you mean '{it}'?"));
            return refused(format!("there is no tool '{name}'{}", guess.unwrap_or_else(|| ".".to_owned())));
        }
        if let Err(error) = slot.call.checked_arguments() {
            return refused(format!("not executed: {error}."));
        }
        let same = earlier.iter().filter(|it| it.digest == slot.digest).count() as u64;
        let repeats = self.executed.get(&slot.digest).map_or(0, |(_, count)| *count) + same;
        if repeats >= self.limits.max_repeats {
            self.repeat_refusals += 1;
            if self.repeat_refusals >= MAX_REPEAT_REFUSALS {
                self.limit = Some(LimitKind::Repeats);
            }
            let words =
                format!("not executed: the same call gave the same result {repeats} times. Use that result.");
            return refused(words);
        }
        None
    }

    fn apply_policy(&mut self, slot: &mut CallSlot, tool: &crate::tool_facts::ToolFacts) {
        let decided = self.rules.decide(tool, self.has_seen_untrusted);
        let is_unknown = self.unknown_fates.contains(&slot.digest);
        let (decision, why) = match decided.decision {
            Decision::Allow if is_unknown => {
                (Decision::Ask, "an earlier call with the same arguments may have been executed".to_owned())
            }
            decision => (decision, decided.why),
        };
        match decision {
            Decision::Allow => {}
            Decision::Ask if self.can_ask => slot.state = SlotState::Undecided(why),
            Decision::Ask => deny(slot, "the user", Some("nobody is there to ask")),
            Decision::Deny => deny(slot, "the configuration", Some(&why)),
        }
    }

    /// Checks a structured answer. A valid one ends the run when the turn ends.
    fn check_structured(&mut self, slot: &CallSlot) -> (CallOutcome, Option<ToolStatus>) {
        let arguments = slot.call.checked_arguments().map_err(|error| error.to_string());
        match arguments.and_then(|it| self.toolbox.check_answer(it)) {
            Ok(value) => {
                self.structured = Some(value);
                let outcome = CallOutcome::refused("accepted".to_owned());
                (CallOutcome { is_error: false, ..outcome }, Some(ToolStatus::Completed))
            }
            Err(why) => {
                self.invalid_answers += 1;
                if self.invalid_answers >= MAX_INVALID_ANSWERS {
                    self.error = Some(RunError::OutputInvalid(why.clone()));
                }
                (CallOutcome::refused(format!("not accepted: {why}. Call the tool again.")), None)
            }
        }
    }

    /// Reports the decisions of a person, by the id of the call. A call without one stays undecided.
    pub(crate) fn decided(&mut self, decisions: &[(String, ApprovalAnswer)]) {
        let RunPhase::Turn(turn) = &mut self.phase else { return };
        let mut denied = Vec::new();
        for (at, slot) in turn.slots.iter_mut().enumerate() {
            let is_undecided = matches!(slot.state, SlotState::Undecided(_));
            let found = decisions.iter().find(|(id, _)| *id == slot.call.id).filter(|_| is_undecided);
            match found {
                Some((_, answer)) if answer.is_allowed => slot.state = SlotState::Ready,
                Some((_, answer)) => {
                    deny(slot, "the user", answer.reason.as_deref());
                    denied.push(at);
                }
                None => {}
            }
        }
        denied.into_iter().for_each(|at| self.announce(at, None));
        self.end_turn_if_settled();
    }

    /// Starts the calls that may run now, and returns them.
    pub(crate) fn start_calls(&mut self) -> Vec<CallToMake> {
        let RunPhase::Turn(turn) = &mut self.phase else { return Vec::new() };
        let calls = turn.start(self.limits.max_parallel);
        for call in &calls {
            if !self.tools_called.contains(&call.name) {
                self.tools_called.push(call.name.clone());
            }
            self.announce(call.at, None);
        }
        calls
    }

    /// Reports the outcome of a call that was started.
    pub(crate) fn settled(&mut self, at: usize, outcome: CallOutcome, duration: Duration) {
        let RunPhase::Turn(turn) = &mut self.phase else { return };
        let Some(slot) = turn.slots.get_mut(at) else { return };
        let (digest, is_open_world) = (slot.digest.clone(), slot.is_open_world);
        let (fate, text) = (outcome.fate, outcome.text());
        if !slot.settle(outcome, None) {
            return;
        }
        match fate {
            CallFate::Answered => {
                self.has_seen_untrusted |= is_open_world;
                let executed = self.executed.entry(digest).or_insert_with(|| (text.clone(), 0));
                *executed = if executed.0 == text { (text, executed.1 + 1) } else { (text, 1) };
            }
            CallFate::Unknown => _ = self.unknown_fates.insert(digest),
            CallFate::NotExecuted => {}
        }
        self.announce(at, Some(duration));
        self.end_turn_if_settled();
    }

    /// Appends the results of a turn once every call has one, and decides how the run goes on.
    pub(super) fn end_turn_if_settled(&mut self) {
        let RunPhase::Turn(turn) = &self.phase else { return };
        let Some(results) = turn.results() else { return };
        results.into_iter().for_each(|it| self.view.push(it));
        if let Some(structured) = &self.structured {
            if self.final_output.is_empty() {
                self.final_output = structured.to_string();
            }
            self.error = self.limit.map(RunError::Limit);
            self.phase = RunPhase::Ended;
            return;
        }
        if let Some(error) = self.error.take() {
            self.phase = RunPhase::Asking;
            return self.end(error);
        }
        self.phase = RunPhase::Asking;
        if let Some(limit) = self.limit.filter(|_| self.is_last_asked) {
            return self.end(RunError::Limit(limit));
        }
        if self.limit.is_none() && self.turns >= self.limits.max_turns {
            self.limit = Some(LimitKind::Turns);
        }
        if let Some(limit) = self.limit {
            self.is_last_asked = true;
            self.tell(format!("The limit '{}' is reached. Answer with what you have.", limit.key()));
        }
    }

    /// Settles every call that has no result yet, and reports it.
    pub(super) fn abandon_calls(&mut self, cause: &str) {
        let RunPhase::Turn(turn) = &mut self.phase else { return };
        let is_open = |slot: &CallSlot| !matches!(slot.state, SlotState::Settled(..));
        let open: Vec<usize> = (0..turn.slots.len()).filter(|at| is_open(&turn.slots[*at])).collect();
        turn.abandon(cause);
        open.into_iter().for_each(|at| self.announce(at, None));
        self.end_turn_if_settled();
    }

    /// Reports the calls of a new turn that already have a state to show.
    pub(super) fn announce_calls(&mut self) {
        let RunPhase::Turn(turn) = &self.phase else { return };
        let is_shown = |slot: &CallSlot| !matches!(slot.state, SlotState::Ready);
        let shown: Vec<usize> = (0..turn.slots.len()).filter(|at| is_shown(&turn.slots[*at])).collect();
        shown.into_iter().for_each(|at| self.announce(at, None));
    }

    fn announce(&mut self, at: usize, duration: Option<Duration>) {
        let RunPhase::Turn(turn) = &self.phase else { return };
        let slot = &turn.slots[at];
        let (status, result) = match &slot.state {
            SlotState::Undecided(_) => (ToolStatus::AwaitingApproval, None),
            SlotState::Ready | SlotState::Running => (ToolStatus::InProgress, None),
            SlotState::Settled(outcome, status) => (*status, Some(outcome.text())),
        };
        self.events.push(AgentEvent::ToolCall(ToolCallEvent {
            call_id: slot.call.id.clone(),
            tool_name: slot.call.name.clone(),
            source: slot.source.clone(),
            tool_id: slot.tool_id.clone(),
            arguments: slot.arguments(),
            status,
            result,
            duration,
        }));
    }
}

fn deny(slot: &mut CallSlot, who: &str, reason: Option<&str>) {
    let reason = reason.map_or_else(String::new, |it| format!(": {it}"));
    let words = format!("denied: {who} did not allow this call{reason}. Do not try it again.");
    slot.settle(CallOutcome::refused(words), Some(ToolStatus::Denied));
}
