//! The part of a conversation that the model sees: everything, as long as it fits.
//!
//! Entries never change. What the model no longer sees is a matter of the view: old results become a line, and the
//! oldest turns become a summary. Trimming goes further than necessary, so that it happens seldom and the provider's
//! prompt cache holds in between.

use crate::{
    estimate::estimate_message,
    history::History,
    message::{AnswerMessage, AnswerPart, Content, Message, ToolResult},
};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    ops::Range,
};
use wharf_runtime::result_handle::{URI_PREFIX as RESULT_URI, grouped};

/// Size in bytes above which an old result is left out.
const MAX_OLD_RESULT_BYTES: usize = 1024;
/// Number of turns that are never trimmed.
const SPARED_TURNS: usize = 3;
/// Tokens kept for the answer, if the model has no `max_tokens`.
const ANSWER_RESERVE: u64 = 4_096;
/// Bounds of the ratio between the tokens that a provider counts and the estimate.
const MIN_FACTOR: f64 = 0.5;
const MAX_FACTOR: f64 = 3.0;

/// Messages of a conversation, and which of them the model sees.
#[derive(Clone, Debug)]
pub(crate) struct ContextView {
    messages: Vec<Message>,
    /// Estimated tokens of each message as a whole.
    tokens: Vec<u64>,
    /// Context window, in tokens.
    window: u64,
    /// Tokens kept for the answer.
    reserve: u64,
    /// Tokens of the instructions and tools.
    fixed: u64,
    /// Ratio between the tokens that the provider reported and the estimate.
    factor: f64,
    /// Positions of the results that are left out.
    trimmed: BTreeSet<usize>,
    /// Handles of stored results, by the id of the call.
    handles: HashMap<String, String>,
    /// Position of the first message of this run.
    run_start: usize,
    /// Number of messages whose thinking is left out.
    thinking_hidden_before: usize,
    /// Summary of the messages before a position, without the first one.
    summary: Option<(usize, String)>,
}

/// Step that is needed before the model can be asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fit {
    /// The view fits.
    Fits,
    /// These results, and perhaps the thinking of earlier runs, were left out. The view has to be checked again.
    Trimmed {
        /// Positions of the results.
        results: Vec<usize>,
        /// Number of messages whose thinking is left out from now on, if it is more than before.
        thinking_before: Option<usize>,
    },
    /// The messages before this position should be summed up.
    NeedsSummary(usize),
    /// The view does not fit, and nothing more can be left out.
    Full,
}

/// Returns the tokens of a window that a view may take.
pub(crate) fn room_of(window: u64, max_tokens: Option<u64>) -> u64 {
    window.saturating_sub(reserve_of(window, max_tokens))
}

/// Returns the tokens of a window that are kept for the answer.
fn reserve_of(window: u64, max_tokens: Option<u64>) -> u64 {
    max_tokens.unwrap_or(ANSWER_RESERVE).min(window / 2)
}

impl ContextView {
    pub(crate) fn new(window: u64, max_tokens: Option<u64>, fixed: u64) -> ContextView {
        ContextView {
            messages: Vec::new(),
            tokens: Vec::new(),
            window,
            reserve: reserve_of(window, max_tokens),
            fixed,
            factor: 1.0,
            trimmed: BTreeSet::new(),
            handles: HashMap::new(),
            run_start: 0,
            thinking_hidden_before: 0,
            summary: None,
        }
    }

    /// Takes over the history, and what the model no longer saw of it, so that the provider's prompt cache holds. Later
    /// messages belong to this run.
    pub(crate) fn begin_run(&mut self, history: &History) {
        history.messages.iter().for_each(|it| self.push(it.clone()));
        self.summary.clone_from(&history.summary);
        self.handles.clone_from(&history.handles);
        let is_left_out = |message: &Message| match message {
            Message::Result(result) => history.left_out.contains(&result.call_id),
            Message::User(_) | Message::Answer(_) => false,
        };
        self.trimmed = (0..self.messages.len()).filter(|at| is_left_out(&self.messages[*at])).collect();
        self.thinking_hidden_before = history.thinking_hidden_before.min(self.messages.len());
        self.run_start = self.messages.len();
        if let Some((length, input)) = history.counted_input {
            self.learn_from_history(length, input);
        }
    }

    /// Learns from the tokens that the provider counted for the first messages of an earlier run. It may have been offered
    /// fewer tools, so they never lower the estimate.
    fn learn_from_history(&mut self, length: usize, input: u64) {
        let begin = self.summary_end();
        if begin > length || length > self.messages.len() {
            return;
        }
        let estimate = (self.fixed + self.shown_tokens(begin..length)).max(1);
        self.factor = (input as f64 / estimate as f64).clamp(1.0, MAX_FACTOR);
    }

