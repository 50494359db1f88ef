//! Collects and coalesces notifications from the server.
//!
//! A server may announce a change a thousand times a second, so the feed is not a queue: it records what has changed
//! since the last read. Only log lines and updated URIs are kept individually, up to a limit.

use crate::Raw;
use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Maximum number of buffered log lines.
const LOGS: usize = 256;

/// Maximum number of buffered resource URIs; beyond it, the whole resource list counts as changed.
const UPDATES: usize = 1_024;

/// One notification.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The server lost the session and a new one was started: cached data may be stale.
    Renewed,
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// A resource has changed.
    ResourceUpdated(String),
    /// Log line of the server: the params of `notifications/message`.
    Log(Raw),
    /// Log line that belongs, or may belong, to a pending request; that request's log callback may have received it
    /// already.
    LogOfCall(Raw),
}

/// Receiver.
#[derive(Debug)]
pub struct NewsFeed(Arc<Board>);

/// Sender; dropping it ends the feed.
#[derive(Debug)]
pub(crate) struct NewsDesk(Arc<Board>);

/// State shared by sender and receiver.
#[derive(Debug, Default)]
struct Board {
    notes: Mutex<Notes>,
    changed: Notify,
}

/// Unread notifications.
#[derive(Debug, Default)]
struct Notes {
    renewed: bool,
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: BTreeSet<String>,
    logs: VecDeque<News>,
    over: bool,
}

pub(crate) fn feed() -> (NewsDesk, NewsFeed) {
    let board = Arc::<Board>::default();
    (NewsDesk(board.clone()), NewsFeed(board))
}

impl NewsFeed {
    /// Returns the next notification; `None` after the session has ended and everything was read.
    pub async fn next(&mut self) -> Option<News> {
        loop {
            let changed = self.0.changed.notified();
            {
                let mut notes = self.0.notes();
                if let Some(news) = notes.take() {
                    return Some(news);
                }
                if notes.over {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Returns the next notification if one is buffered.
    pub fn try_next(&mut self) -> Option<News> {
        self.0.notes().take()
    }
}

impl NewsDesk {
    pub(crate) fn tell(&self, news: News) {
        self.0.notes().note(news);
        self.0.changed.notify_one();
    }
}

impl Drop for NewsDesk {
    fn drop(&mut self) {
        self.0.notes().over = true;
        self.0.changed.notify_one();
    }
}

impl Board {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Plain flags and collections: a panic cannot leave them inconsistent.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes {
    fn note(&mut self, news: News) {
        match news {
            News::Renewed => self.renewed = true,
            News::ToolsChanged => self.tools = true,
            News::PromptsChanged => self.prompts = true,
            News::ResourcesChanged => self.resources = true,
            News::ResourceUpdated(_) if self.updated.len() >= UPDATES => self.resources = true,
            News::ResourceUpdated(uri) => {
                self.updated.insert(uri);
            }
            News::Log(line) => self.log(News::Log(line.detached())),
            News::LogOfCall(line) => self.log(News::LogOfCall(line.detached())),
        }
    }

    fn log(&mut self, line: News) {
        // Drop the oldest lines: the newest are the most useful.
        self.logs.truncate(LOGS - 1);
        self.logs.push_front(line);
    }

    fn take(&mut self) -> Option<News> {
        if mem::take(&mut self.renewed) {
            Some(News::Renewed)
        } else if mem::take(&mut self.tools) {
            Some(News::ToolsChanged)
        } else if mem::take(&mut self.prompts) {
            Some(News::PromptsChanged)
        } else if mem::take(&mut self.resources) {
            Some(News::ResourcesChanged)
        } else if let Some(uri) = self.updated.pop_first() {
            Some(News::ResourceUpdated(uri))
        } else {
            self.logs.pop_back()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_is_one_piece_of_news() {
        let (desk, mut feed) = feed();
        for _ in 0..100_000 {
            desk.tell(News::ToolsChanged);
            desk.tell(News::Log(Raw::empty_object()));
        }
        assert_eq!(feed.try_next(), Some(News::ToolsChanged));
        let logs = std::iter::from_fn(|| feed.try_next()).count();
        assert_eq!(logs, LOGS);
    }

    #[tokio::test]
    async fn the_feed_ends_with_the_desk() {
        let (desk, mut feed) = feed();
        desk.tell(News::PromptsChanged);
        drop(desk);
        assert_eq!(feed.next().await, Some(News::PromptsChanged));
        assert_eq!(feed.next().await, None);
    }
}
