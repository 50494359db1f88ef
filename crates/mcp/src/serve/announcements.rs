//! Broadcasts notifications that belong to no request to all connected clients.
//!
//! A client that lags behind receives a list-changed notification for every list instead, so that it reads them
//! again. It does not get lost resource updates or log lines back.

use crate::{News, Raw};
use tokio::sync::broadcast::{self, error::RecvError};

/// List-changed notifications sent to a client that lagged behind.
const ALL_LISTS_CHANGED: [News; 3] = [News::ToolsChanged, News::PromptsChanged, News::ResourcesChanged];

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
    catch_up: Vec<News>,
}

impl Announcer {
    /// Creates a broadcast that buffers `capacity` notifications of each kind for the slowest receiver.
    pub(super) fn new(capacity: usize) -> Announcer {
        Announcer { news: broadcast::Sender::new(capacity), logs: broadcast::Sender::new(capacity) }
    }

    /// Sends to all receivers. Having no receiver is not an error.
    pub(super) fn announce(&self, news: News) {
        match news {
            News::Log(line) => _ = self.logs.send(line),
            news => _ = self.news.send(news),
        }
    }

    pub(super) fn subscribe(&self) -> Announcements {
        Announcements { news: self.news.subscribe(), logs: self.logs.subscribe(), catch_up: Vec::new() }
    }
}

impl Announcements {
    /// Returns the next notification, or `None` when the sender has been dropped. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<News> {
        loop {
            if let Some(news) = self.catch_up.pop() {
                return Some(news);
            }
            tokio::select! {
                biased;
                news = self.news.recv() => match news {
                    Ok(news) => return Some(news),
                    Err(RecvError::Lagged(_)) => self.catch_up = ALL_LISTS_CHANGED.to_vec(),
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
