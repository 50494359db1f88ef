//! What one client may hear unasked. Changes are made up for when some were missed; log lines are not.

use crate::{News, Raw};
use tokio::sync::broadcast::{self, error::RecvError};

/// What everything that can change is called.
const EVERYTHING: [News; 3] = [News::ToolsChanged, News::PromptsChanged, News::ResourcesChanged];

/// The teller's end.
#[derive(Debug)]
pub(super) struct Announcer {
    news: broadcast::Sender<News>,
    logs: broadcast::Sender<Raw>,
}

/// One client's end.
#[derive(Debug)]
pub(super) struct Announcements {
    news: broadcast::Receiver<News>,
    logs: broadcast::Receiver<Raw>,
    /// What has to be looked at again, because nobody knows any more what has changed.
    again: Vec<News>,
}

impl Announcer {
    /// With room for so many announcements of each kind for the slowest.
    pub(super) fn new(room: usize) -> Announcer {
        Announcer { news: broadcast::Sender::new(room), logs: broadcast::Sender::new(room) }
    }

    /// Nobody listening is fine.
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
    /// The next announcement; `None` when there are no more. Cancel-safe.
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
