//! The queue of a paced listener, which receives at most one batch of events in each interval.
//!
//! The listener takes a batch when it can; until then the queue collects. It keeps states first, then failed calls, then
//! the newest of the rest, and counts what it skips, so it is bounded however slow the listener is.

use bytes::Bytes;
use serde_json::json;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};
use wharf_runtime::time_format::rfc3339;

/// Maximum number of events in a batch.
const MAX_BATCH_EVENTS: usize = 200;

/// Maximum number of states, and of failed calls, that wait for later batches.
const MAX_WAITING_EVENTS: usize = 2_000;

/// Kinds of events that may be skipped. All other kinds are states.
const SKIPPABLE_KINDS: [&str; 5] = ["call", "begun", "progress", "log", "stderr"];

/// An event as all listeners receive it.
#[derive(Clone, Debug)]
pub(super) struct PublishedEvent {
    pub(super) number: u64,
    pub(super) kind: &'static str,
    /// A call that did not succeed.
    pub(super) is_failure: bool,
    /// The event as JSON.
    pub(super) json: Bytes,
}

/// Collects events until the listener takes them.
#[derive(Debug, Default)]
pub(super) struct PacedQueue(Mutex<WaitingEvents>);

#[derive(Debug, Default)]
struct WaitingEvents {
    states: VecDeque<PublishedEvent>,
    failures: VecDeque<PublishedEvent>,
    /// The newest of all other events.
    others: VecDeque<PublishedEvent>,
    /// Number of skipped events by kind, since the last batch.
    skipped: BTreeMap<&'static str, u64>,
}

impl PacedQueue {
    pub(super) fn push(&self, event: PublishedEvent) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let WaitingEvents { states, failures, others, skipped } = &mut *waiting;
        let (queue, longest) = match SKIPPABLE_KINDS.contains(&event.kind) {
            true if event.is_failure => (failures, MAX_WAITING_EVENTS),
            true => (others, MAX_BATCH_EVENTS),
            false => (states, MAX_WAITING_EVENTS),
        };
        queue.push_back(event);
        if queue.len() > longest
            && let Some(oldest) = queue.pop_front()
        {
            *skipped.entry(oldest.kind).or_default() += 1;
        }
    }

    /// Takes the next batch as a server-sent event, if there is anything to tell.
    pub(super) fn take_batch(&self) -> Option<Bytes> {
        let (batch, skipped) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if batch.is_empty() && skipped.is_empty() {
            return None;
        }
        let number = batch.last().map(|it| it.number);
        let head = json!({ "at": rfc3339(SystemTime::now()), "source": null, "kind": "batch" }).to_string();
        let mut text = String::with_capacity(256 + batch.iter().map(|it| it.json.len() + 1).sum::<usize>());
        if let Some(number) = number {
            text += &format!("id: {number}\n");
        }
        text += "event: batch\ndata: ";
        // The events are JSON already, so the document is put together as text.
        text += head.trim_end_matches('}');
        text += ",\"data\":{\"events\":[";
        for (place, event) in batch.iter().enumerate() {
            text += if place == 0 { "" } else { "," };
            text += std::str::from_utf8(&event.json).unwrap_or("null");
        }
        text += &format!("],\"skipped\":{}}}}}\n\n", json!(skipped));
        Some(text.into())
    }
}

impl WaitingEvents {
    /// Takes at most a batch, in the order of publication, and what was skipped. States and failed calls that do not
    /// fit wait for the next batch.
    fn take(&mut self) -> (Vec<PublishedEvent>, BTreeMap<&'static str, u64>) {
        let mut batch: Vec<PublishedEvent> = Vec::new();
        for queue in [&mut self.states, &mut self.failures] {
            let count = queue.len().min(MAX_BATCH_EVENTS - batch.len());
            batch.extend(queue.drain(..count));
        }
        let kept = self.others.len().min(MAX_BATCH_EVENTS - batch.len());
        for skipped in self.others.drain(..self.others.len() - kept) {
            *self.skipped.entry(skipped.kind).or_default() += 1;
        }
        batch.extend(self.others.drain(..));
        batch.sort_by_key(|it| it.number);
        (batch, std::mem::take(&mut self.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn event(number: u64, kind: &'static str, is_failure: bool) -> PublishedEvent {
        PublishedEvent {
            number,
            kind,
            is_failure,
            json: json!({ "n": number, "kind": kind }).to_string().into(),
        }
    }

    fn batch(queue: &PacedQueue) -> Option<Value> {
        let text = queue.take_batch()?;
        let text = std::str::from_utf8(&text).expect("text");
        let data = text.lines().find_map(|it| it.strip_prefix("data: ")).expect("data");
        Some(serde_json::from_str(data).expect("JSON"))
    }

    #[test]
    fn states_and_failures_are_kept_and_the_rest_is_counted() {
        let queue = PacedQueue::default();
        assert!(batch(&queue).is_none());
        for number in 0..10_000 {
            match number {
                n if n % 1_000 == 7 => queue.push(event(n, "breaker", false)),
                n if n % 100 == 3 => queue.push(event(n, "call", true)),
                n => queue.push(event(n, "call", false)),
            }
        }
        let batch = batch(&queue).expect("a batch");
        let events = batch["data"]["events"].as_array().expect("events");
        assert_eq!(events.len(), 200);
        let numbers: Vec<u64> = events.iter().filter_map(|it| it["n"].as_u64()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        let count = |is: &dyn Fn(u64) -> bool| numbers.iter().filter(|it| is(**it)).count();
        assert_eq!((count(&|it| it % 1_000 == 7), count(&|it| it % 100 == 3)), (10, 100));
        assert_eq!(batch["data"]["skipped"], json!({ "call": 10_000 - 200 }));
        assert_eq!(numbers.last(), Some(&9_999));
    }

    #[test]
    fn what_does_not_fit_waits_for_the_next_batch_and_is_bounded() {
        let queue = PacedQueue::default();
        (0..450).for_each(|it| queue.push(event(it, "call", true)));
        for expected in [200, 200, 50] {
            let batch = batch(&queue).expect("a batch");
            assert_eq!(batch["data"]["events"].as_array().map(Vec::len), Some(expected));
            assert_eq!(batch["data"]["skipped"], json!({}));
        }
        assert!(batch(&queue).is_none());
        (0..3_000).for_each(|it| queue.push(event(it, "exception", false)));
        assert_eq!(batch(&queue).expect("a batch")["data"]["skipped"], json!({ "exception": 1_000 }));
    }
}
