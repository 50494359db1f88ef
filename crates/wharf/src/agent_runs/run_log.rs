//! The events of one run, for every client that follows it.
//!
//! The log keeps the latest events, so that a client can attach again; earlier pieces of a text are joined. Pieces of text that no client has read yet are
//! merged into one, so a slow client costs the text of the answer and not an event for each piece.

use super::older_events::OlderEvents;
use crate::agent_activity::is_sent_call;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::sleep};
use wharf_agent::{AgentEvent, RunReport};

/// Number of events that are kept for clients that attach again.
const MAX_KEPT_EVENTS: usize = 1_000;

/// Events of one run.
#[derive(Debug)]
pub(crate) struct RunLog {
    kept: Mutex<KeptEvents>,
    /// Number of the latest event, and whether it is the last one.
    latest: watch::Sender<LogPosition>,
    readers: AtomicUsize,
}

#[derive(Debug, Default)]
struct KeptEvents {
    /// Events before the latest ones.
    older: OlderEvents,
    events: VecDeque<NumberedEvent>,
    /// Number of the latest event that a client has read.
    read: u64,
    /// Whether a call was sent.
    has_called: bool,
}

/// An event and its number, which begins at 1.
#[derive(Clone, Debug)]
pub(crate) struct NumberedEvent {
    pub(crate) number: u64,
    pub(crate) event: Arc<AgentEvent>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LogPosition {
    number: u64,
    /// Counts merged pieces of text too.
    changes: u64,
    is_closed: bool,
    /// Whether the run waits for decisions, and goes on in this log after them.
    is_paused: bool,
}

/// Next step of a client through the log.
#[derive(Debug)]
pub(crate) enum LogStep {
    /// The next event.
    Event(NumberedEvent),
    /// Nothing until people have decided about calls.
    Paused,
    /// Nothing more.
    End,
}

/// One client's position in the events of a run.
#[derive(Debug)]
pub(crate) struct RunReader {
    log: Arc<RunLog>,
    latest: watch::Receiver<LogPosition>,
    /// Number of the latest event that this client has read.
    read: u64,
}

impl RunLog {
    pub(super) fn new() -> Arc<RunLog> {
        Arc::new(RunLog {
            kept: Mutex::default(),
            latest: watch::Sender::default(),
            readers: AtomicUsize::new(0),
        })
    }

    /// Appends an event.
    pub(super) fn push(&self, event: AgentEvent) {
        let mut kept = self.kept();
        let number = kept.push(event);
        drop(kept);
        self.latest.send_modify(|it| {
            it.number = number;
            it.changes += 1;
        });
    }

    /// Ends the stream of every client, after the last event.
    pub(super) fn close(&self) {
        self.latest.send_modify(|it| {
            it.is_closed = true;
            it.changes += 1;
        });
    }

    /// Returns whether the run waits for decisions.
    pub(super) fn set_paused(&self, is_paused: bool) {
        self.latest.send_modify(|it| {
            it.is_paused = is_paused;
            it.changes += 1;
        });
    }

    /// Returns a reader of the events from now on.
    pub(super) fn read_new(self: &Arc<RunLog>) -> RunReader {
        self.read_after(self.latest.borrow().number)
    }

    /// Returns a reader that continues after the event of this number.
    pub(super) fn read_after(self: &Arc<RunLog>, number: u64) -> RunReader {
        self.readers.fetch_add(1, Ordering::Relaxed);
        RunReader { log: self.clone(), latest: self.latest.subscribe(), read: number }
    }

    /// Returns whether a run that waited continues without a client.
    pub(super) fn is_resumed_unread(&self) -> bool {
        self.latest.borrow().number > 0 && self.is_unread()
    }

    /// Returns whether no client follows the run.
    pub(super) fn is_unread(&self) -> bool {
        self.readers.load(Ordering::Relaxed) == 0
    }

    /// Returns whether the run has ended without an answer and sent no call.
    pub(super) fn is_without_effect(&self, is_answer: impl Fn(&RunReport) -> bool) -> bool {
        let is_closed = self.latest.borrow().is_closed;
        let kept = self.kept();
        let has_failed = match kept.events.back().map(|it| &*it.event) {
            Some(AgentEvent::Done(report)) => !is_answer(report),
            // A run that is aborted has no report.
            _ => is_closed,
        };
        has_failed && !kept.has_called
    }

    fn kept(&self) -> MutexGuard<'_, KeptEvents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptEvents {
    /// Appends an event, or merges it into the latest one. Returns the number of the latest event.
    fn push(&mut self, event: AgentEvent) -> u64 {
        self.has_called |= is_sent_call(&event);
        let number = self.events.back().map_or(0, |it| it.number);
        if let Some(latest) = self.events.back_mut().filter(|it| it.number > self.read)
            && let Some(merged) = merge(&latest.event, &event)
        {
            latest.event = Arc::new(merged);
            return number;
        }
        self.events.push_back(NumberedEvent { number: number + 1, event: Arc::new(event) });
        if self.events.len() > MAX_KEPT_EVENTS {
            self.events.pop_front().into_iter().for_each(|it| self.older.push(it));
        }
        number + 1
    }

