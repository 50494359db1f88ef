//! Restores a conversation from its entries.

use crate::{
    entry::{Entry, EntryBody},
    message::{AnswerMessage, AnswerPart, Content, Message, ToolResult},
    result_text::{CallFate, CallOutcome},
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Cause of results of calls that a run left behind.
const INTERRUPTED: &str = "wharf stopped during the call";

/// A conversation as far as its entries tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Messages, in order. Every call has a result, unless the conversation waits for decisions about it.
    pub messages: Vec<Message>,
    /// Results for calls that have none, because their run was interrupted. The next run writes them first.
    pub(crate) missing_results: Vec<Entry>,
    /// Checkpoint of a run that waits for decisions.
    pub(crate) waiting: Option<Value>,
    /// Summary, and the number of messages that it covers.
    pub(crate) summary: Option<(usize, String)>,
    /// Digests of calls that may have been executed.
    pub(crate) unknown_fates: HashSet<String>,
    /// Tools and definitions that a person allowed for the whole conversation.
    pub(crate) allowed_tools: HashSet<(String, String)>,
    /// Handles of results that are stored, by the id of the call.
    pub(crate) handles: HashMap<String, String>,
    /// Calls whose results the model no longer sees.
    pub(crate) left_out: HashSet<String>,
    /// Number of messages whose thinking the model no longer sees.
    pub(crate) thinking_hidden_before: usize,
    /// Number of messages before the latest answer whose usage is known, and the tokens that the provider counted.
    pub(crate) counted_input: Option<(usize, u64)>,
    /// Tools that the model was offered last, and their tokens.
    pub(crate) tools: Option<Vec<(String, u64)>>,
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> History {
        History { messages, ..History::default() }
    }
}

/// Calls of the latest answer, until all results are known.
#[derive(Default)]
struct OpenTurn {
    answer: Option<AnswerMessage>,
    /// Digests of the calls that were started, by id.
    started: HashMap<String, String>,
    results: HashMap<String, ToolResult>,
}

impl History {
    /// Restores a conversation. `is_waiting` says whether its latest run waits for decisions; other runs are over.
    pub fn of(entries: impl IntoIterator<Item = Entry>, is_waiting: bool) -> History {
        let mut history = History::default();
        let mut turn = OpenTurn::default();
        for Entry { call_id, body } in entries {
            history.read(call_id, body, &mut turn);
        }
        if !is_waiting || history.waiting.is_none() {
            history.close(turn);
        }
        history
    }

    /// Returns the messages that no summary replaces.
    pub(crate) fn visible_messages(&self) -> impl Iterator<Item = &Message> {
        let begin = self.summary.as_ref().map_or(0, |(position, _)| *position);
        self.messages.iter().skip(begin)
    }

    fn read(&mut self, call_id: Option<String>, body: EntryBody, turn: &mut OpenTurn) {
        match body {
            EntryBody::User { content } => {
                self.close(std::mem::take(turn));
                self.messages.push(Message::User(content));
            }
            EntryBody::Notice { notice } => {
                self.close(std::mem::take(turn));
                self.messages.push(Message::User(vec![Content::Text(notice)]));
            }
            EntryBody::Answer { message, usage } => {
                self.close(std::mem::take(turn));
                let counted = usage.map(|it| (self.messages.len(), it.input));
                self.counted_input = counted.or(self.counted_input);
                self.messages.push(Message::Answer(message.clone()));
                turn.answer = Some(message);
            }
            EntryBody::Started { digest, .. } => {
                turn.started.insert(call_id.unwrap_or_default(), digest);
            }
            EntryBody::Result { result, fate, digest, .. } => {
                if fate == CallFate::Unknown {
                    self.unknown_fates.insert(digest);
                }
                turn.results.insert(result.call_id.clone(), result);
            }
            EntryBody::Approval { tool, is_allowed, .. } => {
                self.allowed_tools.extend(tool.filter(|_| is_allowed));
            }
            EntryBody::Summary { position, summary } => self.summary = Some((position, summary)),
            EntryBody::Stored { stored } => {
                self.handles.insert(call_id.unwrap_or_default(), stored);
            }
            EntryBody::Waiting { waiting } => self.waiting = Some(waiting),
            EntryBody::Tools { tools, .. } => self.tools = Some(tools),
            EntryBody::Context { left_out, thinking_before, .. } => self.trim(left_out, thinking_before),
            EntryBody::Ending { .. } => {}
        }
    }

    /// Leaves out more. What the provider counted before is no longer what the model sees.
    fn trim(&mut self, left_out: Vec<String>, thinking_before: Option<usize>) {
        if !left_out.is_empty() || thinking_before.is_some() {
            self.counted_input = None;
        }
        self.left_out.extend(left_out);
        self.thinking_hidden_before = thinking_before.unwrap_or(self.thinking_hidden_before);
    }

    /// Appends the results of a turn, in the order of its calls. Adds those that are missing.
    fn close(&mut self, mut turn: OpenTurn) {
        self.waiting = None;
        let Some(answer) = turn.answer else { return };
        for call in answer.calls() {
            let result = turn.results.remove(&call.id).unwrap_or_else(|| {
                let digest = turn.started.get(&call.id);
                let outcome = match digest {
                    Some(_) => CallOutcome::unknown(INTERRUPTED),
                    None => CallOutcome::refused(
                        "not executed: wharf stopped before the call. It is safe to call again.".to_owned(),
                    ),
                };
                self.unknown_fates.extend(digest.cloned());
                let result = ToolResult {
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    content: outcome.content,
                    is_error: true,
                };
                let body = EntryBody::Result {
                    result: result.clone(),
                    fate: outcome.fate,
                    status: if digest.is_some() { "unknown" } else { "failed" }.to_owned(),
                    digest: digest.cloned().unwrap_or_default(),
                    duration: None,
                };
                self.missing_results.push(Entry::of_call(&call.id, body));
                result
            });
            self.messages.push(Message::Result(result));
        }
    }
}

impl AnswerMessage {
    /// Returns the calls, in the order of the model.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &crate::message::ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call),
            _ => None,
        })
    }
}