    /// Returns the call of a result.
    pub(crate) fn call_id(&self, at: usize) -> Option<String> {
        match self.messages.get(at) {
            Some(Message::Result(result)) => Some(result.call_id.clone()),
            _ => None,
        }
    }

    /// Returns a result that is left out and not stored yet.
    pub(crate) fn unstored(&self, at: usize) -> Option<&ToolResult> {
        match self.messages.get(at) {
            Some(Message::Result(result)) if self.handle_of(result).is_none() => Some(result),
            _ => None,
        }
    }

    /// Names a stored result.
    pub(crate) fn set_handle(&mut self, call_id: String, handle: String) {
        self.handles.insert(call_id, handle);
    }

    /// Returns the handle of a result, if it is stored.
    fn handle_of(&self, result: &ToolResult) -> Option<String> {
        let stored = || match result.content.first() {
            Some(Content::Text(text)) if text.contains(RESULT_URI) => {
                text.strip_prefix("result ")?.split(' ').next().map(str::to_owned)
            }
            _ => None,
        };
        self.handles.get(&result.call_id).cloned().or_else(stored)
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.tokens.push(estimate_message(&message));
        self.messages.push(message);
    }

    /// Returns all messages.
    #[cfg(test)]
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the messages from a position on.
    pub(crate) fn into_messages_from(mut self, position: usize) -> Vec<Message> {
        self.messages.split_off(position)
    }

    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Sets the window to the size that the provider named, or below what it refused. What it refused is larger than the
    /// window, so an estimate that says otherwise is too low.
    pub(crate) fn shrink(&mut self, window: Option<u64>) {
        let refused = self.raw_tokens();
        let estimate = self.scaled(refused);
        self.limit_window(window.unwrap_or(estimate.saturating_mul(4) / 5));
        if refused > 0 {
            self.factor = self.factor.max(self.window as f64 / refused as f64).min(MAX_FACTOR);
        }
    }

    /// Sets the window, if this one is smaller.
    pub(crate) fn limit_window(&mut self, window: u64) {
        self.window = window.min(self.window);
        self.reserve = self.reserve.min(self.window / 2);
    }

    /// Learns from the input tokens that the provider reported for the current view.
    pub(crate) fn learn(&mut self, reported_input: u64) {
        let estimate = self.raw_tokens();
        if reported_input > 0 && estimate > 0 {
            self.factor = (reported_input as f64 / estimate as f64).clamp(MIN_FACTOR, MAX_FACTOR);
        }
    }

    /// Estimates the tokens of the current view.
    pub(crate) fn visible_tokens(&self) -> u64 {
        self.scaled(self.raw_tokens())
    }

    /// Returns the messages that the model sees.
    pub(crate) fn visible(&self) -> Vec<Message> {
        let shown = (self.summary_end()..self.messages.len()).map(|at| self.shown(at).into_owned());
        self.summed_up_message().into_iter().chain(shown).collect()
    }

    /// Returns the first message with the summary, if there is one.
    fn summed_up_message(&self) -> Option<Message> {
        let (_, summary) = self.summary.as_ref()?;
        Some(with_summary(self.messages.first()?, summary))
    }

    /// Returns the number of messages that a summary replaces.
    fn summary_end(&self) -> usize {
        self.summary.as_ref().map_or(0, |(position, _)| *position)
    }

