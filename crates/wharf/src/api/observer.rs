//! Observes the runtime for what the API reports later: the latest log lines, circuit breakers, and calls in flight.
//!
//! It receives changes only, so calls that succeed cost nothing here.

use super::ApiState;
use crate::{call_stats::FINE_STEP, logs::recent};
use std::{future, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use wharf_runtime::EventKind;

/// Observes until the runtime has shut down. Never returns.
pub(super) async fn observe(shared: &ApiState) {
    let ApiState { handle, journal, .. } = shared;
    let mut changes = handle.changes();
    let mut ticks = interval(Duration::from_secs(FINE_STEP));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => journal.stats().sample(handle.in_flight()),
            event = changes.next() => match event {
                Some(event) => {
                    recent().keep(&event);
                    if let EventKind::Breaker(state) = event.what {
                        journal.stats().note_breaker(&event.source, event.at, state.as_str());
                    }
                }
                None => future::pending().await,
            },
        }
    }
}
