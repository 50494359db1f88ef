//! Broadcasts notifications that belong to no request to all connected clients.
//!
//! A client that lags behind receives a list-changed notification for every list instead, so that it reads them
//! again. It does not get lost resource updates or log lines back.

use crate::{News, Raw};
use tokio::sync::broadcast::{self, error::RecvError};

/// List-changed notifications sent to a client that lagged behind.
const EVERYTHING: [News; 3] = [News::ToolsChanged, News::PromptsChanged, News::ResourcesChanged];

/// Sending half of the broadcast.
#[derive(Debug)]
pub(super) struct Announcer {
    news: broadcast::Sender<News>,
    logs: broadcast::Sender<Raw>,
}

/// Receiving half of the broadcast, one per client.
#[derive(Debug)]
pub(super) struct Announcements {
    news: broadcast::Receiver<News>,
    logs: broadcast::Receiver<Raw>,
    /// Notifications still to deliver after the client lagged behind.
    again: Vec<News>,
}

impl Announcer {
    /// Creates a broadcast that buffers `room` notifications of each kind for the slowest receiver.
    pub(super) fn new(room: usize) -> Announcer {
        Announcer { news: broadcast::Sender::new(room), logs: broadcast::Sender::new(room) }
    }

    /// Sends to all receivers. Having no receiver is not an error.
    pub(super) fn tell(&self, news: News) {
        match news {
            News::Log(line) => _ = self.logs.send(line),
            news => _ = self.news.send(news),
        }
    }

    pub(super) fn listen(&self) -> Announcements {
        Announcements { news: self.news.subscribe(), logs: self.logs.subscribe(), again: Vec::new() }
    }
}

impl Announcements {
    /// Returns the next notification, or `None` when the sender has been dropped. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<News> {
        loop {
            if let Some(news) = self.again.pop() {
                return Some(news);
            }
            tokio::select! {
                biased;
                news = self.news.recv() => match news {
                    Ok(news) => return Some(news),
                    Err(RecvError::Lagged(_)) => self.again = EVERYTHING.to_vec(),
                    Err(RecvError::Closed) => return None,
                },
                line = self.logs.recv() => match line {
                    Ok(line) => return Some(News::Log(line)),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}