    /// Returns a message as the model sees it.
    fn shown(&self, at: usize) -> Cow<'_, Message> {
        match &self.messages[at] {
            Message::Result(result) if self.trimmed.contains(&at) => {
                Cow::Owned(Message::Result(left_out(result, self.handle_of(result))))
            }
            Message::Answer(answer) if at < self.thinking_hidden_before && has_thinking(answer) => {
                Cow::Owned(Message::Answer(without_thinking(answer)))
            }
            other => Cow::Borrowed(other),
        }
    }

    /// Trims the view if it is above 80 % of its room, until it is under 60 %.
    pub(crate) fn fit(&mut self, may_summarize: bool) -> Fit {
        let room = self.window.saturating_sub(self.reserve);
        let mut raw = self.raw_tokens();
        if self.scaled(raw).saturating_mul(10) <= room.saturating_mul(8) {
            return Fit::Fits;
        }
        let mut results = Vec::new();
        let is_low = |tokens: u64| tokens.saturating_mul(10) < room.saturating_mul(6);
        for at in self.trimmable() {
            if is_low(self.scaled(raw)) {
                break;
            }
            let before = self.shown_tokens(at..at + 1);
            self.trimmed.insert(at);
            results.push(at);
            raw = raw.saturating_sub(before) + self.shown_tokens(at..at + 1);
        }
        let hides_thinking = !is_low(self.scaled(raw)) && self.has_old_thinking();
        let thinking_before = hides_thinking.then_some(self.run_start);
        if let Some(position) = thinking_before {
            self.thinking_hidden_before = position;
        }
        let tokens = self.visible_tokens();
        let is_high = tokens.saturating_mul(10) > room.saturating_mul(8);
        match self.summary_position() {
            _ if hides_thinking || !results.is_empty() => Fit::Trimmed { results, thinking_before },
            Some(position) if is_high && may_summarize => Fit::NeedsSummary(position),
            _ if tokens > room => Fit::Full,
            _ => Fit::Fits,
        }
    }

    /// Returns the visible messages that a summary up to a position replaces.
    pub(crate) fn messages_to_sum_up(&self, position: usize) -> Vec<Message> {
        let count = position - self.summary_end() + usize::from(self.summary.is_some());
        self.visible().into_iter().take(count).collect()
    }

    pub(crate) fn set_summary(&mut self, position: usize, summary: String) {
        self.summary = Some((position, summary));
    }

    /// Returns whether the model sees the thinking of earlier runs.
    fn has_old_thinking(&self) -> bool {
        self.messages[self.thinking_hidden_before..self.run_start].iter().any(|it| match it {
            Message::Answer(answer) => has_thinking(answer),
            Message::User(_) | Message::Result(_) => false,
        })
    }

    /// Returns the positions of the results that may be left out, oldest first.
    fn trimmable(&self) -> Vec<usize> {
        let begin = self.summary_end();
        let spared = self.turn_starts().rev().nth(SPARED_TURNS - 1).unwrap_or(0);
        (begin..spared)
            .filter(|at| !self.trimmed.contains(at))
            .filter(|at| match &self.messages[*at] {
                Message::Result(result) => result_bytes(result) > MAX_OLD_RESULT_BYTES,
                _ => false,
            })
            .collect()
    }

    /// Returns the start of the turn at which the newer half of the unspared turns begins. A call and its result stay
    /// together, because a turn begins with an answer.
    fn summary_position(&self) -> Option<usize> {
        let begin = self.summary_end();
        let starts: Vec<usize> = self.turn_starts().filter(|at| *at > begin).collect();
        let candidates = &starts[..starts.len().saturating_sub(SPARED_TURNS - 1)];
        candidates.get(candidates.len() / 2).copied().filter(|at| *at > begin + 1)
    }

    fn turn_starts(&self) -> impl DoubleEndedIterator<Item = usize> {
        let is_answer = |(_, message): &(usize, &Message)| matches!(message, Message::Answer(_));
        self.messages.iter().enumerate().filter(is_answer).map(|(at, _)| at)
    }

    /// Estimates tokens from a sum of estimates and what the provider has counted.
    fn scaled(&self, raw: u64) -> u64 {
        (raw as f64 * self.factor) as u64
    }

    /// Sums up the estimates of the current view.
    fn raw_tokens(&self) -> u64 {
        let summed_up = self.summed_up_message().map_or(0, |it| estimate_message(&it));
        self.fixed + summed_up + self.shown_tokens(self.summary_end()..self.messages.len())
    }

    /// Sums up the estimates of these messages as the model sees them.
    fn shown_tokens(&self, range: Range<usize>) -> u64 {
        range
            .map(|at| match self.shown(at) {
                Cow::Borrowed(_) => self.tokens[at],
                Cow::Owned(changed) => estimate_message(&changed),
            })
            .sum()
    }
}

fn with_summary(first: &Message, summary: &str) -> Message {
    let mut content = match first {
        Message::User(content) => content.clone(),
        Message::Answer(_) | Message::Result(_) => Vec::new(),
    };
    content.push(Content::Text(format!("[Summary of the conversation so far]\n{summary}")));
    Message::User(content)
}

fn left_out(result: &ToolResult, handle: Option<String>) -> ToolResult {
    let (name, bytes) = (&result.name, grouped(result_bytes(result) as u64));
    let line = match handle {
        Some(handle) => format!("[result of {name}, {bytes} bytes: wharf__read_result {handle}]"),
        None => format!(
            "[result of {name}, {bytes} bytes, left out to save context; call the tool again if you need it]"
        ),
    };
    ToolResult { content: vec![Content::Text(line)], ..result.clone() }
}

fn has_thinking(answer: &AnswerMessage) -> bool {
    answer.parts.iter().any(|part| matches!(part, AnswerPart::Reasoning { .. }))
}

/// Returns an answer without its thinking. An answer always has something else.
fn without_thinking(answer: &AnswerMessage) -> AnswerMessage {
    let is_kept = |part: &&AnswerPart| !matches!(part, AnswerPart::Reasoning { .. });
    AnswerMessage {
        parts: answer.parts.iter().filter(is_kept).cloned().collect(),
        model: answer.model.clone(),
    }
}

fn result_bytes(result: &ToolResult) -> usize {
    let size = |content: &Content| match content {
        Content::Text(text) => text.len(),
        Content::Image { base64, .. } => base64.len(),
    };
    result.content.iter().map(size).sum()
}
