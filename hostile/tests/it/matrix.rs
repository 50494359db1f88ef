//! Tries every row of the matrix with our own client, and checks the page about it.

use crate::trial::{OURS, THEIRS, try_all};
use hostile::{
    matrix::{Row, check_report, rows},
    options::Transport,
    page::{Reports, page, stem},
    probe::Report,
};
use std::{env, fmt::Write, fs, path::Path};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/hostile.md");

type Tried = Vec<(&'static Row, Report)>;

#[tokio::test]
async fn every_row_has_the_expected_outcome() {
    let chosen = variable("HOSTILE_ROW");
    let ours = try_all(OURS, rows().filter(|row| row.id().contains(&chosen)).collect()).await;
    save_reports(&ours);
    let mut wrong = String::new();
    for (row, report) in &ours {
        let problems = check_report(row, report);
        if !problems.is_empty() {
            let _ = writeln!(wrong, "{:40} {}\n{:40} {}", row.id(), problems.join("; "), "", report.message);
        }
    }
    assert!(wrong.is_empty(), "{} rows, of which these are wrong:\n{wrong}", ours.len());
    if variable("UPDATE") == "1" && chosen.is_empty() {
        let has_it = |row: &&Row| matches!(row.transport, Transport::Stdio | Transport::Http);
        let theirs = try_all(THEIRS, rows().filter(has_it).collect()).await;
        fs::write(PAGE, page(&by_row(ours), &by_row(theirs))).expect("the page is written");
    }
}

#[test]
fn the_page_matches_the_matrix() {
    let page = fs::read_to_string(PAGE).unwrap_or_default();
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let stems: Vec<String> = rows().map(stem).collect();
    let differs =
        lines.len() != stems.len() || lines.iter().zip(&stems).any(|(line, stem)| !line.starts_with(stem));
    assert!(
        !differs,
        "docs/hostile.md is out of date: run `UPDATE=1 cargo test -p hostile`, and commit what it wrote"
    );
}

/// Saves one line of JSON per row, for debugging.
fn save_reports(tried: &Tried) {
    let lines: Vec<String> =
        tried.iter().filter_map(|(_, report)| serde_json::to_string(report).ok()).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile.jsonl");
    fs::write(file, lines.join("\n")).expect("the reports are kept");
}

fn by_row(tried: Tried) -> Reports {
    tried.into_iter().map(|(row, report)| (row.id(), report)).collect()
}

/// Reads an option from the environment: a filter for row names, or the request to write the page.
#[expect(clippy::disallowed_methods, reason = "the environment selects rows for debugging")]
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
