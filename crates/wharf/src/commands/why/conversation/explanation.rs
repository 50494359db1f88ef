//! Explains what happened in a conversation from its entries.

use serde_json::{Value, json};
use wharf_agent::{CallFate, Entry, EntryBody, RunStatus, dialect::Usage, message::AnswerPart};
use wharf_store::ConversationRow;

/// A conversation and its runs.
pub(super) struct ConversationExplanation {
    pub(super) row: ConversationRow,
    pub(super) runs: Vec<RunExplanation>,
}

/// One run.
#[derive(Debug, Default)]
pub(super) struct RunExplanation {
    pub(super) id: String,
    pub(super) message: String,
    /// Tools that the model is offered from this run on, and their tokens. `None` if they are those of the run before.
    pub(super) tools: Option<Vec<(String, u64)>>,
    /// Tools that the model has to find from this run on, and their tokens.
    pub(super) deferred: Vec<(String, u64)>,
    pub(super) turns: Vec<TurnExplanation>,
    /// Notes before the first answer.
    pub(super) notes: Vec<String>,
    pub(super) status: Option<RunStatus>,
    pub(super) error: Option<Value>,
}

/// One answer of the model, and what followed it.
#[derive(Debug, Default)]
pub(super) struct TurnExplanation {
    pub(super) usage: Option<Usage>,
    pub(super) calls: Vec<CallExplanation>,
    pub(super) notes: Vec<String>,
}

/// One call.
#[derive(Debug, Default)]
pub(super) struct CallExplanation {
    pub(super) id: String,
    pub(super) tool_name: String,
    pub(super) tool_id: String,
    pub(super) arguments: String,
    /// The rule, hint, default or person that decided.
    pub(super) why: String,
    /// The person's decision, if one was asked.
    pub(super) decision: Option<PersonDecision>,
    pub(super) digest: String,
    pub(super) status: Option<String>,
    pub(super) fate: Option<CallFate>,
    pub(super) duration: Option<f64>,
    pub(super) result: String,
}

/// Decision of a person.
#[derive(Debug)]
pub(super) struct PersonDecision {
    pub(super) is_allowed: bool,
    pub(super) by: String,
    pub(super) reason: Option<String>,
    pub(super) is_for_tool: bool,
}

impl ConversationExplanation {
    /// Reads the entries, each with the id of its run.
    pub(super) fn of(row: ConversationRow, entries: Vec<(String, Entry)>) -> ConversationExplanation {
        let mut runs: Vec<RunExplanation> = Vec::new();
        for (run_id, entry) in entries {
            if runs.last().is_none_or(|it| it.id != run_id) {
                runs.push(RunExplanation { id: run_id, ..RunExplanation::default() });
            }
            if let Some(run) = runs.last_mut() {
                run.read(entry);
            }
        }
        ConversationExplanation { row, runs }
    }

    pub(super) fn find_call(&self, id: &str) -> Option<&CallExplanation> {
        self.runs.iter().flat_map(|it| &it.turns).flat_map(|it| &it.calls).find(|it| it.id == id)
    }

    pub(super) fn to_json(&self) -> Value {
        let row = &self.row;
        json!({ "id": row.id, "title": row.title, "provider": row.provider, "model": row.model,
            "state": row.shown_state(), "usage": { "input": row.input_tokens, "output": row.output_tokens },
            "cost": row.cost_micros as f64 / 1e6,
            "runs": self.runs.iter().map(RunExplanation::to_json).collect::<Vec<_>>() })
    }
}

