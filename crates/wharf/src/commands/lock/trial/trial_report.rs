//! Prints the result of a trial.

use super::{TriedCall, answers::AnswerVerdict, trial_calls::Skipped};
use crate::{
    commands::lock::report::{Changes, text},
    content::printable,
    output::Output,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Longest arguments that are shown in full, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// Result of a trial.
pub(super) struct TrialReport {
    pub(super) changes: Changes,
    pub(super) tried: Vec<TriedCall>,
    pub(super) skipped: Skipped,
}

pub(super) fn print_report(report: &TrialReport, is_written: bool, output: Output) {
    if output.json {
        output.json(&to_json(report, is_written));
        return;
    }
    let mut out = text(&report.changes);
    for TriedCall { tool, arguments, verdict, .. } in &report.tried {
        let arguments = shorten(&printable(&arguments.to_string()));
        out.push_str(&format!(
            "{:<7}  {} {arguments}{}\n",
            verdict.as_str(),
            printable(tool),
            detail(verdict)
        ));
    }
    for ((tool, why), count) in &report.skipped {
        let plural = if *count == 1 { "" } else { "s" };
        out.push_str(&format!("skipped  {} ({count} call{plural}): {why}\n", printable(tool)));
    }
    if !report.tried.is_empty() {
        let [old, new] = [0, 1].map(|it| durations(&report.tried, it));
        let line = |word: &str, share| {
            format!("{word}  {:.1} ms → {:.1} ms\n", percentile(&old, share), percentile(&new, share))
        };
        out.push_str(&line("p50", 0.5));
        out.push_str(&line("p95", 0.95));
    }
    output.data(&out);
    if report.tried.is_empty() {
        output
            .print_info("note: no call was tried; record some with --record, or name more tools with --also");
    }
}

fn to_json(report: &TrialReport, is_written: bool) -> Value {
    let calls = report.tried.iter().map(|it| {
        let TriedCall { tool, arguments, verdict, took } = it;
        let pointers = match verdict {
            AnswerVerdict::Differs(pointers) => pointers.clone(),
            _ => Vec::new(),
        };
        let error = match verdict {
            AnswerVerdict::Error(why) => Some(why),
            _ => None,
        };
        json!({
            "tool": tool, "arguments": arguments, "verdict": verdict.as_str(), "pointers": pointers, "error": error,
            "locked_ms": milliseconds(took[0]), "new_ms": milliseconds(took[1]),
        })
    });
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|((tool, why), count)| json!({ "tool": tool, "calls": count, "why": why }));
    let [old, new] = [0, 1].map(|it| durations(&report.tried, it));
    let both = |share| json!({ "locked": percentile(&old, share), "new": percentile(&new, share) });
    json!({
        "changes": report.changes.to_json(),
        "calls": calls.collect::<Vec<Value>>(),
        "skipped": skipped.collect::<Vec<Value>>(),
        "p50_ms": both(0.5),
        "p95_ms": both(0.95),
        "written": is_written,
    })
}

fn detail(verdict: &AnswerVerdict) -> String {
    match verdict {
        AnswerVerdict::Same | AnswerVerdict::Shape => String::new(),
        AnswerVerdict::Differs(pointers) => format!(": {}", printable(&pointers.join(", "))),
        AnswerVerdict::Error(why) => format!(": {}", printable(why)),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

/// Returns the sorted durations of one version, in milliseconds.
fn durations(tried: &[TriedCall], version: usize) -> Vec<f64> {
    let mut all: Vec<f64> = tried.iter().map(|it| milliseconds(it.took[version])).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Returns the duration that this share of the calls does not exceed. 0 without calls.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}
