//! Reads paginated lists, with limits against lists that never end.

use super::{Request, Session};
use crate::{Failure, Raw, json::splice, model::Listing};
use serde_json::value::RawValue;
use std::{collections::HashSet, time::Duration};
use tokio::time::Instant;

/// Lists that a server may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
}

/// Limits for reading one list.
#[derive(Clone, Copy, Debug)]
pub struct ListLimits {
    /// Maximum number of pages.
    pub pages: usize,
    /// Maximum number of items in total.
    pub items: usize,
    /// Timeout for the whole list.
    pub within: Duration,
}

impl Default for ListLimits {
    fn default() -> ListLimits {
        ListLimits { pages: 100, items: 5_000, within: Duration::from_secs(60) }
    }
}

impl List {
    /// Returns the method that reads the list.
    pub fn method(self) -> &'static str {
        match self {
            List::Tools => "tools/list",
            List::Prompts => "prompts/list",
            List::Resources => "resources/list",
            List::Templates => "resources/templates/list",
        }
    }

    fn key(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Prompts => "prompts",
            List::Resources => "resources",
            List::Templates => "resourceTemplates",
        }
    }

    fn capability(self) -> &'static str {
        match self {
            List::Templates => "resources",
            list => list.key(),
        }
    }
}

pub(super) async fn read(session: &Session, list: List) -> Result<Listing, Failure> {
    if !session.terms.offers(list.capability(), None) {
        return Ok(Listing::default());
    }
    let limits = session.settings.lists;
    let deadline = Instant::now() + limits.within;
    let mut listing = Listing::default();
    let mut seen = HashSet::new();
    let mut cursor: Option<Raw> = None;
    for _ in 0..limits.pages {
        let params = cursor.as_ref().map(|cursor| splice::object([("cursor", cursor.as_bytes())]));
        let request_deadline = deadline.min(Instant::now() + session.settings.request_timeout);
        let request = Request { params, ..Request::new(list.method()) }.deadline(request_deadline);
        let page = session.request(request).await?;
        listing.add_page(&page, list)?;
        if listing.items.len() > limits.items {
            return Err(endless(format!("more than {} items", limits.items)));
        }
        let Some(next) = page.member("nextCursor") else { return Ok(listing) };
        if !seen.insert(next.as_bytes().to_vec()) {
            return Err(endless("the server returned the same cursor twice".into()));
        }
        cursor = Some(next);
    }
    Err(endless(format!("more than {} pages", limits.pages)))
}

impl Listing {
    /// Adds one page.
    fn add_page(&mut self, page: &Raw, list: List) -> Result<(), Failure> {
        let items = page.member(list.key()).ok_or_else(|| missing_list(list))?;
        let text = items.clone().into_bytes();
        let items: Vec<&RawValue> = items.decode().map_err(|_| missing_list(list))?;
        self.items.extend(items.into_iter().map(|item| Raw::within(&text, item)));
        if let Some(ttl) = page.member("ttlMs").and_then(|ttl| ttl.decode::<f64>().ok()) {
            let ttl = Duration::from_millis(ttl.clamp(0.0, 86_400_000.0) as u64);
            self.ttl = Some(self.ttl.map_or(ttl, |before| before.min(ttl)));
        }
        self.private |= page.member("cacheScope").is_none_or(|scope| scope.as_bytes() != b"\"public\"");
        Ok(())
    }
}

fn missing_list(list: List) -> Failure {
    Failure::protocol(format!("the answer to `{}` has no list `{}`", list.method(), list.key()))
}

fn endless(why: String) -> Failure {
    Failure::protocol(format!("the list does not end: {why}"))
}
