//! The GET stream of a session, which carries notifications that belong to no request.

use super::{
    replay_buffer::{BufferedEvent, EventId},
    response,
    sessions::HttpSession,
};
use crate::{
    Outbound, Routing,
    serve::{
        announcements::{Announcement, Announcements},
        listen,
    },
};
use bytes::Bytes;
use std::{collections::VecDeque, sync::Arc};
use tokio::time;

/// An open GET stream. After it is dropped, the client can resume it.
pub(super) struct NotificationStream {
    session: Arc<HttpSession>,
    /// Id of the last event sent.
    at: EventId,
    /// Events to replay before new ones.
    missed: VecDeque<BufferedEvent>,
    /// Source of notifications; `None` when the service has ended.
    announcements: Option<Announcements>,
}

impl NotificationStream {
    /// Opens a stream, or resumes one after the event `at` with the events in `missed`.
    pub(super) fn new(
        session: Arc<HttpSession>,
        at: Option<EventId>,
        missed: Vec<BufferedEvent>,
        announcements: Announcements,
    ) -> NotificationStream {
        let at = at.unwrap_or_else(|| session.streams.new_stream());
        session.streams.register_notification_stream(at);
        NotificationStream { session, at, missed: missed.into(), announcements: Some(announcements) }
    }

    /// Returns the next event in wire format, or `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(missed) = self.missed.pop_front() {
            return Some(missed.text);
        }
        loop {
            let announcements = self.announcements.as_mut()?;
            match time::timeout(response::KEEP_ALIVE, announcements.next()).await {
                Err(_) => return Some(response::keep_alive()),
                Ok(None) => self.announcements = None,
                Ok(Some(Announcement::Direct(message))) => {
                    if self.session.streams.is_newest(self.at) {
                        return Some(self.session.streams.record_event(&mut self.at, &message));
                    }
                }
                Ok(Some(Announcement::News(news))) => {
                    let wanted =
                        listen::notification(&news).filter(|_| self.session.peer.should_receive(&news));
                    if let Some((method, params)) = wanted.filter(|_| self.session.streams.is_newest(self.at))
                    {
                        let (method, routing) = (method.into(), Routing::default());
                        let message = Outbound::Notification { method, params, routing };
                        return Some(self.session.streams.record_event(&mut self.at, &message));
                    }
                }
            }
        }
    }
}

impl Drop for NotificationStream {
    fn drop(&mut self) {
        self.session.streams.detach_notification_stream(self.at, self.announcements.take());
    }
}
