//! Query parameters, and pagination of lists.

use super::{json_response, problem::Problem};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::json;
use std::ops::RangeInclusive;
use wharf_mcp::{Raw, serve::http::Body};

/// Default and maximum number of items on a page.
const DEFAULT_PAGE_SIZE: usize = 500;
pub(super) const MAX_PAGE_SIZE: usize = 500;

/// The query parameters of a request. Unknown and repeated ones are rejected.
#[derive(Debug)]
pub(super) struct Query {
    given: Vec<(String, String)>,
    known: &'static [&'static str],
}

impl Query {
    pub(super) fn read(query: Option<&str>, known: &'static [&'static str]) -> Result<Query, Problem> {
        let mut given: Vec<(String, String)> = Vec::new();
        for (key, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned() {
            if !known.contains(&key.as_str()) || given.iter().any(|(it, _)| *it == key) {
                return Err(invalid_parameter(&key, known));
            }
            given.push((key, value));
        }
        Ok(Query { given, known })
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.given.iter().find(|(it, _)| it == key).map(|(_, value)| value.as_str())
    }

    /// Reads a parameter that has a fixed set of values.
    pub(super) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let known = choices.iter().find(|(choice, _)| *choice == text).map(|(_, it)| *it);
        known.map(Some).ok_or_else(|| self.invalid_parameter(key))
    }

    pub(super) fn limit(&self, default_limit: usize) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else { return Ok(default_limit) };
        let digits = text.bytes().all(|it| it.is_ascii_digit());
        let limit = text.parse().ok().filter(|it| digits && (1..=MAX_PAGE_SIZE).contains(it));
        limit.ok_or_else(|| self.invalid_parameter("limit"))
    }

    /// Reads a whole number within a range.
    pub(super) fn number(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let digits = text.bytes().all(|it| it.is_ascii_digit());
        let number = text.parse().ok().filter(|it| digits && range.contains(it));
        number.map(Some).ok_or_else(|| self.invalid_parameter(key))
    }

    /// Reads a time of RFC 3339, in microseconds since 1970.
    pub(super) fn time(&self, key: &str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let time = text.parse::<Timestamp>().ok().map(|it| it.as_microsecond());
        time.map(Some).ok_or_else(|| self.invalid_parameter(key))
    }

    /// Returns whether the text contains the `q` parameter, ignoring case. Without `q` every text matches.
    pub(super) fn matches_search(&self, text: &str) -> bool {
        self.text("q").is_none_or(|q| text.to_lowercase().contains(&q.to_lowercase()))
    }

    pub(super) fn matches(&self, key: &str, value: &str) -> bool {
        self.text(key).is_none_or(|it| it == value)
    }

    pub(super) fn invalid_parameter(&self, key: &str) -> Problem {
        invalid_parameter(key, self.known)
    }

    /// Returns one page of a list whose items have unique keys.
    pub(super) fn page<T>(
        &self,
        all: &[T],
        key: impl Fn(&T) -> String,
        show: impl Fn(&T) -> Raw,
    ) -> Result<Response<Body>, Problem> {
        let limit = self.limit(DEFAULT_PAGE_SIZE)?;
        let start = match self.text("cursor") {
            None => 0,
            Some(cursor) => {
                let (at, last) = read_cursor(cursor).ok_or_else(|| self.invalid_parameter("cursor"))?;
                // The list may have changed since the last page, so the page starts after the last item that was
                // returned.
                all.iter().position(|it| key(it) == last).map_or(at, |it| it + 1)
            }
        };
        let page = &all[start.min(all.len())..all.len().min(start.saturating_add(limit))];
        let more = start.saturating_add(limit) < all.len();
        let next = page.last().filter(|_| more).map(|it| write_cursor(start + limit, &key(it)));
        Ok(list(page.iter().map(show).collect(), next))
    }
}

/// Builds a list response: the items and the cursor of the next page.
pub(super) fn list(items: Vec<Raw>, next: Option<String>) -> Response<Body> {
    let members = [("items", Raw::list(items)), ("next_cursor", json!(next).into())];
    json_response(StatusCode::OK, Raw::object(members))
}

fn write_cursor(at: usize, last: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{at} {last}"))
}

fn read_cursor(text: &str) -> Option<(usize, String)> {
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let (at, last) = text.split_once(' ')?;
    Some((at.parse().ok()?, last.to_owned()))
}

fn invalid_parameter(key: &str, known: &[&str]) -> Problem {
    let key = super::problem::shorten(key);
    let problem = Problem::new(StatusCode::BAD_REQUEST, format!("invalid query parameter `{key}`"));
    match known {
        [] => problem.hint("this path has no query parameters"),
        known => problem.hint(format!("the parameters are {}, each at most once", known.join(", "))),
    }
}
