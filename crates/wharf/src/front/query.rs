//! Query parameters, and pagination of lists.

use super::{json_response, problem::Problem};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{Response, StatusCode};
use serde_json::json;
use wharf_mcp::{Raw, serve::http::Body};

/// Default and maximum number of items on a page.
const PAGE: usize = 500;
pub(super) const LARGEST_PAGE: usize = 500;

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
                return Err(wrong(&key, known));
            }
            given.push((key, value));
        }
        Ok(Query { given, known })
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.given.iter().find(|(it, _)| it == key).map(|(_, value)| value.as_str())
    }

    /// Reads a parameter that has a fixed set of values.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let known = words.iter().find(|(word, _)| *word == text).map(|(_, it)| *it);
        known.map(Some).ok_or_else(|| self.wrong(key))
    }

    pub(super) fn limit(&self, usual: usize) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else { return Ok(usual) };
        let digits = text.bytes().all(|it| it.is_ascii_digit());
        let limit = text.parse().ok().filter(|it| digits && (1..=LARGEST_PAGE).contains(it));
        limit.ok_or_else(|| self.wrong("limit"))
    }

    /// Returns whether the text contains the `q` parameter, ignoring case. Without `q` every text matches.
    pub(super) fn finds(&self, text: &str) -> bool {
        self.text("q").is_none_or(|q| text.to_lowercase().contains(&q.to_lowercase()))
    }

    pub(super) fn is(&self, key: &str, value: &str) -> bool {
        self.text(key).is_none_or(|it| it == value)
    }

    pub(super) fn wrong(&self, key: &str) -> Problem {
        wrong(key, self.known)
    }

    /// Returns one page of a list whose items have unique keys.
    pub(super) fn page<T>(
        &self,
        all: &[T],
        key: impl Fn(&T) -> String,
        show: impl Fn(&T) -> Raw,
    ) -> Result<Response<Body>, Problem> {
        let limit = self.limit(PAGE)?;
        let start = match self.text("cursor") {
            None => 0,
            Some(cursor) => {
                let (at, last) = read_cursor(cursor).ok_or_else(|| self.wrong("cursor"))?;
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

fn wrong(key: &str, known: &[&str]) -> Problem {
    let key = super::problem::echo(key);
    let problem = Problem::new(StatusCode::BAD_REQUEST, format!("the parameter `{key}` cannot be used so"));
    match known {
        [] => problem.hint("there are no parameters here"),
        known => problem.hint(format!("there are {}, each at most once", known.join(", "))),
    }
}
