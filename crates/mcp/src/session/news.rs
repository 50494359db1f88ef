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
const MAX_LOGS: usize = 256;

/// Maximum number of buffered resource URIs; beyond it, the whole resource list counts as changed.
const MAX_UPDATED_URIS: usize = 1_024;

/// Maximum number of buffered completions of elicitations.
const MAX_COMPLETED: usize = 256;

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
    /// The user has finished with a URL that the server asked to open: the params of
    /// `notifications/elicitation/complete`.
    ElicitationComplete(Raw),
}

/// Receiver.
#[derive(Debug)]
pub struct NewsFeed(Arc<NewsState>);

/// Sender; dropping it ends the feed.
#[derive(Debug)]
pub(crate) struct NewsSender(Arc<NewsState>);

/// State shared by sender and receiver.
#[derive(Debug, Default)]
struct NewsState {
    unread: Mutex<UnreadNews>,
    changed: Notify,
}

/// Unread notifications.
#[derive(Debug, Default)]
struct UnreadNews {
    renewed: bool,
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: BTreeSet<String>,
    logs: VecDeque<News>,
    completed: VecDeque<Raw>,
    has_ended: bool,
}

pub(crate) fn feed() -> (NewsSender, NewsFeed) {
    let state = Arc::<NewsState>::default();
    (NewsSender(state.clone()), NewsFeed(state))
}

impl NewsFeed {
    /// Returns the next notification; `None` after the session has ended and everything was read.
    pub async fn next(&mut self) -> Option<News> {
        loop {
            let changed = self.0.changed.notified();
            {
                let mut unread = self.0.unread();
                if let Some(news) = unread.pop() {
                    return Some(news);
                }
                if unread.has_ended {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Returns the next notification if one is buffered.
    pub fn try_next(&mut self) -> Option<News> {
        self.0.unread().pop()
    }
}

impl NewsSender {
    pub(crate) fn publish(&self, news: News) {
        self.0.unread().add(news);
        self.0.changed.notify_one();
    }
}

impl Drop for NewsSender {
    fn drop(&mut self) {
        self.0.unread().has_ended = true;
        self.0.changed.notify_one();
    }
}

impl NewsState {
    fn unread(&self) -> MutexGuard<'_, UnreadNews> {
        // Plain flags and collections: a panic cannot leave them inconsistent.
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnreadNews {
    fn add(&mut self, news: News) {
        match news {
            News::Renewed => self.renewed = true,
            News::ToolsChanged => self.tools = true,
            News::PromptsChanged => self.prompts = true,
            News::ResourcesChanged => self.resources = true,
            News::ResourceUpdated(_) if self.updated.len() >= MAX_UPDATED_URIS => self.resources = true,
            News::ResourceUpdated(uri) => {
                self.updated.insert(uri);
            }
            News::Log(line) => self.log(News::Log(line.detached())),
            News::LogOfCall(line) => self.log(News::LogOfCall(line.detached())),
            News::ElicitationComplete(_) if self.completed.len() >= MAX_COMPLETED => {}
            News::ElicitationComplete(params) => self.completed.push_back(params.detached()),
        }
    }

    fn log(&mut self, line: News) {
        // Drop the oldest lines: the newest are the most useful.
        self.logs.truncate(MAX_LOGS - 1);
        self.logs.push_front(line);
    }

    fn pop(&mut self) -> Option<News> {
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
        } else if let Some(params) = self.completed.pop_front() {
            Some(News::ElicitationComplete(params))
        } else {
            self.logs.pop_back()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_changes_are_coalesced() {
        let (sender, mut feed) = feed();
        for _ in 0..100_000 {
            sender.publish(News::ToolsChanged);
            sender.publish(News::Log(Raw::empty_object()));
        }
        assert_eq!(feed.try_next(), Some(News::ToolsChanged));
        let logs = std::iter::from_fn(|| feed.try_next()).count();
        assert_eq!(logs, MAX_LOGS);
    }

    #[tokio::test]
    async fn feed_ends_when_the_sender_is_dropped() {
        let (sender, mut feed) = feed();
        sender.publish(News::PromptsChanged);
        drop(sender);
        assert_eq!(feed.next().await, Some(News::PromptsChanged));
        assert_eq!(feed.next().await, None);
    }
}
