//! What was said lately on the streams of one session, within bounds: for a client that has missed some of it.

use bytes::Bytes;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// How many events of one session are kept.
pub(super) const MOST: usize = 256;

/// How many bytes they may have together.
pub(super) const BYTES: usize = 64 << 10;

/// How many bytes the events of all sessions may have together.
const ALL: usize = 32 << 20;

/// What an event is called: no other event of its session is called the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

/// An event as it is written.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: EventId,
    pub(super) text: Bytes,
    /// Whether its stream ends with it.
    pub(super) is_last: bool,
}

/// How much all sessions keep.
#[derive(Clone, Debug, Default)]
pub(super) struct Room(Arc<AtomicUsize>);

/// The events of one session.
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

    /// An event was said. The oldest make room for it; one that is too long by itself is not kept.
    pub(super) fn keep(&mut self, event: &Event) {
        let newest = self.events.iter().rev().find(|it| it.id.stream == event.id.stream);
        // One that is said again is here already.
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

    /// What came after this event on the same stream, as far as it is still here.
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
        // What is too long takes the place of nothing for long.
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
