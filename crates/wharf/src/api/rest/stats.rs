//! `GET /api/v1/stats`: calls, failures and durations over time.

use super::HandlerResult;
use crate::{
    api::{json_response, query::Query},
    call_stats::{CallStats, SeriesKey, StatsQuery},
};
use http::StatusCode;

/// Default window and step, in seconds.
const DEFAULT_WINDOW: u64 = 900;
const DEFAULT_STEP: u64 = 5;

/// Longest window, in seconds.
const MAX_WINDOW: u64 = 86_400;

const KEYS: &[(&str, SeriesKey)] = &[("source", SeriesKey::Source), ("tool", SeriesKey::Tool)];

pub(super) fn get(stats: &CallStats, query: Option<&str>) -> HandlerResult {
    let query = Query::read(query, &["window", "step", "source", "by"])?;
    let wanted = StatsQuery {
        window: query.number("window", 1..=MAX_WINDOW)?.unwrap_or(DEFAULT_WINDOW),
        step: query.number("step", 1..=MAX_WINDOW)?.unwrap_or(DEFAULT_STEP),
        source: query.text("source").map(str::to_owned),
        by: query.choice("by", KEYS)?.unwrap_or(SeriesKey::All),
    };
    if !wanted.is_valid() {
        return Err(query.invalid_parameter("step").hint(
            "`step` is a multiple of 5 in a `window` of up to 3600 seconds, or of 60 in one of up to 86400",
        ));
    }
    Ok(json_response(StatusCode::OK, stats.report(&wanted).to_json()))
}
