//! `GET /api/v1/logs`: the latest log lines of the servers and of wharf itself, newest first.

use super::HandlerResult;
use crate::{
    api::query::{self, Query},
    logs::{LEVELS, LogLine, recent},
};
use serde_json::json;
use std::time::{Duration, UNIX_EPOCH};
use wharf_mcp::Raw;
use wharf_runtime::time_format::rfc3339;

/// Default number of lines on a page.
const DEFAULT_PAGE_SIZE: usize = 200;

const KINDS: &[(&str, &str)] =
    &[("stderr", "stderr"), ("log", "log"), ("exception", "exception"), ("wharf", "wharf")];

pub(super) fn list(query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["source", "level", "kind", "q", "since", "limit", "cursor"])?;
    let kind = query.choice("kind", KINDS)?;
    let level = match query.text("level") {
        Some(name) => {
            let level = LEVELS.iter().position(|it| *it == name);
            level.ok_or_else(|| query.invalid_parameter("level"))?
        }
        None => 0,
    };
    let since = query.time("since")?.and_then(|it| u64::try_from(it).ok());
    let since = since.map(|it| UNIX_EPOCH + Duration::from_micros(it));
    let before = query.number("cursor", 0..=u64::MAX)?;
    let limit = query.limit(DEFAULT_PAGE_SIZE)?;
    let (lines, has_more) = recent().newest(before, limit, |it| {
        query.matches("source", &it.source)
            && kind.is_none_or(|kind| kind == it.kind)
            && it.level >= level
            && since.is_none_or(|since| it.at >= since)
            && query.matches_search(&it.text)
    });
    let next = lines.last().filter(|_| has_more).map(|it| it.number.to_string());
    Ok(query::list(lines.iter().map(line).collect(), next))
}

fn line(line: &LogLine) -> Raw {
    json!({
        "at": rfc3339(line.at),
        "source": Some(&line.source).filter(|it| !it.is_empty()),
        "kind": line.kind,
        "level": LEVELS[line.level],
        "text": line.text,
    })
    .into()
}
