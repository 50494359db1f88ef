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
pub(super) const MOST: usize = 256;

/// Maximum total size of the events buffered per session, in bytes.
pub(super) const BYTES: usize = 64 << 10;

/// Maximum total size of the events buffered by all sessions, in bytes.
const ALL: usize = 32 << 20;

/// SSE event id, unique within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

/// One SSE event in wire format.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: EventId,
    pub(super) text: Bytes,
    /// Whether this event is the last of its stream.
    pub(super) is_last: bool,
}

/// Bytes buffered by all sessions together.
#[derive(Clone, Debug, Default)]
pub(super) struct Room(Arc<AtomicUsize>);

/// Replay buffer of one session.
#[derive(Debug, Default)]
pub(super) struct Kept {
    events: VecDeque<Event>,
    bytes: usize,
    room: Room,
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

impl Kept {
    pub(super) fn within(room: Room) -> Kept {
        Kept { room, events: VecDeque::new(), bytes: 0 }
    }

    /// Buffers an event and evicts the oldest ones until the limits hold.
    ///
    /// An event that exceeds the limits by itself evicts all others and is not buffered.
    pub(super) fn keep(&mut self, event: &Event) {
        let newest = self.events.iter().rev().find(|it| it.id.stream == event.id.stream);
        // A replayed event is already buffered.
        if newest.is_some_and(|it| it.id >= event.id) {
            return;
        }
        self.bytes += event.text.len();
        self.room.0.fetch_add(event.text.len(), Ordering::Relaxed);
        self.events.push_back(event.clone());
        while self.events.len() > MOST || self.bytes > BYTES || self.room.0.load(Ordering::Relaxed) > ALL {
            if !self.forget_oldest() {
                break;
            }
        }
    }

    /// Returns the buffered events that follow `last` on its stream.
    pub(super) fn after(&self, last: EventId) -> Vec<Event> {
        let missed = |it: &&Event| it.id.stream == last.stream && it.id.number > last.number;
        self.events.iter().filter(missed).cloned().collect()
    }

    fn forget_oldest(&mut self) -> bool {
        let Some(event) = self.events.pop_front() else { return false };
        self.bytes -= event.text.len();
        self.room.0.fetch_sub(event.text.len(), Ordering::Relaxed);
        true
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        while self.forget_oldest() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(stream: u64, number: u64, length: usize) -> Event {
        Event { id: EventId { stream, number }, text: vec![b'x'; length].into(), is_last: false }
    }

    fn missed(kept: &Kept, last: &str) -> Vec<u64> {
        kept.after(EventId::read(last).unwrap()).iter().map(|it| it.id.number).collect()
    }

    #[test]
    fn a_stream_has_its_own_events() {
        let mut kept = Kept::default();
        for (stream, number) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (1, 3), (1, 2)] {
            kept.keep(&event(stream, number, 1));
        }
        assert_eq!(missed(&kept, "1-1"), [2, 3]);
        assert_eq!(missed(&kept, "2-0"), [1, 2]);
        assert_eq!(missed(&kept, "3-0"), [] as [u64; 0]);
    }

    #[test]
    fn the_oldest_make_room() {
        let mut kept = Kept::default();
        (1..=300).for_each(|number| kept.keep(&event(1, number, 1)));
        assert_eq!(missed(&kept, "1-0").len(), MOST);
        assert_eq!(missed(&kept, "1-0")[0], 45);
        kept.keep(&event(1, 301, BYTES - 2));
        assert_eq!(missed(&kept, "1-0"), [299, 300, 301]);
        // An event above the limit is evicted at once, together with all others.
        kept.keep(&event(1, 302, BYTES + 1));
        assert_eq!(missed(&kept, "1-0"), [] as [u64; 0]);
    }

    #[test]
    fn all_sessions_have_room_together() {
        let room = Room::default();
        let mut sessions: Vec<Kept> = (0..600).map(|_| Kept::within(room.clone())).collect();
        sessions.iter_mut().for_each(|it| it.keep(&event(1, 1, BYTES)));
        assert!(room.0.load(Ordering::Relaxed) <= ALL);
        drop(sessions);
        assert_eq!(room.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let id = EventId { stream: 7, number: 12 };
        assert_eq!(EventId::read(&id.to_string()), Some(id));
        for odd in ["", "7", "7-", "-7", "a-b", "7-12-1", "99999999999999999999-1", "7_12"] {
            assert_eq!(EventId::read(odd), None, "{odd}");
        }
    }
}
