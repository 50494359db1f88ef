//! The part of a conversation that the model sees: everything, as long as it fits.
//!
//! Entries never change. What the model no longer sees is a matter of the view: old results become a line, and the
//! oldest turns become a summary. Trimming goes further than necessary, so that it happens seldom and the provider's
//! prompt cache holds in between.

use crate::{
    estimate::estimate_message,
    message::{Content, Message, ToolResult},
};
use std::collections::BTreeSet;

/// Size in bytes above which an old result is left out.
const MAX_OLD_RESULT_BYTES: usize = 1024;
/// Number of turns that are never trimmed.
const SPARED_TURNS: usize = 3;
/// Tokens kept for the answer, if the model has no `max_tokens`.
const ANSWER_RESERVE: u64 = 4_096;

/// Messages of a conversation, and which of them the model sees.
#[derive(Clone, Debug)]
pub(crate) struct ContextView {
    messages: Vec<Message>,
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
    /// Summary of the messages before a position, without the first one.
    summary: Option<(usize, String)>,
}

/// Step that is needed before the model can be asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fit {
    /// The view fits.
    Fits,
    /// The view fits after this many results were left out.
    Trimmed(usize),
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
            window,
            reserve: reserve_of(window, max_tokens),
            fixed,
            factor: 1.0,
            trimmed: BTreeSet::new(),
            summary: None,
        }
    }

    pub(crate) fn push(&mut self, message: Message) {
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

    /// Sets the window to the size that the provider named, or below what it refused.
    pub(crate) fn shrink(&mut self, window: Option<u64>) {
        let refused = self.tokens(&self.visible()).saturating_mul(4) / 5;
        self.window = window.unwrap_or(refused).min(self.window);
        self.reserve = self.reserve.min(self.window / 2);
    }

    /// Learns from the input tokens that the provider reported for the current view.
    pub(crate) fn learn(&mut self, reported_input: u64) {
        let estimate = self.raw_tokens(&self.visible());
        if reported_input > 0 && estimate > 0 {
            self.factor = (reported_input as f64 / estimate as f64).clamp(0.5, 3.0);
        }
    }

    /// Estimates the tokens of the current view.
    pub(crate) fn visible_tokens(&self) -> u64 {
        self.tokens(&self.visible())
    }

    /// Returns the messages that the model sees.
    pub(crate) fn visible(&self) -> Vec<Message> {
        let begin = self.summary.as_ref().map_or(0, |(position, _)| *position);
        let mut visible = Vec::with_capacity(self.messages.len() - begin + 1);
        if let (Some((_, summary)), Some(first)) = (&self.summary, self.messages.first()) {
            visible.push(with_summary(first, summary));
        }
        for (at, message) in self.messages.iter().enumerate().skip(begin) {
            visible.push(match message {
                Message::Result(result) if self.trimmed.contains(&at) => Message::Result(left_out(result)),
                other => other.clone(),
            });
        }
        visible
    }

    /// Trims the view if it is above 80 % of its room, until it is under 60 %.
    pub(crate) fn fit(&mut self, may_summarize: bool) -> Fit {
        let room = self.window.saturating_sub(self.reserve);
        let mut tokens = self.visible_tokens();
        if tokens.saturating_mul(10) <= room.saturating_mul(8) {
            return Fit::Fits;
        }
        let mut left_out = 0;
        for at in self.trimmable() {
            if tokens.saturating_mul(10) < room.saturating_mul(6) {
                break;
            }
            self.trimmed.insert(at);
            left_out += 1;
            tokens = self.visible_tokens();
        }
        let is_high = tokens.saturating_mul(10) > room.saturating_mul(8);
        match self.summary_position() {
            Some(position) if is_high && may_summarize => Fit::NeedsSummary(position),
            _ if tokens > room => Fit::Full,
            _ if left_out > 0 => Fit::Trimmed(left_out),
            _ => Fit::Fits,
        }
    }

    /// Returns the visible messages that a summary up to a position replaces.
    pub(crate) fn messages_to_sum_up(&self, position: usize) -> Vec<Message> {
        let begin = self.summary.as_ref().map_or(0, |(position, _)| *position);
        let count = position - begin + usize::from(self.summary.is_some());
        self.visible().into_iter().take(count).collect()
    }

    pub(crate) fn set_summary(&mut self, position: usize, summary: String) {
        self.summary = Some((position, summary));
    }

    /// Returns the positions of the results that may be left out, oldest first.
    fn trimmable(&self) -> Vec<usize> {
        let begin = self.summary.as_ref().map_or(0, |(position, _)| *position);
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
        let begin = self.summary.as_ref().map_or(0, |(position, _)| *position);
        let starts: Vec<usize> = self.turn_starts().filter(|at| *at > begin).collect();
        let candidates = &starts[..starts.len().saturating_sub(SPARED_TURNS - 1)];
        candidates.get(candidates.len() / 2).copied().filter(|at| *at > begin + 1)
    }

    fn turn_starts(&self) -> impl DoubleEndedIterator<Item = usize> {
        let is_answer = |(_, message): &(usize, &Message)| matches!(message, Message::Answer(_));
        self.messages.iter().enumerate().filter(is_answer).map(|(at, _)| at)
    }

    fn tokens(&self, messages: &[Message]) -> u64 {
        (self.raw_tokens(messages) as f64 * self.factor) as u64
    }

    fn raw_tokens(&self, messages: &[Message]) -> u64 {
        self.fixed + messages.iter().map(estimate_message).sum::<u64>()
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

fn left_out(result: &ToolResult) -> ToolResult {
    let line = format!(
        "[result of {}, {} bytes, left out to save context; call the tool again if you need it]",
        result.name,
        result_bytes(result)
    );
    ToolResult { content: vec![Content::Text(line)], ..result.clone() }
}

fn result_bytes(result: &ToolResult) -> usize {
    let size = |content: &Content| match content {
        Content::Text(text) => text.len(),
        Content::Image { base64, .. } => base64.len(),
    };
    result.content.iter().map(size).sum()
}
