//! The events of a run as server-sent events, with a comment whenever nothing happens for a while.

use crate::agent_runs::RunEvents;
use crate::api::projection::{FrameStream, FrameWriter, KEEP_ALIVE_INTERVAL, NextFrame};
use bytes::Bytes;
use std::sync::Arc;
use tokio::time::timeout;
use wharf_agent::AgentEvent;

pub(super) struct EventWriter {
    events: RunEvents,
    request_id: Option<String>,
    /// Text of the current answer, for clients that want all of it with every piece.
    accumulated: Option<String>,
}

/// Creates the body of the response. Dropping it drops the [`RunEvents`].
pub(super) fn create_body(
    events: RunEvents,
    request_id: Option<String>,
    accumulate: bool,
) -> FrameStream<EventWriter> {
    FrameStream::new(EventWriter { events, request_id, accumulated: accumulate.then(String::new) })
}

impl FrameWriter for EventWriter {
    async fn next_frame(mut self) -> NextFrame<Self> {
        match timeout(KEEP_ALIVE_INTERVAL, self.events.next()).await {
            Err(_) => Some((Bytes::from_static(b": alive\n\n"), self)),
            Ok(None) => None,
            Ok(Some((number, event))) => Some((self.write(number, &event), self)),
        }
    }
}

impl EventWriter {
    fn write(&mut self, number: u64, event: &Arc<AgentEvent>) -> Bytes {
        let (name, mut data) = event.to_json();
        match (&**event, &mut self.accumulated) {
            (AgentEvent::Text { delta, offset }, Some(accumulated)) => {
                if *offset == 0 {
                    accumulated.clear();
                }
                accumulated.push_str(delta);
                data["accumulated"] = accumulated.as_str().into();
            }
            (AgentEvent::Done(_), _) => data["request_id"] = self.request_id.clone().into(),
            _ => {}
        }
        Bytes::from(format!("id: {number}\nevent: {name}\ndata: {data}\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::projection::assert_comments_on_silence;

    #[tokio::test(start_paused = true)]
    async fn client_of_a_silent_run_gets_comments() {
        assert_comments_on_silence(create_body(RunEvents::silent(), None, false)).await;
    }
}
