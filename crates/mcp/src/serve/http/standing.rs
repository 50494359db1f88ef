//! The GET stream of a session, which carries notifications that belong to no request.

use super::{
    kept::{Event, EventId},
    response,
    sessions::Session,
};
use crate::{
    Outbound, Routing,
    serve::{announcements::Announcements, listen},
};
use bytes::Bytes;
use std::{collections::VecDeque, sync::Arc};
use tokio::time;

/// An open GET stream. After it is dropped, the client can resume it.
pub(super) struct Standing {
    session: Arc<Session>,
    /// Id of the last event sent.
    at: EventId,
    /// Events to replay before new ones.
    missed: VecDeque<Event>,
    /// Source of notifications; `None` when the service has ended.
    announcements: Option<Announcements>,
}

impl Standing {
    /// Opens a stream, or resumes one after the event `at` with the events in `missed`.
    pub(super) fn new(
        session: Arc<Session>,
        at: Option<EventId>,
        missed: Vec<Event>,
        announcements: Announcements,
    ) -> Standing {
        let at = at.unwrap_or_else(|| session.trails.new_stream());
        session.trails.stand(at);
        Standing { session, at, missed: missed.into(), announcements: Some(announcements) }
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
                Ok(Some(news)) => {
                    let wanted = listen::notification(&news).filter(|_| self.session.peer.wants(&news));
                    if let Some((method, params)) = wanted.filter(|_| self.session.trails.is_newest(self.at))
                    {
                        let (method, routing) = (method.into(), Routing::default());
                        let said = Outbound::Notification { method, params, routing };
                        return Some(self.session.trails.say(&mut self.at, &said));
                    }
                }
            }
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.session.trails.leave_standing(self.at, self.announcements.take());
    }
}
