//! Handles the calls of an answer: checks, policy, limits, results.

use super::{
    RunPhase, RunState,
    turn::{CallSlot, CallToMake, SlotState},
};
use crate::{
    digest::call_digest,
    entry::{Entry, EntryBody},
    events::{AgentEvent, ToolCallEvent, ToolStatus},
    message::ToolCall,
    result_text::{CallFate, CallOutcome, NO_SUCH_TOOL},
    run_ending::{LimitKind, RunError},
    tool_facts::ToolFacts,
    toolbox::ANSWER_TOOL,
};
use std::time::Duration;
use wharf_config::Decision;

/// Number of refused repetitions after which the model gets one last request.
const MAX_REPEAT_REFUSALS: u64 = 3;
/// Number of invalid structured answers after which the run ends.
const MAX_INVALID_ANSWERS: u64 = 3;

/// Reason to ask about a call of unknown fate.
const MAY_REPEAT: &str = "an earlier call with the same arguments may have been executed";

/// Decision of a person about one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// Whether the call is allowed.
    pub is_allowed: bool,
    /// Reason for the model.
    pub reason: Option<String>,
    /// Principal that decided, if it was not the user at the terminal.
    pub by: Option<String>,
    /// Whether the decision holds for every call of this tool in the conversation.
    pub is_for_tool: bool,
}

