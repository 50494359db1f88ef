//! The calls of one answer, from the decision to the result.

use crate::{
    call_order::{CallProgress, OrderedCall, startable},
    entry::{Entry, EntryBody},
    events::{ApprovalQuestion, ToolStatus},
    message::{Message, ToolCall, ToolResult},
    result_text::CallOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Words about a call that equals an earlier one of the same answer.
const MAY_BE_EXECUTED: &str =
    "not executed: the same call before it may have been executed. Find out before you repeat it.";

/// Calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) slots: Vec<CallSlot>,
}

/// One call of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CallSlot {
    pub(super) call: ToolCall,
    /// Name that the model used, if the call came through another tool.
    #[serde(default)]
    pub(super) offered_name: Option<String>,
    pub(super) source: Option<String>,
    pub(super) tool_id: String,
    pub(super) digest: String,
    pub(super) definition_hash: String,
    pub(super) hints: Value,
    /// The rule, hint, default or person that decided.
    pub(super) why: String,
    /// Whether the entry of the result has been taken.
    pub(super) is_recorded: bool,
    pub(super) may_write: bool,
    pub(super) is_open_world: bool,
    /// Whether an equal call may have been executed.
    #[serde(default)]
    pub(super) is_repetition: bool,
    pub(super) state: SlotState,
}

/// State of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum SlotState {
    /// A person has to decide, for this reason.
    Undecided(String),
    /// The call may start.
    Ready,
    /// The call was started.
    Running,
    /// The call has its result.
    Settled(CallOutcome, ToolStatus),
}

/// Call that the driver has to make.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallToMake {
    /// Position in the answer.
    pub(crate) at: usize,
    /// Id of the call.
    pub(crate) id: String,
    /// Name of the tool.
    pub(crate) name: String,
    /// `source:tool`.
    pub(crate) tool_id: String,
    /// Text of the arguments object.
    pub(crate) arguments: String,
}

impl Turn {
    /// Returns the questions that a person has to answer.
    pub(super) fn questions(&self) -> Vec<ApprovalQuestion> {
        let question = |slot: &CallSlot| match &slot.state {
            SlotState::Undecided(why) => Some(slot.question(why)),
            _ => None,
        };
        self.slots.iter().filter_map(question).collect()
    }

    /// Starts the calls that may run now.
    pub(super) fn start(&mut self, max_parallel: usize) -> Vec<CallToMake> {
        let order: Vec<OrderedCall<'_>> = self.slots.iter().map(CallSlot::ordered).collect();
        let positions = startable(&order, max_parallel);
        positions
            .into_iter()
            .map(|at| {
                let slot = &mut self.slots[at];
                slot.state = SlotState::Running;
                let arguments = slot.call.checked_arguments().unwrap_or("{}").to_owned();
                CallToMake {
                    at,
                    id: slot.call.id.clone(),
                    name: slot.call.name.clone(),
                    tool_id: slot.tool_id.clone(),
                    arguments,
                }
            })
            .collect()
    }

    /// Settles every call that has no result yet. The fate of those that were started is unknown.
    pub(super) fn abandon(&mut self, cause: &str) {
        for slot in &mut self.slots {
            let outcome = match slot.state {
                SlotState::Settled(..) => continue,
                SlotState::Running => CallOutcome::unknown(cause),
                SlotState::Undecided(_) | SlotState::Ready => {
                    CallOutcome::refused(format!("not executed: {cause}. It is safe to call again."))
                }
            };
            slot.settle(outcome, None);
        }
    }

    /// Settles the calls that wait and equal one that may have been executed. Returns their positions. The model may ask
    /// again, and then a person decides.
    pub(super) fn refuse_equal(&mut self, digest: &str) -> Vec<usize> {
        let waits = |slot: &CallSlot| slot.state == SlotState::Ready && slot.digest == digest;
        let equal: Vec<usize> = (0..self.slots.len()).filter(|at| waits(&self.slots[*at])).collect();
        for at in &equal {
            self.slots[*at].settle(CallOutcome::refused(MAY_BE_EXECUTED.to_owned()), None);
        }
        equal
    }

    /// Returns the results in the order of the calls, once every call has one.
    pub(super) fn results(&self) -> Option<Vec<Message>> {
        self.slots.iter().map(|slot| slot.result().map(Message::Result)).collect()
    }
}

impl CallSlot {
    /// Sets the result of the call. A call has one result; a second one is ignored.
    pub(super) fn settle(&mut self, outcome: CallOutcome, status: Option<ToolStatus>) -> bool {
        if matches!(self.state, SlotState::Settled(..)) {
            return false;
        }
        let status = status.unwrap_or_else(|| status_of(&outcome));
        self.state = SlotState::Settled(outcome, status);
        true
    }

    /// Returns the entry of the result, once.
    pub(super) fn take_entry(&mut self, duration: Option<Duration>) -> Option<Entry> {
        let SlotState::Settled(outcome, status) = &self.state else { return None };
        if std::mem::replace(&mut self.is_recorded, true) {
            return None;
        }
        let body = EntryBody::Result {
            fate: outcome.fate,
            status: status.as_str().to_owned(),
            digest: self.digest.clone(),
            duration: duration.map(|it| it.as_secs_f64()),
            result: self.result()?,
        };
        Some(Entry::of_call(&self.call.id, body))
    }

    /// Returns the arguments as JSON, or as a string if they are not.
    pub(super) fn arguments(&self) -> Value {
        let text = &self.call.arguments;
        serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))
    }

    fn question(&self, why: &str) -> ApprovalQuestion {
        ApprovalQuestion {
            call_id: self.call.id.clone(),
            tool_id: self.tool_id.clone(),
            tool_name: self.call.name.clone(),
            arguments: self.arguments(),
            passed: Vec::new(),
            approval_id: String::new(),
            why: why.to_owned(),
            hints: self.hints.clone(),
            definition_hash: self.definition_hash.clone(),
            digest: self.digest.clone(),
            is_repetition: self.is_repetition,
            expires_at: None,
        }
    }

    fn ordered(&self) -> OrderedCall<'_> {
        OrderedCall {
            source: self.source.as_deref().unwrap_or_default(),
            may_write: self.may_write,
            progress: match self.state {
                SlotState::Ready => CallProgress::Waiting,
                SlotState::Running => CallProgress::Running,
                SlotState::Undecided(_) | SlotState::Settled(..) => CallProgress::Settled,
            },
        }
    }

    pub(super) fn result(&self) -> Option<ToolResult> {
        let SlotState::Settled(outcome, _) = &self.state else { return None };
        Some(ToolResult {
            call_id: self.call.id.clone(),
            name: self.offered_name.clone().unwrap_or_else(|| self.call.name.clone()),
            content: outcome.content.clone(),
            is_error: outcome.is_error,
        })
    }
}

fn status_of(outcome: &CallOutcome) -> ToolStatus {
    use crate::result_text::CallFate;
    match outcome.fate {
        CallFate::Unknown => ToolStatus::Unknown,
        _ if outcome.is_error => ToolStatus::Failed,
        CallFate::Answered | CallFate::NotExecuted => ToolStatus::Completed,
    }
}
