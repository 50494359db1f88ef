//! The stream on which a server of the handshake era says things unasked.
//!
//! Servers need not offer it. Those that do may close it at any time; it is then resumed after the last event.

use super::{
    Context,
    exchange::{RETRY, is_stream},
};
use crate::events::Events;
use std::{sync::Arc, time::Duration};
use tokio::time;

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(30);

/// Listens until the link ends, or the server says that there is nothing to hear.
pub(super) async fn run(context: Arc<Context>) {
    let mut pause = RETRY;
    let mut last: Option<String> = None;
    loop {
        match context.get(last.as_deref()).await {
            Ok(response) if response.status().is_server_error() => {}
            Ok(response) if !response.status().is_success() || !is_stream(response.headers()) => return,
            Ok(mut response) => {
                let mut events = Events::new(context.endpoint.frame_limit);
                // A broken event here is nobody's answer: begin again after the last good one.
                let _ = context.read_events(&mut response, &mut events, None).await;
                last = events.last_id.or(last);
                pause = events.retry.unwrap_or(RETRY).min(LONGEST);
            }
            Err(_) => pause = (pause * 2).min(LONGEST),
        }
        time::sleep(pause).await;
    }
}