impl RunState {
    /// Checks the calls of an answer, in order, and decides about each as far as no person is needed.
    pub(super) fn plan_calls(&mut self, calls: Vec<ToolCall>) -> Vec<CallSlot> {
        let mut slots: Vec<CallSlot> = Vec::with_capacity(calls.len());
        for call in calls {
            let (call, offered_name) = self.toolbox.inner_call(call);
            let tool = self.toolbox.find(&call.name).cloned();
            let tool_id = tool.as_ref().map_or_else(|| call.name.clone(), |it| it.id.clone());
            let arguments = call.checked_arguments().unwrap_or(&call.arguments);
            let definition_hash = tool.as_ref().map(|it| it.definition_hash.clone()).unwrap_or_default();
            let mut slot = CallSlot {
                digest: call_digest(&tool_id, &definition_hash, arguments, &self.conversation_id),
                definition_hash,
                hints: tool.as_ref().map(ToolFacts::hints).unwrap_or_default(),
                why: String::new(),
                is_recorded: false,
                source: tool.as_ref().map(|it| it.source.clone()),
                may_write: tool.as_ref().is_none_or(|it| it.may_write()),
                is_open_world: tool.as_ref().is_some_and(|it| it.is_open_world),
                is_repetition: false,
                tool_id,
                call,
                offered_name,
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
        let invalid = |words: String| Some((CallOutcome::invalid(words), None));
        let name = &slot.call.name;
        if name == ANSWER_TOOL && self.toolbox.has_answer_tool() {
            return Some(self.check_structured(slot));
        }
        if let Some(found) = self.toolbox.find_deferred(&slot.call) {
            return Some((found, None));
        }
        if let Some(limit) = self.progress.limit {
            return refused(format!("not executed: the limit '{}' is reached.", limit.key()));
        }
        if self.progress.tool_calls >= self.limits.max_tool_calls {
            self.progress.limit = Some(LimitKind::ToolCalls);
            let key = LimitKind::ToolCalls.key();
            return refused(format!("not executed: the limit '{key}' is reached."));
        }
        self.progress.tool_calls += 1;
        if slot.source.is_none() {
            let guess = self.toolbox.closest(name).map(|it| format!("; did you mean '{it}'?"));
            return invalid(format!("{NO_SUCH_TOOL}{name}'{}", guess.unwrap_or_else(|| ".".to_owned())));
        }
        if let Err(error) = slot.call.checked_arguments() {
            return invalid(format!("not executed: {error}."));
        }
        let same = earlier.iter().filter(|it| it.digest == slot.digest).count() as u64;
        let repeats = self.progress.executed.get(&slot.digest).map_or(0, |(_, count)| *count) + same;
        if repeats >= self.limits.max_repeats {
            self.progress.repeat_refusals += 1;
            if self.progress.repeat_refusals >= MAX_REPEAT_REFUSALS {
                self.progress.limit = Some(LimitKind::Repeats);
            }
            let words =
                format!("not executed: the same call gave the same result {repeats} times. Use that result.");
            return refused(words);
        }
        None
    }

    fn apply_policy(&mut self, slot: &mut CallSlot, tool: &ToolFacts) {
        let decided = self.rules.decide(tool, self.progress.has_seen_untrusted);
        let is_unknown = self.progress.unknown_fates.contains(&slot.digest);
        slot.is_repetition = is_unknown;
        let (decision, why) = match decided.decision {
            Decision::Allow | Decision::Ask if is_unknown => (Decision::Ask, MAY_REPEAT.to_owned()),
            Decision::Ask if self.is_allowed_tool(slot) => {
                (Decision::Allow, "a person allowed this tool for the conversation".to_owned())
            }
            decision => (decision, decided.why),
        };
        slot.why.clone_from(&why);
        match decision {
            Decision::Allow => {}
            Decision::Ask if self.can_ask => slot.state = SlotState::Undecided(why),
            Decision::Ask => deny(slot, "the user", Some("nobody is there to ask")),
            Decision::Deny => deny(slot, "the configuration", Some(&why)),
        }
    }

    fn is_allowed_tool(&self, slot: &CallSlot) -> bool {
        self.allowed_tools.contains(&(slot.tool_id.clone(), slot.definition_hash.clone()))
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
                self.progress.invalid_answers += 1;
                if self.progress.invalid_answers >= MAX_INVALID_ANSWERS {
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
            let Some((_, answer)) = found else { continue };
            let by = answer.by.as_deref().unwrap_or("the user");
            slot.why = format!("{by} {} it", if answer.is_allowed { "allowed" } else { "denied" });
            match answer.is_allowed {
                true => slot.state = SlotState::Ready,
                false => {
                    deny(slot, by, answer.reason.as_deref());
                    denied.push(at);
                }
            }
            let tool = (slot.tool_id.clone(), slot.definition_hash.clone());
            let tool = Some(tool).filter(|_| answer.is_for_tool && answer.is_allowed);
            self.allowed_tools.extend(tool.clone());
            let (by, reason, digest) = (by.to_owned(), answer.reason.clone(), slot.digest.clone());
            let body = EntryBody::Approval { is_allowed: answer.is_allowed, by, reason, tool, digest };
            self.entries.push(Entry::of_call(&slot.call.id, body));
        }
        denied.into_iter().for_each(|at| self.announce(at, None));
        self.end_turn_if_settled();
    }

    /// Starts the calls that may run now, and returns them. They may be sent once their marks are written.
    pub(crate) fn start_calls(&mut self) -> Vec<CallToMake> {
        let RunPhase::Turn(turn) = &mut self.phase else { return Vec::new() };
        let calls = turn.start(self.limits.max_parallel);
        for call in &calls {
            let CallSlot { tool_id, digest, why, .. } = &turn.slots[call.at];
            let (tool_id, digest, why) = (tool_id.clone(), digest.clone(), why.clone());
            self.entries.push(Entry::of_call(&call.id, EntryBody::Started { tool_id, digest, why }));
        }
        calls
    }

    /// Reports that calls are sent.
    pub(crate) fn sent(&mut self, calls: &[CallToMake]) {
        for call in calls {
            if !self.progress.tools_called.contains(&call.name) {
                self.progress.tools_called.push(call.name.clone());
            }
            self.announce(call.at, None);
        }
    }

    /// Reports that calls are not sent, because their marks could not be written.
    pub(crate) fn not_sent(&mut self, calls: &[CallToMake]) {
        let RunPhase::Turn(turn) = &mut self.phase else { return };
        calls.iter().for_each(|call| turn.slots[call.at].state = SlotState::Ready);
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
        self.entries.extend(slot.take_entry(Some(duration)));
        let equal = match fate {
            CallFate::Answered => {
                self.progress.has_seen_untrusted |= is_open_world;
                let executed = self.progress.executed.entry(digest).or_insert_with(|| (text.clone(), 0));
                *executed = if executed.0 == text { (text, executed.1 + 1) } else { (text, 1) };
                Vec::new()
            }
            CallFate::Unknown => {
                let equal = turn.refuse_equal(&digest);
                self.progress.unknown_fates.insert(digest);
                equal
            }
            CallFate::NotExecuted => Vec::new(),
        };
        self.announce(at, Some(duration));
        equal.into_iter().for_each(|it| self.announce(it, None));
        self.end_turn_if_settled();
    }

    /// Appends the results of a turn once every call has one, and decides how the run goes on.
    pub(super) fn end_turn_if_settled(&mut self) {
        let RunPhase::Turn(turn) = &mut self.phase else { return };
        let Some(results) = turn.results() else { return };
        self.entries.extend(turn.slots.iter_mut().filter_map(|it| it.take_entry(None)));
        results.into_iter().for_each(|it| self.view.push(it));
        if let Some(structured) = &self.structured {
            if self.progress.final_output.is_empty() {
                self.progress.final_output = structured.to_string();
            }
            self.error = self.progress.limit.map(RunError::Limit);
            self.phase = RunPhase::Ended;
            return;
        }
        if let Some(error) = self.error.take() {
            self.phase = RunPhase::Asking;
            return self.end(error);
        }
        self.phase = RunPhase::Asking;
        if let Some(limit) = self.progress.limit.filter(|_| self.progress.is_last_asked) {
            return self.end(RunError::Limit(limit));
        }
        if self.progress.limit.is_none() && self.progress.turns >= self.limits.max_turns {
            self.progress.limit = Some(LimitKind::Turns);
        }
        if let Some(limit) = self.progress.limit {
            self.progress.is_last_asked = true;
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
            SlotState::Settled(outcome, status) => {
                let call_id = Some(slot.call.id.clone());
                self.events.extend(outcome.error.map(|it| AgentEvent::Error {
                    error_type: it.error_type(),
                    message: outcome.text(),
                    hint: outcome.hint.clone(),
                    call_id,
                }));
                (*status, slot.result())
            }
        };
        self.events.push(AgentEvent::ToolCall(ToolCallEvent {
            call_id: slot.call.id.clone(),
            tool_name: slot.call.name.clone(),
            source: slot.source.clone(),
            tool_id: slot.tool_id.clone(),
            arguments: slot.arguments(),
            status,
            why: slot.why.clone(),
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
