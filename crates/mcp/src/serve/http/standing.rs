//! The standing stream of a session, over which its client hears what it did not ask for.

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

/// One standing stream; dropped, it can be gone on with.
pub(super) struct Standing {
    session: Arc<Session>,
    /// The last event.
    at: EventId,
    /// What its client has missed.
    missed: VecDeque<Event>,
    /// `None` once there are no more.
    announcements: Option<Announcements>,
}

impl Standing {
    /// A stream that goes on where another broke off, or begins.
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

    /// The next event, as it is written; `None` when there will be no more.
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