    fn after(&mut self, number: u64) -> Option<NumberedEvent> {
        let first = self.events.front()?.number;
        let at = usize::try_from((number + 1).saturating_sub(first)).ok()?;
        let older = self.older.after(number).filter(|_| number + 1 < first);
        let found = older.or_else(|| self.events.get(at).cloned())?;
        self.read = self.read.max(found.number);
        Some(found)
    }
}

/// Merges two pieces of text or of reasoning.
fn merge(earlier: &AgentEvent, later: &AgentEvent) -> Option<AgentEvent> {
    match (earlier, later) {
        (AgentEvent::Text { delta, offset }, AgentEvent::Text { delta: more, .. }) => {
            Some(AgentEvent::Text { delta: format!("{delta}{more}"), offset: *offset })
        }
        (AgentEvent::Thinking(text), AgentEvent::Thinking(more)) => {
            Some(AgentEvent::Thinking(format!("{text}{more}")))
        }
        _ => None,
    }
}

impl RunReader {
    /// Returns the log that this client reads.
    pub(super) fn log(&self) -> Arc<RunLog> {
        self.log.clone()
    }

    /// Waits for the next event. Returns `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<NumberedEvent> {
        loop {
            match self.next_step().await {
                LogStep::Event(found) => return Some(found),
                LogStep::End => return None,
                LogStep::Paused if self.latest.changed().await.is_err() => return None,
                LogStep::Paused => {}
            }
        }
    }

    /// Waits for the next event, the end of the log, or a pause after the latest event.
    pub(crate) async fn next_step(&mut self) -> LogStep {
        loop {
            let position = *self.latest.borrow_and_update();
            if let Some(found) = self.log.kept().after(self.read) {
                self.read = found.number;
                return LogStep::Event(found);
            }
            if position.is_paused {
                return LogStep::Paused;
            }
            if position.is_closed || self.latest.changed().await.is_err() {
                return LogStep::End;
            }
        }
    }
}

impl Drop for RunReader {
    fn drop(&mut self) {
        self.log.readers.fetch_sub(1, Ordering::Relaxed);
        // The run may end because nobody follows it.
        self.log.latest.send_modify(|it| it.changes += 1);
    }
}

impl RunLog {
    /// Waits until no client has followed the run for this time. Only call it after the first client has attached.
    pub(super) async fn wait_until_unread_for(&self, grace: Duration) {
        loop {
            self.wait_until_unread().await;
            sleep(grace).await;
            if self.is_unread() {
                return;
            }
        }
    }

    async fn wait_until_unread(&self) {
        let mut latest = self.latest.subscribe();
        while !self.is_unread() {
            if latest.changed().await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(delta: &str) -> AgentEvent {
        AgentEvent::Text { delta: delta.to_owned(), offset: 0 }
    }

    #[tokio::test]
    async fn unread_text_is_merged_and_the_last_event_ends_the_stream() {
        let log = RunLog::new();
        let mut reader = log.read_after(0);
        log.push(text("a"));
        log.push(text("b"));
        let first = reader.next().await.expect("an event");
        assert_eq!((first.number, &*first.event), (1, &text("ab")));
        log.push(text("c"));
        log.push(AgentEvent::Reset);
        log.close();
        let mut rest = Vec::new();
        while let Some(next) = reader.next().await {
            rest.push((next.number, (*next.event).clone()));
        }
        assert_eq!(rest, [(2, text("c")), (3, AgentEvent::Reset)]);
        let mut again = log.read_after(2);
        assert_eq!(again.next().await.map(|it| it.number), Some(3));
        assert!(!log.is_unread());
        drop((reader, again));
        assert!(log.is_unread());
    }

    #[tokio::test]
    async fn a_pause_comes_after_the_events_and_ends_with_the_next_one() {
        let log = RunLog::new();
        let mut reader = log.read_after(0);
        log.push(text("a"));
        log.set_paused(true);
        assert!(matches!(reader.next_step().await, LogStep::Event(_)));
        assert!(matches!(reader.next_step().await, LogStep::Paused));
        let mut late = log.read_new();
        log.set_paused(false);
        log.push(text("b"));
        log.close();
        assert_eq!(reader.next().await.map(|it| it.number), Some(2));
        assert_eq!(late.next().await.map(|it| it.number), Some(2));
        assert!(matches!(late.next_step().await, LogStep::End));
    }

    #[tokio::test]
    async fn a_reader_that_is_late_gets_the_whole_text() {
        let log = RunLog::new();
        let mut first = log.read_after(0);
        let pieces = MAX_KEPT_EVENTS + 500;
        log.push(AgentEvent::Reset);
        first.next().await.expect("an event");
        for offset in 0..pieces {
            log.push(AgentEvent::Text { delta: "ü".to_owned(), offset });
            first.next().await.expect("an event");
        }
        log.close();
        for after in [0, 1, 2, 300, 501, 502, 1_400] {
            let mut reader = log.read_after(after);
            let (mut length, mut number) = ((after as usize).saturating_sub(1), after);
            while let Some(next) = reader.next().await {
                assert!(next.number > number, "{} after {number}", next.number);
                number = next.number;
                match &*next.event {
                    AgentEvent::Text { delta, offset } => {
                        assert_eq!(*offset, length, "after {after}");
                        length += delta.chars().count();
                    }
                    event => assert_eq!((event, after), (&AgentEvent::Reset, 0)),
                }
            }
            assert_eq!((length, number), (pieces, pieces as u64 + 1), "after {after}");
        }
    }

    #[tokio::test]
    async fn the_oldest_events_of_a_huge_run_are_dropped() {
        let log = RunLog::new();
        let mut first = log.read_after(0);
        for _ in 0..MAX_KEPT_EVENTS {
            log.push(AgentEvent::Reset);
            log.push(text(&"a".repeat(64 << 10)));
            first.next().await.expect("an event");
            first.next().await.expect("an event");
        }
        let mut reader = log.read_after(0);
        let oldest = reader.next().await.expect("an event").number;
        assert!((870..=880).contains(&oldest), "4 MiB are about 128 of these events: {oldest}");
    }
}
