//! Tests counting and reporting with a given clock.

use super::*;
use serde_json::json;

fn query(window: u64, step: u64, by: SeriesKey) -> StatsQuery {
    StatsQuery { window, step, source: None, by }
}

#[test]
fn calls_are_reported_in_their_step() {
    let stats = CallStats::default();
    let milliseconds = Duration::from_millis(10);
    for (at, source, status) in [
        (1_000, "a", Status::Success),
        (1_001, "a", Status::Failure),
        (1_011, "b", Status::Timeout),
        (1_012, "a", Status::Success),
    ] {
        let error = (status != Status::Success).then_some("MCPTimeoutError");
        stats.add(at, (source, "tool"), status, error, milliseconds);
    }
    let report = stats.report_at(1_013, &query(15, 5, SeriesKey::Source)).to_json();
    assert_eq!(report["from"], "1970-01-01T00:16:40Z");
    let (a, b) = (&report["series"][0], &report["series"][1]);
    assert_eq!(
        (&a["key"], &a["calls"], &a["failures"]),
        (&json!("a"), &json!([2, null, 1]), &json!([1, null, 0]))
    );
    assert_eq!(
        (&b["key"], &b["calls"], &b["timeouts"]),
        (&json!("b"), &json!([null, null, 1]), &json!([null, null, 1]))
    );
    assert_eq!(a["errors"], json!({ "MCPTimeoutError": [1, null, 0] }));
    let p50 = a["p50_ms"][0].as_f64().expect("a duration");
    assert!((9.0..11.0).contains(&p50) && a["p50_ms"][1].is_null(), "{a}");
    let all = stats.report_at(1_013, &query(15, 5, SeriesKey::All)).to_json();
    assert_eq!(all["series"][0]["calls"], json!([2, null, 2]));
}

#[test]
fn minutes_are_the_sum_of_their_slots() {
    let stats = CallStats::default();
    for second in 0..180 {
        stats.add(
            6_000 + second,
            ("a", "tool"),
            Status::Failure,
            Some("ToolError"),
            Duration::from_millis(1),
        );
    }
    let report = stats.report_at(6_179, &query(180, 60, SeriesKey::Tool)).to_json();
    assert_eq!(
        (&report["series"][0]["key"], &report["series"][0]["calls"]),
        (&json!("a:tool"), &json!([60, 60, 60]))
    );
    assert_eq!(report["series"][0]["errors"], json!({ "ToolError": [60, 60, 60] }));
    // A day later only the present is left.
    let later = stats.report_at(6_000 + 90_000, &query(86_400, 60, SeriesKey::Tool)).to_json();
    assert_eq!(later["series"], json!([]));
}

#[test]
fn names_beyond_the_limit_are_counted_together() {
    let stats = CallStats::default();
    for number in 0..3_000 {
        stats.add(10, ("a", &format!("tool-{number}")), Status::Success, None, Duration::ZERO);
    }
    let report = stats.report_at(10, &query(5, 5, SeriesKey::Tool)).to_json();
    let series = report["series"].as_array().expect("series");
    assert!(series.len() <= MAX_KEYS, "{}", series.len());
    let calls: u64 = series.iter().filter_map(|it| it["calls"][0].as_u64()).sum();
    assert!(calls >= 2_999, "{calls}");
}

#[test]
fn windows_have_a_resolution() {
    for (window, step, expected) in [
        (900, 5, true),
        (3_600, 5, true),
        (3_601, 5, false),
        (900, 7, false),
        (86_400, 60, true),
        (86_400, 90, false),
        (5, 60, false),
        (900, 0, false),
    ] {
        assert_eq!(query(window, step, SeriesKey::All).is_valid(), expected, "{window} {step}");
    }
}