impl RunExplanation {
    fn read(&mut self, entry: Entry) {
        let Entry { call_id, body } = entry;
        let call_id = call_id.unwrap_or_default();
        match body {
            EntryBody::User { content } => {
                self.message = content.iter().map(|it| it.as_text().to_owned()).collect::<Vec<_>>().join(" ");
            }
            EntryBody::Answer { message, usage } => {
                let call = |part: AnswerPart| match part {
                    AnswerPart::Call(call) => Some(CallExplanation {
                        id: call.id,
                        tool_name: call.name,
                        arguments: call.arguments,
                        ..CallExplanation::default()
                    }),
                    AnswerPart::Text { .. } | AnswerPart::Reasoning { .. } => None,
                };
                let calls = message.parts.into_iter().filter_map(call).collect();
                self.turns.push(TurnExplanation { usage, calls, notes: Vec::new() });
            }
            EntryBody::Started { tool_id, digest, why } => {
                let call = self.call(&call_id);
                (call.tool_id, call.digest, call.why) = (tool_id, digest, why);
            }
            EntryBody::Approval { is_allowed, by, reason, tool, digest } => {
                let call = self.call(&call_id);
                call.digest = digest;
                call.decision = Some(PersonDecision { is_allowed, by, reason, is_for_tool: tool.is_some() });
            }
            EntryBody::Result { result, fate, status, digest, duration } => {
                let call = self.call(&call_id);
                (call.digest, call.status, call.fate) = (digest, Some(status), Some(fate));
                call.duration = duration;
                call.result = result.text();
            }
            EntryBody::Tools { tools, deferred, .. } => {
                (self.tools, self.deferred) = (Some(tools), deferred);
            }
            EntryBody::Summary { .. } => self.note("the oldest messages are summed up".to_owned()),
            EntryBody::Notice { notice } => self.note(format!("the model is told: {notice}")),
            EntryBody::Context { message, .. } => self.note(message),
            EntryBody::Stored { stored } => {
                self.note(format!("the result of {call_id} is left out and stored as {stored}"));
            }
            EntryBody::Waiting { .. } => self.note("the run waits for decisions".to_owned()),
            EntryBody::Ending { status, error, .. } => (self.status, self.error) = (Some(status), error),
        }
    }

    /// Returns the call of the run with this id. A result of an interrupted run belongs to an earlier run's call.
    fn call(&mut self, id: &str) -> &mut CallExplanation {
        if self.turns.is_empty() {
            self.turns.push(TurnExplanation::default());
        }
        let known = self.turns.iter().rposition(|it| it.calls.iter().any(|it| it.id == id));
        let turn = known.unwrap_or(self.turns.len() - 1);
        let calls = &mut self.turns[turn].calls;
        let at = calls.iter().position(|it| it.id == id).unwrap_or_else(|| {
            calls.push(CallExplanation { id: id.to_owned(), ..CallExplanation::default() });
            calls.len() - 1
        });
        &mut calls[at]
    }

    fn note(&mut self, note: String) {
        self.turns.last_mut().map_or(&mut self.notes, |it| &mut it.notes).push(note);
    }

    fn to_json(&self) -> Value {
        let tools = self.tools.as_ref().map(|tools| {
            let tokens: u64 = tools.iter().map(|(_, tokens)| tokens).sum();
            let tool = |(name, tokens): &(String, u64)| json!({ "name": name, "tokens": tokens });
            json!({ "tokens": tokens, "offered": tools.iter().map(tool).collect::<Vec<_>>(),
                "deferred": self.deferred.iter().map(tool).collect::<Vec<_>>() })
        });
        let turn = |it: &TurnExplanation| {
            let usage = it.usage.map(|it| {
                json!({ "input": it.input, "cached_input": it.cached_input, "output": it.output,
                    "reasoning": it.reasoning })
            });
            json!({ "usage": usage, "notes": it.notes,
                "calls": it.calls.iter().map(CallExplanation::to_json).collect::<Vec<_>>() })
        };
        json!({ "run_id": self.id, "message": self.message, "status": self.status.map(RunStatus::as_str),
            "error": self.error, "tools": tools, "notes": self.notes,
            "turns": self.turns.iter().map(turn).collect::<Vec<_>>() })
    }
}

impl CallExplanation {
    pub(super) fn to_json(&self) -> Value {
        let decision = self.decision.as_ref().map(|it| {
            json!({ "decision": if it.is_allowed { "allow" } else { "deny" }, "by": it.by, "reason": it.reason,
                "scope": if it.is_for_tool { "tool" } else { "once" } })
        });
        let arguments: Value =
            serde_json::from_str(&self.arguments).unwrap_or_else(|_| self.arguments.as_str().into());
        json!({ "call_id": self.id, "tool_name": self.tool_name, "tool_id": self.tool_id, "arguments": arguments,
            "why": self.why, "decision": decision, "digest": self.digest, "status": self.status,
            "fate": self.fate, "execution_duration": self.duration, "result": self.result })
    }
}
