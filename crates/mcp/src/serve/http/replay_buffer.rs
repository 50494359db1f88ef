//! Replay buffer of one session: recent SSE events, bounded in number and bytes, for clients that resume a stream.

use bytes::Bytes;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Maximum number of events buffered per session.
pub(super) const MAX_EVENTS: usize = 256;

/// Maximum total size of the events buffered per session, in bytes.
pub(super) const MAX_SESSION_BYTES: usize = 64 << 10;

/// Maximum total size of the events buffered by all sessions, in bytes.
const MAX_TOTAL_BYTES: usize = 32 << 20;

/// SSE event id, unique within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

/// One SSE event in wire format.
#[derive(Clone, Debug)]
pub(super) struct BufferedEvent {
    pub(super) id: EventId,
    pub(super) text: Bytes,
    /// Whether this event is the last of its stream.
    pub(super) is_last: bool,
}

/// Bytes buffered by all sessions together.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplayBudget(Arc<AtomicUsize>);

/// Replay buffer of one session.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    events: VecDeque<BufferedEvent>,
    bytes: usize,
    budget: ReplayBudget,
}

impl EventId {
    pub(super) fn read(text: &str) -> Option<EventId> {
        let (stream, number) = text.split_once('-')?;
        Some(EventId { stream: stream.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

impl ReplayBuffer {
    pub(super) fn with_budget(budget: ReplayBudget) -> ReplayBuffer {
        ReplayBuffer { budget, events: VecDeque::new(), bytes: 0 }
    }

    /// Buffers an event and evicts the oldest ones until the limits hold.
    ///
    /// An event that exceeds the limits by itself evicts all others and is not buffered.
    pub(super) fn push(&mut self, event: &BufferedEvent) {
        let newest = self.events.iter().rev().find(|it| it.id.stream == event.id.stream);
        // A replayed event is already buffered.
        if newest.is_some_and(|it| it.id >= event.id) {
            return;
        }
        self.bytes += event.text.len();
        self.budget.0.fetch_add(event.text.len(), Ordering::Relaxed);
        self.events.push_back(event.clone());
        while self.events.len() > MAX_EVENTS
            || self.bytes > MAX_SESSION_BYTES
            || self.budget.0.load(Ordering::Relaxed) > MAX_TOTAL_BYTES
        {
            if !self.evict_oldest() {
                break;
            }
        }
    }

    /// Returns the buffered events that follow `last` on its stream.
    pub(super) fn after(&self, last: EventId) -> Vec<BufferedEvent> {
        let missed = |it: &&BufferedEvent| it.id.stream == last.stream && it.id.number > last.number;
        self.events.iter().filter(missed).cloned().collect()
    }

    fn evict_oldest(&mut self) -> bool {
        let Some(event) = self.events.pop_front() else { return false };
        self.bytes -= event.text.len();
        self.budget.0.fetch_sub(event.text.len(), Ordering::Relaxed);
        true
    }
}

impl Drop for ReplayBuffer {
    fn drop(&mut self) {
        while self.evict_oldest() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(stream: u64, number: u64, length: usize) -> BufferedEvent {
        BufferedEvent { id: EventId { stream, number }, text: vec![b'x'; length].into(), is_last: false }
    }

    fn missed(buffer: &ReplayBuffer, last: &str) -> Vec<u64> {
        buffer.after(EventId::read(last).unwrap()).iter().map(|it| it.id.number).collect()
    }

    #[test]
    fn events_are_replayed_per_stream() {
        let mut buffer = ReplayBuffer::default();
        for (stream, number) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (1, 3), (1, 2)] {
            buffer.push(&event(stream, number, 1));
        }
        assert_eq!(missed(&buffer, "1-1"), [2, 3]);
        assert_eq!(missed(&buffer, "2-0"), [1, 2]);
        assert_eq!(missed(&buffer, "3-0"), [] as [u64; 0]);
    }

    #[test]
    fn the_oldest_events_are_evicted() {
        let mut buffer = ReplayBuffer::default();
        (1..=300).for_each(|number| buffer.push(&event(1, number, 1)));
        assert_eq!(missed(&buffer, "1-0").len(), MAX_EVENTS);
        assert_eq!(missed(&buffer, "1-0")[0], 45);
        buffer.push(&event(1, 301, MAX_SESSION_BYTES - 2));
        assert_eq!(missed(&buffer, "1-0"), [299, 300, 301]);
        // An event above the limit is evicted at once, together with all others.
        buffer.push(&event(1, 302, MAX_SESSION_BYTES + 1));
        assert_eq!(missed(&buffer, "1-0"), [] as [u64; 0]);
    }

    #[test]
    fn all_sessions_share_one_budget() {
        let budget = ReplayBudget::default();
        let mut sessions: Vec<ReplayBuffer> =
            (0..600).map(|_| ReplayBuffer::with_budget(budget.clone())).collect();
        sessions.iter_mut().for_each(|it| it.push(&event(1, 1, MAX_SESSION_BYTES)));
        assert!(budget.0.load(Ordering::Relaxed) <= MAX_TOTAL_BYTES);
        drop(sessions);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn event_ids_round_trip() {
        let id = EventId { stream: 7, number: 12 };
        assert_eq!(EventId::read(&id.to_string()), Some(id));
        for odd in ["", "7", "7-", "-7", "a-b", "7-12-1", "99999999999999999999-1", "7_12"] {
            assert_eq!(EventId::read(odd), None, "{odd}");
        }
    }
}
