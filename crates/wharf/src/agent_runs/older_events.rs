//! Events before the tail of a run's log, with the pieces of each text joined, so that a client that attaches late gets
//! the whole answer.

use super::run_log::NumberedEvent;
use std::{collections::VecDeque, sync::Arc};
use wharf_agent::AgentEvent;

/// Maximum size of the events that are kept, in bytes. Beyond it the oldest are dropped; the entries still have them.
const MAX_BYTES: usize = 4 << 20;
/// Assumed size of an event without its text, in bytes.
const EVENT_BYTES: usize = 256;

/// Events before the tail.
#[derive(Debug, Default)]
pub(super) struct OlderEvents {
    events: VecDeque<JoinedEvent>,
    bytes: usize,
}

/// One event, or pieces of a text that follow each other.
#[derive(Debug)]
struct JoinedEvent {
    /// Number of each piece, and the byte at which it ends.
    pieces: Vec<(u64, usize)>,
    event: Arc<AgentEvent>,
}

impl OlderEvents {
    /// Appends the next event, or joins it with the latest one.
    pub(super) fn push(&mut self, NumberedEvent { number, event }: NumberedEvent) {
        self.bytes += size_of(&event);
        if !self.events.back_mut().is_some_and(|it| it.join(number, &event)) {
            self.bytes += EVENT_BYTES;
            let pieces = vec![(number, size_of(&event))];
            self.events.push_back(JoinedEvent { pieces, event });
        }
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= EVENT_BYTES + size_of(&oldest.event);
        }
    }

    /// Returns what follows the event of this number. It has the number of its last piece.
    pub(super) fn after(&self, number: u64) -> Option<NumberedEvent> {
        let at = self.events.partition_point(|it| it.number() <= number);
        let found = self.events.get(at)?;
        Some(NumberedEvent { number: found.number(), event: found.after(number) })
    }
}

impl JoinedEvent {
    /// Returns the number of the last piece.
    fn number(&self) -> u64 {
        self.pieces.last().map_or(0, |(number, _)| *number)
    }

    /// Appends a piece of the same text. Returns whether it is one.
    fn join(&mut self, number: u64, event: &AgentEvent) -> bool {
        match (&*self.event, event) {
            (AgentEvent::Text { .. }, AgentEvent::Text { .. })
            | (AgentEvent::Thinking(_), AgentEvent::Thinking(_)) => {}
            _ => return false,
        }
        let more = text_of(event).unwrap_or_default();
        if let AgentEvent::Text { delta: text, .. } | AgentEvent::Thinking(text) =
            Arc::make_mut(&mut self.event)
        {
            text.push_str(more);
            self.pieces.push((number, text.len()));
        }
        true
    }

    /// Returns the pieces after the one of this number.
    fn after(&self, number: u64) -> Arc<AgentEvent> {
        let read = self.pieces.partition_point(|(piece, _)| *piece <= number);
        let Some((_, end)) = read.checked_sub(1).map(|it| self.pieces[it]) else { return self.event.clone() };
        Arc::new(match &*self.event {
            AgentEvent::Text { delta, offset } => {
                let offset = offset + delta[..end].chars().count();
                AgentEvent::Text { delta: delta[end..].to_owned(), offset }
            }
            AgentEvent::Thinking(text) => AgentEvent::Thinking(text[end..].to_owned()),
            other => other.clone(),
        })
    }
}

/// Returns the text of an event that is a piece of an answer.
fn text_of(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::Text { delta: text, .. } | AgentEvent::Thinking(text) => Some(text),
        _ => None,
    }
}

/// Returns the size of the text of an event: of a piece of an answer, or of the result of a call, which may be long.
fn size_of(event: &AgentEvent) -> usize {
    match event {
        AgentEvent::ToolCall(call) => call.result_text().len(),
        event => text_of(event).map_or(0, str::len),
    }
}
