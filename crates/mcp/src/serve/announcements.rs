//! Broadcasts notifications that belong to no request to all connected clients.
//!
//! A client that lags behind receives a list-changed notification for every list instead, so that it reads them
//! again. It does not get lost resource updates or log lines back.

use super::client::Peer;
use crate::{News, Outbound, Raw};
use tokio::sync::broadcast::{self, error::RecvError};

/// List-changed notifications sent to a client that lagged behind.
const ALL_LISTS_CHANGED: [News; 3] = [News::ToolsChanged, News::PromptsChanged, News::ResourcesChanged];

/// Sends messages to the notification stream of one client, which is identified by its number.
pub(crate) type DirectSender = broadcast::Sender<(u64, Outbound)>;

/// Sending half of the broadcast.
#[derive(Debug)]
pub(super) struct Announcer {
    news: broadcast::Sender<News>,
    logs: broadcast::Sender<Raw>,
    direct: DirectSender,
}

/// A message for the stream of a client.
#[derive(Debug)]
pub(super) enum Announcement {
    /// A notification for every client that wants it.
    News(News),
    /// A message for this client only.
    Direct(Outbound),
}

/// Receiving half of the broadcast, one per client.
#[derive(Debug)]
pub(super) struct Announcements {
    news: broadcast::Receiver<News>,
    logs: broadcast::Receiver<Raw>,
    /// Messages for one client, and the number of this one.
    direct: Option<(u64, broadcast::Receiver<(u64, Outbound)>)>,
    /// Notifications still to deliver after the client lagged behind.
    catch_up: Vec<News>,
}

impl Announcer {
    /// Creates a broadcast that buffers `capacity` notifications of each kind for the slowest receiver.
    pub(super) fn new(capacity: usize) -> Announcer {
        Announcer {
            news: broadcast::Sender::new(capacity),
            logs: broadcast::Sender::new(capacity),
            direct: broadcast::Sender::new(capacity),
        }
    }

    /// Sends to all receivers. Having no receiver is not an error.
    pub(super) fn announce(&self, news: News) {
        match news {
            News::Log(line) => _ = self.logs.send(line),
            news => _ = self.news.send(news),
        }
    }

    pub(super) fn subscribe(&self) -> Announcements {
        let (news, logs, catch_up) = (self.news.subscribe(), self.logs.subscribe(), Vec::new());
        Announcements { news, logs, direct: None, catch_up }
    }

    /// Subscribes the notification stream of this client, which also carries messages for this client only.
    pub(super) fn subscribe_client(&self, peer: &Peer) -> Announcements {
        peer.direct.get_or_init(|| self.direct.clone());
        Announcements { direct: Some((peer.number, self.direct.subscribe())), ..self.subscribe() }
    }
}

impl Announcements {
    /// Returns the next message, or `None` when the sender has been dropped. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Announcement> {
        loop {
            if let Some(news) = self.catch_up.pop() {
                return Some(Announcement::News(news));
            }
            tokio::select! {
                biased;
                message = next_direct(&mut self.direct) => return Some(Announcement::Direct(message)),
                news = self.news.recv() => match news {
                    Ok(news) => return Some(Announcement::News(news)),
                    Err(RecvError::Lagged(_)) => self.catch_up = ALL_LISTS_CHANGED.to_vec(),
                    Err(RecvError::Closed) => return None,
                },
                line = self.logs.recv() => match line {
                    Ok(line) => return Some(Announcement::News(News::Log(line))),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

/// Returns the next message for this client. Never completes for a stream that carries none, or after the end of the
/// broadcast.
async fn next_direct(direct: &mut Option<(u64, broadcast::Receiver<(u64, Outbound)>)>) -> Outbound {
    while let Some((number, receiver)) = direct {
        match receiver.recv().await {
            Ok((to, message)) if to == *number => return message,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => break,
        }
    }
    std::future::pending().await
}
