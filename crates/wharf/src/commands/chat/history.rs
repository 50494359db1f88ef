//! The conversation of a chat: its messages, its tokens, and what happened in the last run.

use crate::agent_activity::format_duration;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;
use wharf_agent::{AgentEvent, RunUsage, ToolStatus, message::Message};

/// Maximum number of lines about one run.
const MAX_NOTES: usize = 1000;

/// One conversation.
#[derive(Debug)]
pub(super) struct ChatConversation {
    pub(super) id: String,
    /// Whether the database does not have it yet.
    pub(super) is_new: bool,
    /// Messages, if the conversation is not kept.
    pub(super) messages: Vec<Message>,
    /// Tools that were allowed before this chat continued it, each with the hash of its definition.
    pub(super) allowed_tools: HashSet<(String, String)>,
    pub(super) usage: RunUsage,
    pub(super) runs: u64,
    pub(super) last_run: RunNotes,
}

impl ChatConversation {
    /// Begins a conversation.
    pub(super) fn new() -> ChatConversation {
        ChatConversation {
            id: Uuid::now_v7().to_string(),
            is_new: true,
            messages: Vec::new(),
            allowed_tools: HashSet::new(),
            usage: RunUsage::default(),
            runs: 0,
            last_run: RunNotes::default(),
        }
    }

    /// Adds the tokens of a run.
    pub(super) fn add_usage(&mut self, usage: RunUsage) {
        let (sum, run) = (&mut self.usage.total, usage.total);
        sum.input = sum.input.saturating_add(run.input);
        sum.cached_input = sum.cached_input.saturating_add(run.cached_input);
        sum.output = sum.output.saturating_add(run.output);
        sum.reasoning = sum.reasoning.saturating_add(run.reasoning);
        self.usage.is_estimated |= usage.is_estimated;
        self.runs += 1;
    }
}

/// Lines about the last run, for `/why`.
#[derive(Debug, Default)]
pub(super) struct RunNotes {
    pub(super) lines: Vec<String>,
    turns: u64,
    used: RunUsage,
    /// Reasons of the questions about calls.
    asked: HashMap<String, String>,
}

impl RunNotes {
    /// Notes an event.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        let line = match event {
            AgentEvent::Usage(usage) => self.note_usage(*usage),
            AgentEvent::Retry { message, delay, .. } => {
                format!("retry after {}: {message}", format_duration(*delay))
            }
            AgentEvent::Context(what) => format!("context: {what}"),
            AgentEvent::Error { error_type, message, call_id: None, .. } => {
                format!("{error_type}: {message}")
            }
            AgentEvent::ApprovalRequest(question) => {
                self.asked.insert(question.call_id.clone(), question.why.clone());
                return;
            }
            AgentEvent::ToolCall(call) if !is_open(call.status) => {
                let duration =
                    call.duration.map_or_else(String::new, |it| format!(" in {}", format_duration(it)));
                let asked = self.asked.get(&call.call_id).map(|why| format!("; you were asked: {why}"));
                let (name, status) = (&call.tool_name, call.status.as_str());
                format!("  call {name} {status}{duration}{}", asked.unwrap_or_default())
            }
            AgentEvent::Done(report) => match &report.error {
                Some(error) => format!("ended: {} ({error})", report.status().as_str()),
                None => format!("ended: {}", report.status().as_str()),
            },
            _ => return,
        };
        if self.lines.len() < MAX_NOTES {
            self.lines.push(line);
        }
    }

    fn note_usage(&mut self, usage: RunUsage) -> String {
        self.turns += 1;
        let (before, now) = (self.used.total, usage.total);
        self.used = usage;
        let estimated = if usage.is_estimated { ", estimated" } else { "" };
        format!(
            "turn {}: {} tokens in ({} cached), {} out{estimated}",
            self.turns,
            now.input.saturating_sub(before.input),
            now.cached_input.saturating_sub(before.cached_input),
            now.output.saturating_sub(before.output),
        )
    }
}

fn is_open(status: ToolStatus) -> bool {
    matches!(status, ToolStatus::InProgress | ToolStatus::AwaitingApproval)
}
