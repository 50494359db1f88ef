//! The GET stream on which a handshake-era server sends notifications and requests of its own.
//!
//! Servers need not offer it and may close it at any time. The client then resumes it after the last event.

use super::{Context, exchange::DEFAULT_RETRY};
use crate::events::{SseParser, is_event_stream};
use std::{sync::Arc, time::Duration};
use tokio::time;

/// Maximum delay between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Reads the stream until the link ends or the server rejects it.
pub(super) async fn run(context: Arc<Context>) {
    let mut pause = DEFAULT_RETRY;
    let mut last: Option<String> = None;
    loop {
        match context.get(last.as_deref()).await {
            Ok(response) if response.status().is_server_error() => {}
            Ok(response) if !response.status().is_success() || !is_event_stream(response.headers()) => return,
            Ok(mut response) => {
                let mut events = SseParser::new(context.endpoint.frame_limit);
                // No request waits for an event on this stream. After an invalid one, resume from the last valid
                // event.
                let _ = context.read_events(&mut response, &mut events, None).await;
                last = events.last_id.or(last);
                pause = events.retry.unwrap_or(DEFAULT_RETRY).min(MAX_PAUSE);
            }
            Err(_) => pause = (pause * 2).min(MAX_PAUSE),
        }
        time::sleep(pause).await;
    }
}
